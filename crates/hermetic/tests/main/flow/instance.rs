//! The whole flow with Apptainer's instances for sandboxes.

use std::time::{Duration, Instant};

use hermetic_testkit::model::Reply;
use serde_json::json;

use super::lab::{ALICE, BOB, KEY, Lab, calls_terminal, calls_tool};
use crate::singularity::{config, home, processes};

/// Nothing where there can be no instance.
async fn start(test: &str, script: impl IntoIterator<Item = Reply>) -> Option<Lab> {
    home(test)?;
    Lab::start_in(
        test,
        script,
        &config(test)?,
        "TELEGRAM_ALLOWED_USERS=7,8",
        &[],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered_from_its_own_instance() {
    let print = format!("echo {KEY}; grep -c : /proc/net/dev; echo mine > note");
    let script = [
        calls_terminal(&print),
        calls_tool(
            "execute_code",
            &json!({"code": "import hermes_tools as t\nprint(t.read_file('note'))"}),
        ),
        Reply::streams(&["The key is ", KEY]),
    ];
    let test = "a_message_is_answered_from_its_own_instance";
    let Some(mut lab) = start(test, script).await else {
        return;
    };
    assert_eq!(
        lab.ask(ALICE, "what is the key?").await,
        "The key is [redacted]"
    );
    let ran = lab.tool_result(1);
    assert_eq!(ran["output"], "[redacted]\n1", "{ran}");
    let script = lab.tool_result(2).to_string();
    assert!(script.contains("mine"), "{script}");
    assert_eq!(lab.sandboxes().len(), 1);

    // Somebody else has another, and a gateway that was killed finds both again.
    let bobs = lab.ask(BOB, "/sh ls; echo done").await;
    assert_eq!(bobs.trim(), "done");
    lab.kill();
    lab.restart();
    assert_eq!(lab.ask(ALICE, "/sh cat note").await.trim(), "mine");
    assert_eq!(lab.sandboxes().len(), 2);

    for who in [ALICE, BOB] {
        lab.ask(who, "/reset").await;
    }
    assert_eq!(lab.sandboxes().len(), 0);
    let id = std::fs::read_to_string(lab.path("hermetic/installation")).unwrap();
    let begun = Instant::now();
    while !processes(&id).is_empty() {
        let left = processes(&id);
        assert!(begun.elapsed() < Duration::from_secs(60), "{left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    lab.terminate();
}
