//! Names and arguments of past calls, as every endpoint takes them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::json_shape::is_shallow;
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
    let is_object = serde_json::from_str::<Value>(&call.arguments)
        .is_ok_and(|value| value.is_object() && is_shallow(&value));
    if is_object { &call.arguments } else { "{}" }
}

/// The arguments as an object, empty where they are none.
pub(crate) fn arguments_object(call: &ToolCall) -> Map<String, Value> {
    match serde_json::from_str(&call.arguments) {
        Ok(arguments @ Value::Object(_)) if !is_shallow(&arguments) => Map::new(),
        Ok(Value::Object(arguments)) => arguments,
        _ => Map::new(),
    }
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

/// The id itself where it has nine letters and digits, else as many that it always comes to.
pub(crate) fn nine_letter_id(id: &CallId) -> Cow<'_, str> {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let id = id.as_str();
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.into();
    }
    // FNV-1a: it has to be the same in every request, and keeps no secret.
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let letters = std::iter::repeat_with(|| {
        let letter = LETTERS[usize::try_from(hash % 62).unwrap_or(0)];
        hash /= 62;
        char::from(letter)
    });
    letters.take(9).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_for_mistral_has_nine_letters_and_stays_the_same() {
        let written = |id: &str| nine_letter_id(&CallId::new(id)).into_owned();
        assert_eq!(written("abcDEF123"), "abcDEF123");
        let ids = ["call_1", "call_2", "abc-EF123", ""].map(written);
        for id in &ids {
            assert_eq!(id.len(), 9);
            assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        }
        assert_ne!(ids[0], ids[1]);
        assert_eq!(ids[0], written("call_1"));
    }
}
