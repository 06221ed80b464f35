//! What the model on the wire does.

use hermetic_testkit::model::{Piece, Reply};
use serde_json::{Value, json};

/// The model calls the terminal.
pub(crate) fn calls_terminal(command: &str) -> Reply {
    calls_tool("terminal", &json!({"command": command}))
}

pub(crate) fn calls_tool(name: &str, arguments: &Value) -> Reply {
    let arguments = arguments.to_string();
    let call = json!({"index": 0, "id": "call_1", "type": "function",
        "function": {"name": name, "arguments": arguments}});
    Reply::events([
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ])
}

/// The model begins to think and never ends.
pub(crate) fn stalls() -> Reply {
    Reply::events([]).then(Piece::Stall)
}
