//! Scripts with tools at hand, and scripts that want to break something.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_tools::{CodeSettings, CommandRequest, NoOneToAsk, ScriptDirectory};
use hermetic_types::BackendKind;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::room::{Lab, SECRET, Wishes};

fn output(ran: &Value) -> &str {
    ran["output"].as_str().unwrap()
}

/// Nothing of a script is left inside: no process, no socket, no file.
async fn nothing_is_left(lab: &Lab) {
    assert_eq!(
        lab.says("ls -d /tmp/hermes_exec_* 2>/dev/null | wc -l")
            .await,
        "0"
    );
    // The warden hears of the end a moment later than we do.
    lab.until("nobody listens", async || {
        lab.says("grep -c rpc.sock /proc/net/unix || true").await == "0"
    })
    .await;
    assert_eq!(lab.running("script.py").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_calls_tools_and_prints() {
    for backend in [BackendKind::Native, BackendKind::Local] {
        let wishes = Wishes {
            backend,
            ..Wishes::default()
        };
        let Some(lab) = Lab::open_with("a_script_calls_tools_and_prints", wishes).await else {
            return;
        };
        let folder = lab.says("mkdir -p here && cd here && pwd").await;
        let ran = lab
            .python(
                "from hermes_tools import terminal, shell_quote, json_parse, retry\nimport os\n\
                 ran = terminal('echo hello; (exit 3)')\n\
                 print(ran['output'], ran['exit_code'], os.getcwd())\n\
                 print(retry(lambda: json_parse('{\"a\": 1}'))['a'], shell_quote('a b'))",
            )
            .await;
        let expected = format!("hello 3 {folder}\n1 'a b'");
        assert_eq!(output(&ran), expected, "{ran}");
        assert_eq!(
            (&ran["status"], &ran["exit_code"]),
            (&json!("success"), &json!(0))
        );
        assert_eq!(
            (&ran["tool_calls_made"], &ran["stdout_truncated"]),
            (&json!(1), &json!(false))
        );
        // On the host other tests' scripts are seen as well.
        if backend == BackendKind::Native {
            nothing_is_left(&lab).await;
        }
        lab.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_fails_shows_where() {
    let Some(lab) = Lab::open("a_script_that_fails_shows_where").await else {
        return;
    };
    let ran = lab
        .python("print('before')\nraise ValueError('on purpose')")
        .await;
    assert_eq!(
        (&ran["status"], &ran["exit_code"]),
        (&json!("error"), &json!(1)),
        "{ran}"
    );
    let error = ran["error"].as_str().unwrap();
    assert!(
        error.contains("line 2") && error.contains("ValueError: on purpose"),
        "{error}"
    );
    assert!(
        output(&ran).starts_with("before\n--- stderr ---\n"),
        "{ran}"
    );
    let ran = lab.python("import sys; sys.exit(9)").await;
    assert_eq!(
        (&ran["exit_code"], &ran["error"]),
        (&json!(9), &json!("The script exited with code 9."))
    );
    for empty in [
        json!({}),
        json!({"code": " "}),
        json!({"code": 1}),
        json!({"code": "a\0b"}),
    ] {
        assert_eq!(lab.call("execute_code", empty).await["status"], "error");
    }
    nothing_is_left(&lab).await;
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_call_at_once() {
    let Some(lab) = Lab::open("threads_call_at_once").await else {
        return;
    };
    let ran = lab
        .python(
            "from concurrent.futures import ThreadPoolExecutor\nfrom hermes_tools import terminal\n\
             with ThreadPoolExecutor(20) as pool:\n    \
             said = list(pool.map(lambda n: terminal(f'echo {n}')['output'], range(40)))\n\
             print(said == [str(n) for n in range(40)])",
        )
        .await;
    assert_eq!(
        (output(&ran), &ran["tool_calls_made"]),
        ("True", &json!(40)),
        "{ran}"
    );
    let forks = lab
        .python(
            "import os\nfrom hermes_tools import terminal\nterminal('echo parent')\n\
             if os.fork() == 0:\n    print('child', terminal('echo c')['output'], flush=True)\n    os._exit(0)\n\
             os.wait()\nprint('parent', terminal('echo p')['output'])",
        )
        .await;
    assert_eq!(output(&forks), "child c\nparent p", "{forks}");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn megabytes_go_both_ways() {
    let Some(lab) = Lab::open("megabytes_go_both_ways").await else {
        return;
    };
    let long = format!(
        "# {}\ntext = '{}'\nprint(len(text))",
        "x".repeat(2 << 20),
        "y".repeat(3 << 20)
    );
    assert_eq!(output(&lab.python(&long).await), (3 << 20).to_string());
    let ran = lab
        .python("print('a' * 1000); print('b' * 3_000_000); print('end')")
        .await;
    let total = 1001 + 3_000_001 + 4;
    assert_eq!(ran["stdout_bytes_total"], total, "counted");
    assert_eq!(ran["stdout_bytes_captured"], 50_000);
    assert_eq!(ran["stdout_bytes_omitted"], total - 50_000);
    assert_eq!(ran["stdout_truncated"], true);
    let text = output(&ran);
    assert!(text.starts_with("aaaa") && text.ends_with("end") && text.len() < 60_000);
    let ran = lab
        .python(
            "from hermes_tools import terminal\n\
             ran = terminal('echo ' + 'z' * 1_500_000 + ' | wc -c')\nprint(ran['output'], ran.get('error'))",
        )
        .await;
    assert!(output(&ran).contains("1500001"), "{ran}");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_and_an_interrupt_leave_nothing() {
    let settings = CodeSettings {
        timeout: Duration::from_secs(1),
        most_calls: 50,
        directory: ScriptDirectory::Strict,
    };
    let wishes = Wishes {
        code: settings,
        ..Wishes::default()
    };
    let Some(lab) = Lab::open_with("a_timeout_and_an_interrupt_leave_nothing", wishes).await else {
        return;
    };
    let stubborn = "import signal, subprocess, sys, os\n\
        signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n\
        subprocess.Popen(['setsid', 'sleep', '7030'])\nopen('litter', 'w').write('x'); os.mkdir('deep'); open('deep/er', 'w')\n\
        print('begun', flush=True)\nsignal.pause()\nsignal.pause()";
    let ran = lab.python(stubborn).await;
    assert_eq!(
        (&ran["status"], output(&ran)),
        (&json!("timeout"), "begun"),
        "{ran}"
    );
    assert!(
        ran["error"].as_str().unwrap().contains("after 1 seconds"),
        "{ran}"
    );
    assert_eq!(lab.running("sleep 7030").await, 0);
    nothing_is_left(&lab).await;
    lab.close().await;

    let Some(lab) = Lab::open("a_timeout_and_an_interrupt_leave_nothing").await else {
        return;
    };
    let stop = CancellationToken::new();
    let inner =
        "from hermes_tools import terminal\nprint('begun', flush=True)\nterminal('sleep 7031')";
    let (ran, ()) = tokio::join!(
        lab.call_until("execute_code", json!({"code": inner}), &stop),
        async {
            lab.until("it sleeps", async || lab.running("sleep 7031").await == 1)
                .await;
            stop.cancel();
        }
    );
    assert_eq!(
        (&ran["status"], &ran["exit_code"]),
        (&json!("interrupted"), &json!(130)),
        "{ran}"
    );
    assert!(output(&ran).starts_with("begun"), "{ran}");
    lab.until("its command is gone", async || {
        lab.running("sleep 7031").await == 0
    })
    .await;
    nothing_is_left(&lab).await;
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_script_leaves_in_the_background_ends_with_it() {
    let test = "what_a_script_leaves_in_the_background_ends_with_it";
    let Some(lab) = Lab::open(test).await else {
        return;
    };
    let ran = lab
        .python("import subprocess\nsubprocess.Popen(['setsid', 'sleep', '7032'])\nprint('done')")
        .await;
    assert_eq!(output(&ran), "done", "{ran}");
    assert_eq!(lab.running("sleep 7032").await, 0);
    nothing_is_left(&lab).await;
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_and_bounded() {
    let wishes = Wishes {
        code: CodeSettings {
            timeout: Duration::from_secs(30),
            most_calls: 3,
            directory: ScriptDirectory::Project,
        },
        ..Wishes::default()
    };
    let Some(lab) = Lab::open_with("calls_are_counted_and_bounded", wishes).await else {
        return;
    };
    let ran = lab
        .python(
            "from hermes_tools import terminal\nfor n in range(5):\n    ran = terminal(f'echo {n}')\n    \
             print(ran.get('output'), ran.get('error'))",
        )
        .await;
    let lines: Vec<_> = output(&ran).lines().collect();
    assert_eq!(lines[2], "2 None");
    assert!(
        lines[3].contains("3 times") && lines[4].contains("3 times"),
        "{ran}"
    );
    assert_eq!(ran["tool_calls_made"], 3);
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_believes_nothing() {
    let Some(lab) = Lab::open("the_socket_believes_nothing").await else {
        return;
    };
    let hostile = r#"
import json, os, socket
path, token = os.environ["HERMES_RPC_SOCKET"], os.environ["HERMES_RPC_TOKEN"]
def say(data, half=False):
    s = socket.socket(socket.AF_UNIX); s.connect(path); s.settimeout(20)
    try:
        s.sendall(data)
        if half: s.shutdown(socket.SHUT_WR)
        return s.makefile("rb").readline().decode()
    except OSError as error:
        return "closed " + type(error).__name__
def ask(**more):
    return json.dumps({"tool": "terminal", "args": {"command": "echo in"}, "token": token, **more}).encode() + b"\n"
print("right:", say(ask()))
print("wrong:", say(ask(token="x" * len(token))))
print("none:", say(ask(token="")))
print("type:", say(ask(token=7)))
print("garbage:", say(b"\x00\xff{{{\n"))
print("args:", say(ask(args=[1, 2])))
print("nested:", say(ask(tool="execute_code", args={"code": "1"})))
print("process:", say(ask(tool="process", args={"action": "list"})))
print("half:", repr(say(b'{"tool"', half=True)))
print("long:", say(b"x" * (9 << 20)))
print("deep:", say(b"[" * 200000 + b"\n"))
print("background:", say(ask(args={"command": "echo fore", "background": True, "pty": True})))
flood = [socket.socket(socket.AF_UNIX) for _ in range(14)]
for s in flood: s.connect(path)
for s in flood: s.close()
print("still:", say(ask()))
"#;
    let ran = lab.python(hostile).await;
    let said = output(&ran);
    let line = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no {name} in {ran}"))
    };
    for (name, expected) in [
        ("right:", "\"output\":\"in\""),
        ("wrong:", "token is not"),
        ("none:", "token is not"),
        ("type:", "not a request"),
        ("garbage:", "not a request"),
        ("args:", "not a request"),
        ("nested:", "no tool \\\"execute_code\\\""),
        ("process:", "no tool \\\"process\\\""),
        ("half:", ""),
        ("deep:", "not a request"),
        ("background:", "\"output\":\"fore\""),
        ("still:", "\"output\":\"in\""),
    ] {
        assert!(line(name).contains(expected), "{name} {}", line(name));
    }
    let long = line("long:");
    assert!(
        long.contains("longer than") || long.contains("closed"),
        "{long}"
    );
    nothing_is_left(&lab).await;
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_taken_out_of_what_tools_and_scripts_say() {
    let test = "secrets_are_taken_out_of_what_tools_and_scripts_say";
    let Some(lab) = Lab::open(test).await else {
        return;
    };
    let code = format!(
        "from hermes_tools import terminal\nsaid = terminal('echo {SECRET}')['output']\n\
         print(said)\nprint('-'.join(['correct', 'horse', 'battery', 'staple']))"
    );
    assert_eq!(output(&lab.python(&code).await), "[redacted]\n[redacted]");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_host_scripts_and_their_calls_are_judged() {
    let wishes = Wishes {
        backend: BackendKind::Local,
        ..Wishes::default()
    };
    let test = "on_the_host_scripts_and_their_calls_are_judged";
    let Some(lab) = Lab::open_with(test, wishes).await else {
        return;
    };
    assert_eq!(lab.python("print(1)").await["status"], "success");
    for code in [
        "import os; os.system('rm -rf /')",
        "import subprocess; subprocess.run(['rm', '-rf', '/home'])",
        "import shutil; shutil.rmtree('/etc')",
    ] {
        let ran = lab.python(code).await;
        assert_eq!(ran["status"], "blocked", "{code}: {ran}");
    }
    let inner = lab
        .python("from hermes_tools import terminal\nc = 'rm -rf ' + '/'\nprint(terminal(c))")
        .await;
    let text = inner.to_string();
    assert!(text.contains("blocked"), "{inner}");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_python_the_reason_is_plain() {
    let wishes = Wishes {
        env: BTreeMap::from([("PATH".to_owned(), "/nowhere".to_owned())]),
        ..Wishes::default()
    };
    let Some(lab) = Lab::open_with("without_python_the_reason_is_plain", wishes).await else {
        return;
    };
    let ran = lab.python("print(1)").await;
    assert_eq!(ran["status"], "error");
    assert!(
        ran["error"]
            .as_str()
            .unwrap()
            .contains("no python3 in this sandbox"),
        "{ran}"
    );
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_of_a_killed_gateway_are_found_and_removed() {
    let test = "folders_of_a_killed_gateway_are_found_and_removed";
    let Some(mut lab) = Lab::open(test).await else {
        return;
    };
    let ran = lab.python("print(1)").await;
    assert_eq!(ran["status"], "success", "{ran}");
    lab.says(
        "mkdir -p /tmp/hermes_exec_dead/sub /tmp/kept; echo x > /tmp/hermes_exec_dead/sub/script.py; \
         echo x > /tmp/kept/file; ln -s /tmp/kept /tmp/hermes_exec_dead/sub/out; \
         ln -s /tmp/kept /tmp/hermes_exec_link; touch /tmp/hermes_exec_file",
    )
    .await;
    lab.restart(&Wishes::default()).await;
    let ran = lab.python("print(2)").await;
    assert_eq!(ran["status"], "success", "{ran}");
    // Links are not followed, and what only has such a name is somebody else's.
    let left = lab
        .says("ls -d /tmp/hermes_exec_*; cat /tmp/kept/file")
        .await;
    assert_eq!(left, "/tmp/hermes_exec_file\n/tmp/hermes_exec_link\nx");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_types_may_be_megabytes_and_calls_tools() {
    let test = "what_a_person_types_may_be_megabytes_and_calls_tools";
    let Some(lab) = Lab::open(test).await else {
        return;
    };
    let filler = "# nothing\n".repeat(300_000);
    let code = format!("{filler}import hermes_tools as t\nprint(t.terminal('echo hi')['output'])");
    let toolbox = lab.kit.toolbox(&*lab.room, &NoOneToAsk);
    let stop = CancellationToken::new();
    let outcome = toolbox
        .run(CommandRequest::python(code), &stop)
        .await
        .unwrap();
    assert_eq!(outcome.to_json()["output"], "hi", "{outcome:?}");
    let failing = CommandRequest::python("import sys; print('out'); sys.exit('err')");
    let json = toolbox.run(failing, &stop).await.unwrap().to_json();
    assert_eq!(
        (&json["output"], &json["exit_code"]),
        (&json!("out\nerr"), &json!(1))
    );
    nothing_is_left(&lab).await;
    lab.close().await;
}
