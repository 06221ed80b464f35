//! One call of the hour.

use serde_json::{Value, json};

/// A call, and what its result has to hold.
pub(super) struct Awkward {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    pub(super) holds: &'static [&'static str],
    /// The shell was replaced, so its variables are gone.
    pub(super) fresh: bool,
}

pub(super) fn terminal(command: &str, holds: &'static [&'static str]) -> Awkward {
    call("terminal", json!({"command": command}), holds)
}

pub(super) fn ends_shell(command: &str, holds: &'static [&'static str]) -> Awkward {
    Awkward {
        fresh: true,
        ..terminal(command, holds)
    }
}

pub(super) fn call(
    tool: &'static str,
    arguments: Value,
    holds: &'static [&'static str],
) -> Awkward {
    Awkward {
        tool,
        arguments,
        holds,
        fresh: false,
    }
}

pub(super) fn script(code: &str, holds: &'static [&'static str]) -> Awkward {
    call("execute_code", json!({"code": code}), holds)
}
