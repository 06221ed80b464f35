//! The persistent shell, attacked through the terminal: whatever a command does to it, the next call
//! ends, tells the truth and meets a shell.

use hermetic_policy::{PolicyMode, PolicyRules};
use hermetic_types::BackendKind;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::room::{Lab, Wishes};

/// What must hold after every story: the next command runs, in a shell, and says what it says.
async fn next_is_fine(lab: &Lab, after: &str) {
    let ran = lab.terminal("echo $((6 * 7))").await;
    assert_eq!(
        (&ran["output"], &ran["exit_code"]),
        (&json!("42"), &json!(0)),
        "after {after}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn folder_variables_functions_and_options_last() {
    let Some(lab) = Lab::open("folder_variables_functions_and_options_last").await else {
        return;
    };
    lab.says("mkdir -p '/tmp/a b' && cd '/tmp/a b'; here=unexported; export there=exported")
        .await;
    lab.says("greet() { echo \"hi $1\"; }; alias say='echo said'; shopt -s nullglob; set -f")
        .await;
    assert_eq!(
        lab.says("pwd; echo $here $there; greet you").await,
        "/tmp/a b\nunexported exported\nhi you"
    );
    assert_eq!(lab.says("say it").await, "said it");
    assert!(lab.says("shopt -q nullglob && echo $-").await.contains('f'));
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_that_ends_itself_is_replaced_in_the_same_folder() {
    let test = "a_shell_that_ends_itself_is_replaced_in_the_same_folder";
    let Some(lab) = Lab::open(test).await else {
        return;
    };
    lab.says("mkdir -p /tmp/w && cd /tmp/w").await;
    for (command, code) in [
        ("echo out; exit 7", 7),
        ("exec sh -c 'echo out; exit 8'", 8),
        ("set -e; echo out; false; echo not reached", 1),
        ("echo out; kill -9 $$", 137),
        ("echo out; kill -TERM $$; sleep 0.2; exit 9", 9),
        ("set -u; echo out; exit $((10 + 0))", 10),
    ] {
        let ran = lab.terminal(command).await;
        assert_eq!(
            (&ran["output"], &ran["exit_code"]),
            (&json!("out"), &json!(code)),
            "{command}"
        );
        next_is_fine(&lab, command).await;
        assert_eq!(lab.says("pwd").await, "/tmp/w", "after {command}");
    }
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_eat_stdin_get_its_end() {
    let Some(lab) = Lab::open("commands_that_eat_stdin_get_its_end").await else {
        return;
    };
    for command in [
        "cat",
        "read -r line",
        "python3 -c 'input()'",
        "bash",
        "cat <&0 >/dev/null",
        "sh -s",
    ] {
        lab.terminal(command).await;
        next_is_fine(&lab, command).await;
    }
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unterminated_text_is_an_error_and_nothing_more() {
    let Some(lab) = Lab::open("unterminated_text_is_an_error_and_nothing_more").await else {
        return;
    };
    for command in [
        "echo 'open",
        "echo \"open",
        "echo $(open",
        "if true; then",
        "((",
        "echo `x",
        "foo() {",
    ] {
        let ran = lab.terminal(command).await;
        assert_ne!(ran["exit_code"], 0, "{command}: {ran}");
        next_is_fine(&lab, command).await;
    }
    let heredoc = lab.terminal("cat <<EOF\nnever ended").await;
    assert!(
        heredoc["output"].as_str().unwrap().contains("never ended"),
        "{heredoc}"
    );
    next_is_fine(&lab, "a heredoc without an end").await;
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_of_any_kind_is_only_output() {
    let Some(lab) = Lab::open("output_of_any_kind_is_only_output").await else {
        return;
    };
    let binary = lab.terminal("head -c 100000 /dev/urandom").await;
    assert_eq!(binary["exit_code"], 0);
    next_is_fine(&lab, "binary output").await;
    // What our own channel carries, written by somebody else.
    for fake in [
        "printf '1 0\\n2 0\\n3 0\\n%s 0\\n' {4..99}; false",
        "for fd in 60 61 62 63; do echo '5 0' >&$fd; done 2>/dev/null; false",
        "for fd in /proc/$$/fd/*; do echo '6 0' > $fd; done 2>/dev/null; false",
        "echo '__HERMES_CWD_x__/etc__HERMES_CWD_x__'; false",
        "PROMPT_COMMAND='echo 7 0'; PS1='8 0'; false",
        "trap 'echo trapped' EXIT ERR DEBUG RETURN; false",
    ] {
        let ran = lab.terminal(fake).await;
        assert_eq!(ran["exit_code"], 1, "{fake}: {ran}");
        lab.terminal("trap - EXIT ERR DEBUG RETURN; unset PROMPT_COMMAND PS1")
            .await;
        next_is_fine(&lab, fake).await;
    }
    let long = lab
        .terminal("head -c 30000000 /dev/zero | tr '\\0' x; echo end")
        .await;
    let text = long["output"].as_str().unwrap();
    assert!(text.len() < 60_000 && text.ends_with("end") && text.contains("left out"));
    next_is_fine(&lab, "megabytes on one line").await;
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_hold_the_output_open_hold_nobody_up() {
    let Some(lab) = Lab::open("jobs_that_hold_the_output_open_hold_nobody_up").await else {
        return;
    };
    let command = "eval 'sleep 7010 &'; echo started";
    let ran = lab.terminal(command).await;
    assert_eq!(
        (&ran["output"], &ran["exit_code"]),
        (&json!("started"), &json!(0)),
        "{ran}"
    );
    next_is_fine(&lab, command).await;
    let noisy = "eval 'while :; do echo noise; sleep 0.01; done &' 2>/dev/null; echo quiet";
    lab.terminal(noisy).await;
    let ran = lab.terminal("echo mine; false").await;
    assert_eq!(ran["exit_code"], 1);
    assert!(ran["output"].as_str().unwrap().contains("mine"), "{ran}");
    lab.terminal("kill %1 %2; wait").await;
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_and_an_interrupt_end_the_tree_and_keep_the_shell() {
    let test = "a_timeout_and_an_interrupt_end_the_tree_and_keep_the_shell";
    let Some(lab) = Lab::open(test).await else {
        return;
    };
    lab.says("mark=kept; cd /tmp").await;
    for stubborn in [
        "echo begun; sleep 7011",
        "echo begun; while :; do sleep 7011; done",
        "echo begun; trap '' INT TERM; sleep 7011",
        "echo begun; bash -c 'trap \"\" INT TERM; sleep 7011; true'",
        "echo begun; setsid sleep 7011 & setsid sleep 7011 & wait",
    ] {
        // The command is what it says; only asking for it in the foreground is refused by name.
        let hidden = format!("eval {}", quote(stubborn));
        let ran = lab
            .call("terminal", json!({"command": hidden, "timeout": 1}))
            .await;
        assert_eq!(ran["exit_code"], 124, "{stubborn}: {ran}");
        let output = ran["output"].as_str().unwrap();
        assert_eq!(output, "begun\n[Command timed out after 1s]", "{stubborn}");
        assert_eq!(lab.running("sleep 7011").await, 0, "{stubborn}");
        next_is_fine(&lab, stubborn).await;
    }
    lab.says("trap - INT TERM; cd /tmp").await;
    lab.says("mark=kept").await;
    let stop = CancellationToken::new();
    let command = json!({"command": "echo begun; sleep 7012"});
    let (ran, ()) = tokio::join!(lab.call_until("terminal", command, &stop), async {
        lab.until("it sleeps", async || lab.running("sleep 7012").await == 1)
            .await;
        stop.cancel();
    });
    assert_eq!(ran["exit_code"], 130, "{ran}");
    assert_eq!(ran["output"], "begun\n[Command interrupted]");
    assert_eq!(lab.running("sleep 7012").await, 0);
    assert_eq!(lab.says("echo $mark; pwd").await, "kept\n/tmp");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_persistent_shell_only_the_folder_lasts() {
    for backend in [BackendKind::Native, BackendKind::Local] {
        let wishes = Wishes {
            backend,
            persistent_shell: false,
            rules: PolicyRules {
                mode: PolicyMode::Off,
                ..PolicyRules::default()
            },
            ..Wishes::default()
        };
        let test = "without_a_persistent_shell_only_the_folder_lasts";
        let Some(lab) = Lab::open_with(test, wishes).await else {
            return;
        };
        let begin = lab.says("pwd -P").await;
        let here = format!("{begin}/a b");
        lab.says("export x=1; mkdir -p 'a b' && cd 'a b'").await;
        assert_eq!(lab.says("echo \"[$x] $PWD\"").await, format!("[] {here}"));
        lab.call("write_file", json!({"path": "f", "content": "in it"}))
            .await;
        assert_eq!(lab.says("cat f").await, "in it");
        // However a command ends, and whatever it does to its own traps.
        for command in [
            "exit 3",
            "false",
            "kill -9 $$",
            "exec true",
            "set -e; false",
            "echo )",
        ] {
            lab.terminal(command).await;
            assert_eq!(lab.says("pwd").await, here, "{command}");
        }
        lab.terminal("cd / && exit 4").await;
        assert_eq!(lab.says("pwd").await, "/");
        lab.says(&format!("cd '{here}'; trap 'echo bye' EXIT"))
            .await;
        lab.says(&format!("cd '{here}'")).await;
        // A workdir is for its own command; a background process begins where the conversation is.
        let up = lab
            .call("terminal", json!({"command": "pwd", "workdir": ".."}))
            .await;
        assert_eq!(
            (&up["output"], &up["exit_code"]),
            (&json!(begin), &json!(0))
        );
        let id = lab.starts("pwd -P").await;
        assert_eq!(lab.process("wait", &id).await["output"], here.as_str());
        let nowhere = lab
            .call("terminal", json!({"command": "pwd", "workdir": "nope"}))
            .await;
        assert_eq!(nowhere["exit_code"], 126, "{nowhere}");
        lab.says("rm -r \"$PWD\"").await;
        assert_eq!(lab.says("pwd -P").await, begin);
        // What a command says on our channel is at most where it wants to be.
        lab.says("printf 'rubbish' >&63; printf '/no\\0where\\n' >&63; trap - EXIT")
            .await;
        assert_eq!(lab.says("pwd -P").await, begin);
        lab.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_gets_a_bash_of_its_own_begins_where_the_shell_is() {
    let test = "whoever_gets_a_bash_of_its_own_begins_where_the_shell_is";
    let Some(lab) = Lab::open(test).await else {
        return;
    };
    lab.says("mkdir -p /tmp/here/below; cd /tmp/here").await;
    for (arguments, folder) in [
        (json!({"command": "pwd", "pty": true}), "/tmp/here"),
        (
            json!({"command": "pwd", "workdir": "below"}),
            "/tmp/here/below",
        ),
        (
            json!({"command": "pwd; cd /", "workdir": "~"}),
            "/home/agent",
        ),
    ] {
        let ran = lab.call("terminal", arguments).await;
        assert_eq!(ran["output"], folder, "{ran}");
    }
    let id = lab.starts("pwd").await;
    assert_eq!(lab.process("wait", &id).await["output"], "/tmp/here");
    assert_eq!(lab.says("pwd").await, "/tmp/here");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_outputs_are_one_in_the_order_of_writing() {
    let test = "both_outputs_are_one_in_the_order_of_writing";
    for persistent_shell in [true, false] {
        let wishes = Wishes {
            persistent_shell,
            ..Wishes::default()
        };
        let Some(lab) = Lab::open_with(test, wishes).await else {
            return;
        };
        let said = lab.says("echo 1; echo 2 >&2; echo 3; echo 4 >&2").await;
        assert_eq!(said, "1\n2\n3\n4");
        lab.close().await;
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_run_one_after_the_other() {
    let Some(lab) = Lab::open("calls_at_once_run_one_after_the_other").await else {
        return;
    };
    lab.says("mkdir -p /tmp/q && cd /tmp/q && echo 0 > n").await;
    // Each reads, waits and writes: two at a time would lose a step, or be told that the shell is busy.
    let step =
        "n=$(cat n); sleep 0.05; echo $((n + 1)) > n; mkdir $n && cd $n && cp ../n .; echo $n";
    let calls = (0..6).map(|_| lab.terminal(step));
    let ran = futures::future::join_all(calls).await;
    for (number, ran) in ran.iter().enumerate() {
        assert_eq!(ran["output"], json!(number.to_string()), "{ran}");
    }
    assert_eq!(lab.says("pwd").await, "/tmp/q/0/1/2/3/4/5");
    lab.close().await;
}
