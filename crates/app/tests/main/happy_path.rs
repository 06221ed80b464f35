//! A gateway in twenty lines.

use std::sync::Arc;
use std::time::Duration;

use hermetic_testkit::model::{Line, ScriptedModel};

use crate::lab::{ALICE, Lab};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_message_is_answered_from_a_sandbox_and_an_idle_conversation_starts_afresh() {
    let script = [
        Line::calls(&[("terminal", r#"{"command": "echo $((6 * 7))"}"#)]),
        Line::says("It is 42."),
        Line::says("What is?"),
    ];
    let model = Arc::new(ScriptedModel::new(script));
    let mut lab = Lab::builder()
        .config("session_reset: {mode: idle, idle_minutes: 60}\nstreaming: false\n")
        .model(model.clone())
        .start()
        .await;
    assert_eq!(
        lab.ask(ALICE, "what is six times seven?").await,
        "It is 42."
    );
    assert!(format!("{:?}", model.asked()[1]).contains("42"));
    assert_eq!(lab.backend().created(), 2, "one was to prove the backend");

    lab.restart().await;
    lab.clock().advance(2 * HOUR);
    let said = lab.ask(ALICE, "and doubled?").await;
    assert!(
        said.starts_with("[Nothing was said here for long"),
        "{said}"
    );
    assert_eq!(model.asked()[2].len(), 2, "the rules and the question");
    lab.stop().await;
}
