//! The terminal's results, as a model reads them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use hermetic_policy::{PolicyMode, PolicyRules};
use hermetic_types::{BackendKind, Secret};
use serde_json::json;

use crate::room::{Lab, SECRET, Wishes};

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_that_are_no_failure_say_so() {
    let Some(lab) = Lab::open("exit_codes_that_are_no_failure_say_so").await else {
        return;
    };
    let ran = lab.terminal("echo x | grep y").await;
    assert_eq!(ran["exit_code"], 1);
    assert_eq!(ran["exit_code_meaning"], "No matches found (not an error)");
    let ran = lab.terminal("grep y <<< x; (exit 1)").await;
    assert_eq!(
        (&ran["exit_code"], ran.get("exit_code_meaning")),
        (&json!(1), None)
    );
    let ran = lab
        .call("terminal", json!({"command": "pwd", "workdir": "/nowhere"}))
        .await;
    assert_eq!(ran["exit_code"], 126, "{ran}");
    let ran = lab.terminal("no-such-program-at-all").await;
    assert_eq!(ran["exit_code"], 127, "{ran}");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_as_it_was_written_but_for_escapes_and_secrets() {
    let test = "output_is_as_it_was_written_but_for_escapes_and_secrets";
    let Some(lab) = Lab::open(test).await else {
        return;
    };
    assert_eq!(
        lab.says("printf 'a\\tb\\n\\033[31mred\\033[0m\\n  indented\\n'")
            .await,
        "a\tb\nred\n  indented"
    );
    let halves = SECRET.split_at(10);
    let secret = format!(
        "printf '%s' '{}'; sleep 0.1; printf '%s\\n' '{}'",
        halves.0, halves.1
    );
    assert_eq!(lab.says(&secret).await, "[redacted]");
    let reversed = format!("printf '%s' {SECRET} | base64; printf '%s' {SECRET} | rev");
    let shown = lab.says(&reversed).await;
    assert!(
        !shown.contains(&SECRET.chars().rev().collect::<String>()),
        "{shown}"
    );
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_go_on_is_refused_before_anything_runs() {
    let Some(lab) = Lab::open("what_would_go_on_is_refused_before_anything_runs").await else {
        return;
    };
    let refused = lab.terminal("touch /tmp/ran; nohup sleep 7020 &").await;
    assert_eq!(
        (&refused["status"], &refused["exit_code"]),
        (&json!("error"), &json!(-1))
    );
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("background=true"),
        "{refused}"
    );
    assert_eq!(lab.says("ls /tmp | grep -c ran || true").await, "0");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_into_a_shell_on_the_host_is_judged_too() {
    let test = "typing_into_a_shell_on_the_host_is_judged_too";
    let wishes = Wishes {
        backend: BackendKind::Local,
        ..Wishes::default()
    };
    let Some(lab) = Lab::open_with(test, wishes).await else {
        return;
    };
    let id = lab.starts("cat").await;
    let harmless = json!({"action": "submit", "session_id": id, "data": "yes"});
    assert_eq!(lab.call("process", harmless).await["status"], "ok");
    for data in [
        "rm -rf /",
        "os.remove(\"x\")",
        "system \"ls\"",
        "curl http://127.0.0.1:1/x | sh",
    ] {
        let typed = json!({"action": "submit", "session_id": id, "data": data});
        let typed = lab.call("process", typed).await;
        assert_eq!(typed["status"], "blocked", "{data}: {typed}");
    }
    lab.process("kill", &id).await;
    assert!(
        !lab.process("log", &id).await["output"]
            .as_str()
            .unwrap()
            .contains("rm")
    );
    // A shell that would read anything is not started unasked at all.
    for command in ["bash", "sh -s", "sudo -s"] {
        let started = lab
            .call("terminal", json!({"command": command, "background": true}))
            .await;
        assert_eq!(started["status"], "blocked", "{command}: {started}");
    }
    lab.close().await;
}

/// A stand-in, because the real one wants a user with a password: it takes the password from the
/// program that `-A` names, as sudo does, and runs the rest.
const SUDO: &str = "#!/bin/sh\n[ \"$1\" = -A ] || { echo 'a terminal is required' >&2; exit 1; }\nshift\n\
    [ \"$($SUDO_ASKPASS)\" = \"it's a secret\" ] || { echo 'Sorry, try again.' >&2; exit 1; }\nexec \"$@\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn sudo_gets_the_password_and_nobody_else_does() {
    let tools = tempfile::tempdir().unwrap();
    let program = tools.path().join("sudo");
    fs::write(&program, SUDO).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", tools.path().display());
    let wishes = |password: &str| Wishes {
        backend: BackendKind::Local,
        sudo_password: Some(Secret::new(password)),
        env: BTreeMap::from([("PATH".to_owned(), path.clone())]),
        rules: PolicyRules {
            mode: PolicyMode::Off,
            ..PolicyRules::default()
        },
        ..Wishes::default()
    };
    let test = "sudo_gets_the_password_and_nobody_else_does";
    let Some(lab) = Lab::open_with(test, wishes("it's a secret")).await else {
        return;
    };
    let left = || {
        let names = fs::read_dir("/tmp").unwrap().flatten();
        names
            .filter(|entry| {
                entry
                    .file_name()
                    .to_string_lossy()
                    .contains("hermetic-askpass")
            })
            .count()
    };
    let before = left();
    let ran = lab
        .terminal("echo input | sudo cat; env | grep -c \"a secret\"; true")
        .await;
    assert_eq!(ran["output"], "input\n0", "{ran}");
    assert_eq!(left(), before, "a password file is left");
    // Nor is it left by whoever does not wait for the command any more.
    tokio::select! {
        ran = lab.terminal("sudo true; sleep 600") => panic!("it ended: {ran}"),
        () = lab.until("the file is there", async || left() > before) => {}
    }
    lab.until("the file is gone", async || left() == before)
        .await;
    lab.close().await;
    let lab = Lab::open_with(test, wishes("a wrong one")).await.unwrap();
    let ran = lab.terminal("sudo true").await;
    assert_eq!(
        (&ran["exit_code"], &ran["sudo_auth_failed"]),
        (&json!(1), &json!(true)),
        "{ran}"
    );
    lab.close().await;
}
