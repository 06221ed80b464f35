//! Background processes and the turns they start.

use hermetic_testkit::model::Reply;
use serde_json::json;

use crate::lab::{ALICE, Lab, Shared, calls_tool, has_sandboxes};

fn starts(command: &str) -> Reply {
    calls_tool(
        "terminal",
        &json!({"command": command, "background": true, "notify_on_complete": true}),
    )
}

#[tokio::test]
async fn the_end_of_a_process_starts_a_turn() {
    if !has_sandboxes("the_end_of_a_process_starts_a_turn").await {
        return;
    }
    let shared = Shared::new();
    let script = [
        starts(
            "echo at it > /shared/pipe; read -r line < /shared/go; echo \"built $line\"; exit 3",
        ),
        Reply::streams(&["I am building."]),
        Reply::streams(&["The build failed."]),
    ];
    let lab = Lab::builder()
        .configured_backends()
        .script(script)
        .config(&shared.config())
        .start()
        .await;
    assert_eq!(lab.ask(ALICE, "build it").await, "I am building.");
    assert_eq!(shared.heard().await, "at it\n");
    shared.say("nothing\n");
    assert_eq!(lab.replies(ALICE, 2).await[1], "The build failed.");
    let asked = lab.asked().remove(2);
    assert!(asked.contains("has ended with exit code 3"), "{asked}");
    assert!(
        asked.contains("built nothing") && asked.contains("untrusted data"),
        "{asked}"
    );
}

#[tokio::test]
async fn a_reset_ends_processes_and_nobody_is_told() {
    if !has_sandboxes("a_reset_ends_processes_and_nobody_is_told").await {
        return;
    }
    let shared = Shared::new();
    let script = [
        starts("echo at it > /shared/pipe; sleep 1000"),
        Reply::streams(&["I am building."]),
    ];
    let mut lab = Lab::builder()
        .configured_backends()
        .script(script)
        .config(&shared.config())
        .start()
        .await;
    lab.ask(ALICE, "build it").await;
    shared.heard().await;
    lab.destroy(ALICE).await;
    assert_eq!(lab.sandboxes().await, [""; 0]);
    lab.restart().await;
    assert!(lab.ask(ALICE, "/help").await.contains("/reset"));
    assert_eq!(lab.model.received().len(), 2);
}
