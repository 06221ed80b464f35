//! A settings file of an agent that a person may have written to as well.

use serde_json::Value;

/// Larger than any that a person writes.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// The file with what we set in it, and everything else as it was. Nothing where there is nothing to write, or
/// where it cannot be read: then somebody's file stays as it is.
pub(crate) fn merged(existing: Option<&[u8]>, ours: &str) -> Option<String> {
    let Some(existing) = existing.filter(|bytes| !bytes.trim_ascii().is_empty()) else {
        return Some(ours.to_owned());
    };
    // Only of JSON is it known how two are made one.
    let mut file: Value = serde_json::from_slice(existing).ok()?;
    let wanted: Value = serde_json::from_str(ours).ok()?;
    let before = file.clone();
    put_over(&mut file, wanted);
    if file == before {
        return None;
    }
    let text = serde_json::to_string_pretty(&file).ok()?;
    Some(format!("{text}\n"))
}

fn put_over(file: &mut Value, wanted: Value) {
    match (file, wanted) {
        (Value::Object(file), Value::Object(wanted)) => {
            for (name, value) in wanted {
                put_over(file.entry(name).or_insert(Value::Null), value);
            }
        }
        (file, wanted) => *file = wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OURS: &str =
        r#"{"general": {"disableAutoUpdate": true}, "telemetry": {"enabled": false}}"#;

    #[test]
    fn what_a_person_set_stays_beside_what_we_set() {
        let theirs =
            br#"{"theme": "dark", "general": {"vimMode": true, "disableAutoUpdate": false}}"#;
        let written = merged(Some(theirs), OURS).unwrap();
        let read: Value = serde_json::from_str(&written).unwrap();
        let wanted = json!({
            "theme": "dark",
            "general": {"vimMode": true, "disableAutoUpdate": true},
            "telemetry": {"enabled": false},
        });
        assert_eq!(read, wanted);
        assert_eq!(merged(Some(written.as_bytes()), OURS), None, "written once");
        assert_eq!(merged(None, OURS).as_deref(), Some(OURS));
        assert_eq!(merged(Some(b" \n"), OURS).as_deref(), Some(OURS));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_left_as_it_is() {
        assert_eq!(merged(Some(b"// mine\n{}"), OURS), None);
        assert_eq!(merged(Some(b"\xff"), OURS), None);
        assert_eq!(merged(Some(b"{}"), "key = 1"), None);
    }
}
