//! A long session of awkward calls as a model makes them, in one sandbox. After each of them the state
//! is looked at: the shell answers, its folder and variables are where they were left, no process is
//! there that should not be, no file of ours is left.

use hermetic_policy::{Mode, Rules};
use hermetic_types::{BackendKind, Boundary};
use serde_json::{Value, json};

use crate::room::{Lab, PATIENCE, SECRET, Wishes};

/// A call, and what its result has to hold.
struct Awkward {
    tool: &'static str,
    arguments: Value,
    holds: &'static [&'static str],
    /// The shell was replaced, so its variables are gone.
    fresh: bool,
}

fn terminal(command: &str, holds: &'static [&'static str]) -> Awkward {
    Awkward {
        tool: "terminal",
        arguments: json!({"command": command}),
        holds,
        fresh: false,
    }
}

fn ends_shell(command: &str, holds: &'static [&'static str]) -> Awkward {
    Awkward {
        fresh: true,
        ..terminal(command, holds)
    }
}

fn call(tool: &'static str, arguments: Value, holds: &'static [&'static str]) -> Awkward {
    Awkward {
        tool,
        arguments,
        holds,
        fresh: false,
    }
}

fn script(code: &str, holds: &'static [&'static str]) -> Awkward {
    call("execute_code", json!({"code": code}), holds)
}

