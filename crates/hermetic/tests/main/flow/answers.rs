//! Message, model, terminal, redacted reply.

use hermetic_testkit::model::{Piece, Reply};
use serde_json::json;

use super::lab::{ALICE, Lab, calls_terminal};

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered_from_its_own_sandbox() {
    let script = [
        calls_terminal("echo $((6 * 7)) > n; cat n"),
        Reply::streams(&["It is ", "42."]),
    ];
    let Some(mut lab) = Lab::start("a_message_is_answered_from_its_own_sandbox", script).await
    else {
        return;
    };
    assert_eq!(
        lab.ask(ALICE, "what is six times seven?").await,
        "It is 42."
    );
    let asked = lab.asked();
    assert!(
        asked[0].contains("what is six times seven?"),
        "{}",
        asked[0]
    );
    assert!(
        asked[0].contains("sandbox of this conversation alone"),
        "{}",
        asked[0]
    );
    let expected = json!({"output": "42", "exit_code": 0, "error": null});
    assert_eq!(lab.tool_result(1), expected);
    assert_eq!(lab.sandboxes().len(), 1);
    let said = lab.terminate();
    assert!(said.contains("stopped"), "{said}");
}

/// The model begins to think and never ends.
pub(super) fn stalls() -> Reply {
    Reply::events([]).then(Piece::Stall)
}
