//! How JSON of others is built, looked at before it costs anything.

use serde_json::Value;

/// What is nested deeper than this is not taken. Half of what serde reads, because it is put into other
/// JSON and read again with that.
const DEEPEST: usize = 64;

/// Values that one answer may consist of. Each takes some hundred bytes of memory, for as little as two on
/// the wire.
const MOST_VALUES: usize = 200_000;

/// Whether a value is nested no deeper than can be read again.
pub(crate) fn is_shallow(value: &Value) -> bool {
    fn within(value: &Value, left: usize) -> bool {
        // Ends where it is too deep, so that looking does not use up the stack itself.
        let Some(left) = left.checked_sub(1) else {
            return false;
        };
        match value {
            Value::Array(items) => items.iter().all(|item| within(item, left)),
            Value::Object(fields) => fields.values().all(|field| within(field, left)),
            _ => true,
        }
    }
    within(value, DEEPEST)
}

/// Whether JSON holds more values than an answer has.
pub(crate) fn has_too_many_values(json: &[u8]) -> bool {
    let mut values = 0;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' | b'[' | b',' => values += 1,
            _ => {}
        }
    }
    values > MOST_VALUES
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_text_is_not() {
        let list = |length: usize| format!("[{}1]", "1,".repeat(length));
        assert!(!has_too_many_values(list(1000).as_bytes()));
        assert!(has_too_many_values(list(MOST_VALUES).as_bytes()));
        let text = format!(r#"{{"text":"\"{}"}}"#, ",".repeat(MOST_VALUES * 2));
        assert!(!has_too_many_values(text.as_bytes()));
        assert!(!has_too_many_values(br#""\"#));
    }
}
