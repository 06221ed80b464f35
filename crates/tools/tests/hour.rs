//! A long session of awkward calls as a model makes them, in one sandbox. After each of them the state
//! is looked at: the shell answers, its folder and variables are where they were left, no process is
//! there that should not be, no file of ours is left.

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
    let mut wishes = Wishes::default();
    wishes.code.timeout = std::time::Duration::from_secs(2);
    let test = "an_hour_of_awkward_calls_leaves_everything_in_order";
    let Some(mut lab) = Lab::open_with(test, wishes.clone()).await else {
        return;
    };
    lab.says("mkdir -p /tmp/session").await;
    let begin = "cd /tmp/session; set +eu; marker=still-here";
    lab.says(begin).await;
    let steady = lab
        .starts("echo up; read -r line; echo \"down $line\"")
        .await;
    for (number, step) in session().into_iter().enumerate() {
        // In the middle the gateway is cut and another takes over.
        if number == 40 {
            lab.restart(&wishes).await;
            assert_eq!(lab.kit.background.take_up().await.unwrap(), 1);
        }
        let arguments = step.arguments;
        let answered = lab.call(step.tool, arguments.clone()).await;
        let text = answered.to_string();
        for part in step.holds {
            assert!(
                text.contains(part),
                "step {number}: {arguments}\nlacks {part}: {text}"
            );
        }
        assert!(!text.contains(SECRET), "step {number} shows the secret");
        look_around(&lab, &format!("step {number}: {arguments}"), step.fresh).await;
        lab.says(begin).await;
    }
    let submit = json!({"action": "submit", "session_id": steady, "data": "at last"});
    assert_eq!(lab.call("process", submit).await["status"], "ok");
    let waited = tokio::time::timeout(PATIENCE, lab.process("wait", &steady)).await;
    assert_eq!(waited.unwrap()["output"], "up\ndown at last");
    lab.close().await;
}

/// The shell answers from the folder it was left in; nothing of any step goes on; nothing of ours lies
/// about.
async fn look_around(lab: &Lab, after: &str, fresh: bool) {
    let marker = lab
        .terminal("echo \"$marker\"; ls -d /tmp/hermes_exec_* 2>/dev/null; true")
        .await;
    let expected = if fresh { "" } else { "still-here" };
    if !after.contains("exec 2>") {
        assert_eq!(marker["output"], expected, "{after}");
    }
    assert_eq!(lab.running("sleep 7100").await, 0, "{after}");
    let listed = lab.process("list", "").await;
    let listed = listed["processes"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{after}: {listed:?}");
    assert_eq!(listed[0]["status"], "running", "{after}");
}