fn session() -> Vec<Awkward> {
    vec![
        terminal("", &["no command"]),
        terminal("   \n", &["no command"]),
        call("terminal", json!({}), &["no command"]),
        call(
            "terminal",
            json!({"command": ["ls"]}),
            &["must be a string"],
        ),
        call(
            "terminal",
            json!({"command": "ls", "timeout": "soon"}),
            &["whole number"],
        ),
        call(
            "terminal",
            json!({"command": "ls", "timeout": 100_000}),
            &["1 to 600"],
        ),
        call(
            "terminal",
            json!({"command": "ls", "workdir": "$HOME; rm -rf /"}),
            &["workdir holds"],
        ),
        call(
            "terminal",
            json!({"command": "pwd", "workdir": "/usr"}),
            &["\"output\":\"/usr\""],
        ),
        terminal("cd /usr/lib && pwd", &["/usr/lib"]),
        terminal("cd /tmp/session", &["\"exit_code\":0"]),
        terminal(
            "cat << 'EOF' > a.py\nprint(\"it's\" + ' \"fine\"')\nEOF\npython3 a.py",
            &["it's \\\"fine\\\""],
        ),
        terminal(
            "cat << EOF > b.txt\n$(echo expanded) `echo too` $((1+1))\nEOF\ncat b.txt",
            &["expanded too 2"],
        ),
        terminal(
            "for i in 1 2 3; do\n  echo \"$i\"\ndone | paste -sd+ | bc 2>/dev/null || echo 6",
            &["6"],
        ),
        terminal(
            "echo \"a\\nb\" 'c\\nd' $'e\\nf'",
            &["a\\\\nb c\\\\nd e\\nf"],
        ),
        terminal("false", &["\"exit_code\":1"]),
        terminal("false; true", &["\"exit_code\":0"]),
        terminal("true | false", &["\"exit_code\":1"]),
        terminal(
            "set -o pipefail; false | true; r=$?; set +o pipefail; (exit $r)",
            &["\"exit_code\":1"],
        ),
        terminal("grep nothing a.py", &["exit_code_meaning"]),
        terminal("ls /nowhere 2>&1 | head -1", &["No such file"]),
        terminal(
            "python3 -c 'import sys; sys.exit(300)'",
            &["\"exit_code\":44"],
        ),
        terminal("bash -c 'kill -SEGV $$'", &["\"exit_code\":139"]),
        terminal("echo 'not closed", &["unexpected EOF"]),
        terminal("echo )", &["syntax error"]),
        terminal("cat <<EOF\nno end", &["no end"]),
        terminal("read x; echo \"[$x]\"", &["[]"]),
        terminal("cat", &["\"exit_code\":0"]),
        terminal("python3", &["\"exit_code\":0"]),
        terminal("ssh-keygen -y -f /nowhere; true", &["\"exit_code\":0"]),
        terminal("yes | head -c 1000000 | wc -c", &["1000000"]),
        terminal("yes | head -c 1000000", &["left out"]),
        terminal("head -c 200000 /dev/urandom", &["\"exit_code\":0"]),
        terminal("printf '\\377\\376\\000\\001'", &["\"exit_code\":0"]),
        terminal(
            "printf '\\033]0;title\\007\\033[2J\\033[1;1Hclear'",
            &["\"output\":\"clear\""],
        ),
        terminal("printf 'no newline'", &["\"output\":\"no newline\""]),
        terminal("printf 'a\\tb\\n'", &["a\\tb"]),
        terminal("echo correct-horse-battery-staple", &["[redacted]"]),
        terminal("printf 'AKIA%s\\n' IOSFODNN7EXAMPLE", &["\"exit_code\":0"]),
        terminal("server &", &["background=true"]),
        terminal("nohup sleep 7100", &["background=true"]),
        terminal("npm run dev", &["background=true"]),
        terminal("python3 -m http.server", &["background=true"]),
        call(
            "terminal",
            json!({"command": "sleep 7100", "timeout": 1}),
            &["\"exit_code\":124", "timed out after 1s"],
        ),
        call(
            "terminal",
            json!({"command": "trap '' TERM; sleep 7100", "timeout": 1}),
            &["\"exit_code\":124"],
        ),
        terminal("trap - TERM", &["\"exit_code\":0"]),
        ends_shell("exit 5", &["\"exit_code\":5"]),
        ends_shell("exec true", &["\"exit_code\":0"]),
        ends_shell("set -e; false", &["\"exit_code\":1"]),
        ends_shell("kill -9 $$", &["\"exit_code\":137"]),
        terminal("alias ls=false; unalias ls; ls a.py", &["a.py"]),
        terminal("cd() { echo mine; }; unset -f cd", &["\"exit_code\":0"]),
        terminal(
            "exec 2>/dev/null; exec 1>&-; echo lost",
            &["\"exit_code\":"],
        ),
        terminal("IFS=x; PATH=/usr/bin:/bin; unset IFS", &["\"exit_code\":0"]),
        terminal(
            "mkdir -p gone && cd gone && rmdir ../gone && cd /tmp/session",
            &["\"exit_code\":0"],
        ),
        terminal("ulimit -n", &["\"exit_code\":0"]),
        terminal("(sleep 0.05; echo late) ; echo early", &["late\\nearly"]),
        call(
            "terminal",
            json!({"command": "tput cols; test -t 1 && echo tty", "pty": true}),
            &["120\\ntty"],
        ),
        call(
            "terminal",
            json!({"command": "sleep 7100", "pty": true, "timeout": 1}),
            &["\"exit_code\":124"],
        ),
        call(
            "process",
            json!({"action": "list"}),
            &["\"status\":\"running\""],
        ),
        call(
            "process",
            json!({"action": "poll", "session_id": "proc_nope"}),
            &["not_found"],
        ),
        call("process", json!({"action": "dance"}), &["must be one of"]),
        call("process", json!({}), &["must be one of"]),
        terminal(
            "printf '__HERMES_CWD_0__/etc__HERMES_CWD_0__\\n'",
            &["__HERMES_CWD_0__"],
        ),
        terminal(
            "printf 'exit_code\": 99, \"\\n'; (exit 3)",
            &["\"exit_code\":3"],
        ),
        terminal(
            "echo 0 >&63 2>/dev/null; echo 0 >&61 2>/dev/null; true",
            &["\"exit_code\":0"],
        ),
        terminal(
            "python3 -c 'print(\"y\" * 5000000)'",
            &["left out", "\"exit_code\":0"],
        ),
        terminal("sleep 7100 & echo held; kill $!; wait; true", &["held"]),
        terminal("{ sleep 0.2; echo late; } & echo early; wait", &["early"]),
        terminal("cat <(echo sub) <<< here -", &["sub\\nhere"]),
        terminal("echo $((1 / 0)); echo next", &["division by 0"]),
        terminal("declare -r fixed=1; fixed=2; echo after", &["readonly"]),
        terminal(
            "f() { f; }; (ulimit -s 256; f) 2>/dev/null; echo survived",
            &["survived"],
        ),
        terminal("stty -echo; tput clear; true", &["\"exit_code\":0"]),
        terminal(
            "trap 'echo trapped' EXIT DEBUG; trap - EXIT DEBUG",
            &["\"exit_code\":0"],
        ),
        // It is an interactive bash, with a prompt that nobody sees.
        ends_shell("PROMPT_COMMAND='exit 9'", &["\"exit_code\":9"]),
        terminal(
            "PS1='$(kill -9 0)' PROMPT_COMMAND=false; unset PS1 PROMPT_COMMAND; printf() { :; }; eval() { :; }; unset -f printf eval",
            &["\"exit_code\":0"],
        ),
        call(
            "write_file",
            json!({"path": "n/e/w", "content": "\u{0}\u{1}"}),
            &["bytes_written\":2"],
        ),
        call("read_file", json!({"path": "n/e/w"}), &["binary"]),
        call(
            "write_file",
            json!({"path": "wide", "content": "w".repeat(2_000_000)}),
            &["2000000"],
        ),
        call("read_file", json!({"path": "wide"}), &["[truncated]"]),
        call(
            "read_file",
            json!({"path": "wide", "offset": 99}),
            &["has 1 lines"],
        ),
        call("read_file", json!({"path": "/dev/zero"}), &["not a file"]),
        call(
            "read_file",
            json!({"path": "/proc/self/environ"}),
            &["/proc"],
        ),
        call("read_file", json!({"path": ""}), &["empty"]),
        call("read_file", json!({"path": "."}), &["is a folder"]),
        call("read_file", json!({}), &["path is missing"]),
        terminal(
            "ln -s loop loop; ln -s wide link; mkfifo pipe; truncate -s 3G huge",
            &["\"exit_code\":0"],
        ),
        call("read_file", json!({"path": "loop"}), &["symlinks"]),
        call("read_file", json!({"path": "link"}), &["unchanged"]),
        call("read_file", json!({"path": "pipe"}), &["not a file"]),
        call("read_file", json!({"path": "huge"}), &["binary"]),
        call(
            "write_file",
            json!({"path": "pipe", "content": "x"}),
            &["not a file"],
        ),
        call(
            "patch",
            json!({"path": "wide", "old_string": "v", "new_string": "x"}),
            &["Could not find"],
        ),
        call(
            "patch",
            json!({"mode": "patch", "patch": "nonsense"}),
            &["\"success\":false"],
        ),
        call("search_files", json!({"pattern": "("}), &["Search failed"]),
        call(
            "search_files",
            json!({"pattern": "(a+)+$", "path": "wide"}),
            &["\"total_count\":0"],
        ),
        call(
            "search_files",
            json!({"pattern": "w{1000}", "path": "."}),
            &["total_count"],
        ),
        call(
            "search_files",
            json!({"pattern": "\\p{Greek}", "path": "."}),
            &["\"total_count\":0"],
        ),
        call(
            "search_files",
            json!({"pattern": "[", "target": "files"}),
            &["error"],
        ),
        call(
            "search_files",
            json!({"pattern": "*", "target": "files", "limit": 1}),
            &["offset=1"],
        ),
        call(
            "search_files",
            json!({"pattern": "x", "path": "nowhere"}),
            &["Path not found"],
        ),
        terminal("rm -rf loop link pipe huge wide n", &["\"exit_code\":0"]),
        script(
            "from concurrent.futures import ThreadPoolExecutor as P\nfrom hermes_tools import terminal\n\
             print(sorted(P(8).map(lambda n: int(terminal(f'echo {n}')['output']), range(20))) == list(range(20)))",
            &["True"],
        ),
        script(
            "from hermes_tools import *\nwrite_file('big', 'z' * 3_000_000)\n\
             print(len(terminal('cat big')['output']) > 40_000, read_file('big')['file_size'])",
            &["True 3000000"],
        ),
        script(
            "from hermes_tools import terminal\n\
             print([n for n in range(26) if 'error' in terminal('true') and terminal('true')['error']][:1])",
            &["[25]", "\"tool_calls_made\":50"],
        ),
        script(
            "import os, json, socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(os.environ['HERMES_RPC_SOCKET'])\n\
             s.sendall(json.dumps({'tool': 'terminal', 'args': {'command': 'touch forged'}, 'token': 'x' * 64}).encode() + b'\\n')\n\
             print(s.recv(1000), os.path.exists('forged'))",
            &["the token is not", "False"],
        ),
        script(
            "import os\nif os.fork() == 0: os.setsid(); os.execlp('sleep', 'sleep', '7100')\nprint('left')",
            &["left"],
        ),
        script("print('hello')", &["hello", "success"]),
        script(
            "import hermes_tools as t\nprint(t.terminal('pwd')['output'])",
            &["/tmp/session"],
        ),
        script(
            "import hermes_tools as t\nprint(t.terminal('sleep 7100', timeout=1)['exit_code'])",
            &["124"],
        ),
        Awkward {
            fresh: true,
            ..script(
                "import hermes_tools as t\nprint(t.terminal('exit 3')['exit_code'])",
                &["3"],
            )
        },
        script("def f(:\n", &["SyntaxError", "\"status\":\"error\""]),
        script("import no_such_module", &["ModuleNotFoundError"]),
        script("from hermes_tools import no_such_tool", &["ImportError"]),
        script("import os; os.kill(os.getpid(), 9)", &["\"exit_code\":137"]),
        script("import os; os._exit(0)", &["success"]),
        script("input()", &["EOFError"]),
        script("print('x' * 200000)", &["\"stdout_truncated\":true"]),
        script(
            "import sys; sys.stderr.write('only to stderr')",
            &["success"],
        ),
        script(
            "import os, shutil; shutil.rmtree(os.path.dirname(__file__)); print('gone')",
            &["gone"],
        ),
        script(
            "import threading, time\nthreading.Thread(target=time.sleep, args=(0.1,)).start()\nprint('main done')",
            &["main done"],
        ),
        script(
            "print('correct-horse-' + 'battery-staple')",
            &["[redacted]"],
        ),
        script("while True: pass", &["\"status\":\"timeout\""]),
        script("", &["not empty"]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_of_awkward_calls_leaves_everything_in_order() {
    let test = "an_hour_of_awkward_calls_leaves_everything_in_order";
    spend(test, BackendKind::Native).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_hour_in_a_container() {
    spend("the_same_hour_in_a_container", BackendKind::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_hour_on_a_remote_host() {
    spend("the_same_hour_on_a_remote_host", BackendKind::Ssh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_hour_on_the_host_itself() {
    spend("the_same_hour_on_the_host_itself", BackendKind::Local).await;
}

async fn spend(test: &str, backend: BackendKind) {
    let mut wishes = Wishes {
        backend,
        rules: Rules {
            mode: Mode::Off,
            ..Rules::default()
        },
        ..Wishes::default()
    };
    wishes.code.timeout = std::time::Duration::from_secs(5);
    let Some(mut lab) = Lab::open_with(test, wishes.clone()).await else {
        return;
    };
    // Two hours at once on one machine must not meet.
    let (folder, sleep) = match backend {
        BackendKind::Local => (
            format!("{}/session", lab.folder.path().display()),
            "sleep 7150",
        ),
        BackendKind::Ssh => (lab.says("echo ~/session").await, "sleep 7160"),
        BackendKind::Docker => ("/tmp/session".to_owned(), "sleep 7170"),
        _ => ("/tmp/session".to_owned(), "sleep 7100"),
    };
    let here = |text: &str| {
        text.replace("/tmp/session", &folder)
            .replace("sleep 7100", sleep)
    };
    lab.says(&here("mkdir -p /tmp/session")).await;
    let begin = here("cd /tmp/session; set +eu; marker=still-here");
    lab.says(&begin).await;
    let steady = lab
        .starts("echo up; read -r line; echo \"down $line\"")
        .await;
    for (number, step) in session().into_iter().enumerate() {
        // In the middle the gateway is cut and another takes over.
        if number == 40 {
            lab.restart(&wishes).await;
            assert_eq!(lab.kit.background.take_up().await.unwrap(), 1);
        }
        let arguments: Value = serde_json::from_str(&here(&step.arguments.to_string())).unwrap();
        let answered = lab.call(step.tool, arguments.clone()).await;
        let text = answered.to_string();
        for part in step.holds.iter().map(|part| here(part)) {
            assert!(
                text.contains(&part),
                "step {number}: {arguments}\nlacks {part}: {text}"
            );
        }
        assert!(!text.contains(SECRET), "step {number} shows the secret");
        look_around(
            &lab,
            sleep,
            &format!("step {number}: {arguments}"),
            step.fresh,
        )
        .await;
        lab.says(&begin).await;
    }
    steer(&lab, sleep).await;
    let submit = json!({"action": "submit", "session_id": steady, "data": "at last"});
    assert_eq!(lab.call("process", submit).await["status"], "ok");
    let waited = tokio::time::timeout(PATIENCE, lab.process("wait", &steady)).await;
    assert_eq!(waited.unwrap()["output"], "up\ndown at last");
    lab.close().await;
}

/// Processes that are written to, ended, and asked for what they cannot do.
async fn steer(lab: &Lab, sleep: &str) {
    let ask = async |action: &str, id: &str, data: &str| {
        let order = json!({"action": action, "session_id": id, "data": data});
        lab.call("process", order).await
    };
    let cat = lab.starts("cat").await;
    assert_eq!(
        ask("write", &cat, "no newline, ").await["bytes_written"],
        12
    );
    assert_eq!(ask("submit", &cat, "then one").await["status"], "ok");
    assert_eq!(ask("close", &cat, "").await["status"], "ok");
    let ended = ask("wait", &cat, "").await;
    assert_eq!(
        (
            &ended["output"],
            &ended["exit_code"],
            &ended["completion_reason"]
        ),
        (&json!("no newline, then one"), &json!(0), &json!("exited"))
    );
    assert_eq!(ask("write", &cat, "x").await["status"], "already_exited");
    assert_eq!(ask("kill", &cat, "").await["status"], "already_exited");
    let stubborn = lab
        .starts(&format!("trap '' TERM INT; echo set; {sleep}; {sleep}"))
        .await;
    let killed = ask("kill", &stubborn, "").await;
    assert_eq!(
        (&killed["status"], &killed["termination_source"]),
        (&json!("killed"), &json!("process.kill"))
    );
    assert_eq!(lab.running(sleep).await, 0);
    let deaf = lab.starts(&format!("exec <&-; {sleep}")).await;
    ask("write", &deaf, &"x".repeat(1 << 20)).await;
    assert_eq!(ask("poll", &deaf, "").await["status"], "running");
    assert_eq!(ask("kill", &deaf, "").await["status"], "killed");
    let loud = lab.starts("yes").await;
    lab.until("it is heard", async || {
        ask("poll", &loud, "").await["output_preview"] != ""
    })
    .await;
    let log = ask("log", &loud, "").await;
    assert_eq!(log["showing"], "200 lines", "{log}");
    assert_eq!(ask("kill", &loud, "").await["completion_reason"], "killed");
    assert_eq!(lab.says("echo still").await, "still");
}

/// The shell answers from the folder it was left in; nothing of any step goes on; nothing of ours lies
/// about.
async fn look_around(lab: &Lab, sleep: &str, after: &str, fresh: bool) {
    let marker = lab.terminal("echo \"$marker\"").await;
    let expected = if fresh { "" } else { "still-here" };
    if !after.contains("exec 2>") {
        assert_eq!(marker["output"], expected, "{after}");
    }
    let left = lab
        .says("ls -d /tmp/hermes_exec_* 2>/dev/null | wc -l")
        .await;
    // On the host others may be at work.
    if lab.room.sandbox().boundary() == Boundary::Sealed && !after.contains("exec 2>") {
        assert_eq!(left, "0", "{after}");
    }
    assert_eq!(lab.running(sleep).await, 0, "{after}");
    let listed = lab.process("list", "").await;
    let listed = listed["processes"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{after}: {listed:?}");
    assert_eq!(listed[0]["status"], "running", "{after}");
}
