//! Names and arguments of past calls, as every endpoint takes them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::{CallId, ToolCall};

/// A name the model made up may break the endpoint's own rules, and would then spoil every request
/// that follows.
pub(crate) fn usable_name(name: &str) -> String {
    let plain = |letter: &char| letter.is_ascii_alphanumeric() || "_-".contains(*letter);
    let name: String = name.chars().filter(plain).take(64).collect();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}

/// The arguments as text. Some endpoints parse those of the past again and refuse what is not JSON.
pub(crate) fn usable_arguments(call: &ToolCall) -> &str {
    let is_object =
        serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value.is_object());
    if is_object { &call.arguments } else { "{}" }
}

/// The arguments as an object, empty where they are none.
pub(crate) fn arguments_object(call: &ToolCall) -> Map<String, Value> {
    serde_json::from_str(&call.arguments).unwrap_or_default()
}

/// An id within letters, digits, `_` and `-`, which every dialect takes. Ours may hold more, as made by
/// another provider.
pub(crate) fn plain_id(id: &CallId) -> Cow<'_, str> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if id.as_str().chars().all(plain) {
        return id.as_str().into();
    }
    let replaced = id.as_str().chars();
    replaced
        .map(|letter| if plain(letter) { letter } else { '_' })
        .collect()
}
