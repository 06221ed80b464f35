//! Checks a call's arguments against the tool's schema, so that the model learns what was wrong.
//!
//! Knows the part of JSON schema that tools use (type, enum, required, properties,
//! additionalProperties, items, bounds). What it does not know it lets pass: the tool checks again.

use serde_json::{Map, Value};

use crate::json_shape::is_shallow;

/// The arguments as an object, or a sentence for the model.
pub(crate) fn check(arguments: &str, schema: &Value) -> Result<Map<String, Value>, String> {
    let text = if arguments.trim().is_empty() {
        "{}"
    } else {
        arguments
    };
    let value: Value = serde_json::from_str(text)
        .map_err(|error| format!("the arguments are not JSON: {error}"))?;
    // Some models encode the object once more as a string.
    let value = match value {
        Value::String(inner) => serde_json::from_str(&inner).unwrap_or(Value::String(inner)),
        other => other,
    };
    // What cannot be shown to the model again is not run either.
    if !is_shallow(&value) {
        return Err("the arguments are nested too deeply".to_owned());
    }
    check_value(&value, schema, "arguments")?;
    match value {
        Value::Object(map) => Ok(map),
        other => Err(format!(
            "the arguments must be an object, not {}",
            kind_of(&other)
        )),
    }
}

fn check_value(value: &Value, schema: &Value, place: &str) -> Result<(), String> {
    check_kind(value, schema, place)?;
    if let Some(Value::Array(allowed)) = schema.get("enum")
        && !allowed.contains(value)
    {
        let names: Vec<_> = allowed.iter().map(Value::to_string).collect();
        return Err(format!("{place} must be one of {}", names.join(", ")));
    }
    match value {
        Value::Object(map) => check_object(map, schema, place),
        Value::Array(items) => match schema.get("items") {
            Some(each) => items.iter().enumerate().try_for_each(|(index, item)| {
                check_value(item, each, &format!("{place}[{index}]"))
            }),
            None => Ok(()),
        },
        Value::Number(number) => check_bounds(number.as_f64(), schema, place),
        _ => Ok(()),
    }
}

fn check_object(map: &Map<String, Value>, schema: &Value, place: &str) -> Result<(), String> {
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !map.contains_key(name) {
            return Err(format!("{place}.{name} is missing"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, value) in map {
        match properties.and_then(|known| known.get(name)) {
            Some(schema) => check_value(value, schema, &format!("{place}.{name}"))?,
            None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                let known: Vec<_> = properties
                    .into_iter()
                    .flat_map(Map::keys)
                    .map(String::as_str)
                    .collect();
                return Err(format!(
                    "{place}.{name} is unknown; known: {}",
                    known.join(", ")
                ));
            }
            None => {}
        }
    }
    Ok(())
}

fn check_kind(value: &Value, schema: &Value, place: &str) -> Result<(), String> {
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    let fits = |kind: &&str| match *kind {
        "integer" => {
            value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "number" => value.is_number(),
        kind => kind == kind_of(value),
    };
    if kinds.iter().any(fits) {
        Ok(())
    } else {
        Err(format!(
            "{place} must be {}, not {}",
            kinds.join(" or "),
            kind_of(value)
        ))
    }
}

fn check_bounds(number: Option<f64>, schema: &Value, place: &str) -> Result<(), String> {
    let bound = |name| schema.get(name).and_then(Value::as_f64);
    let Some(number) = number else {
        return Ok(());
    };
    match (bound("minimum"), bound("maximum")) {
        (Some(least), _) if number < least => Err(format!("{place} must be at least {least}")),
        (_, Some(most)) if number > most => Err(format!("{place} must be at most {most}")),
        _ => Ok(()),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_said() {
        let schema = json!({
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "timeout": {"type": "integer", "minimum": 1, "maximum": 600},
                "mode": {"type": "string", "enum": ["replace", "patch"]},
                "watch": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["command"],
            "additionalProperties": false,
        });
        let table = [
            (r#"{"command":"ls"}"#, None),
            (r#"{"command":"ls","timeout":5.0}"#, None),
            (r#""{\"command\":\"ls\"}""#, None),
            ("", Some("arguments.command is missing")),
            (
                r#"{"command":1}"#,
                Some("arguments.command must be string, not number"),
            ),
            (
                r#"{"command":"ls","timeout":0}"#,
                Some("arguments.timeout must be at least 1"),
            ),
            (
                r#"{"command":"ls","timeout":1.5}"#,
                Some("arguments.timeout must be integer, not number"),
            ),
            (
                r#"{"command":"ls","mode":"x"}"#,
                Some(r#"arguments.mode must be one of "replace", "patch""#),
            ),
            (
                r#"{"command":"ls","watch":["a",2]}"#,
                Some("arguments.watch[1] must be string, not number"),
            ),
            (
                r#"{"command":"ls","cmd":1}"#,
                Some("arguments.cmd is unknown; known: command, mode, timeout, watch"),
            ),
            ("[1]", Some("arguments must be object, not array")),
            (
                "{",
                Some("the arguments are not JSON: EOF while parsing an object at line 1 column 1"),
            ),
        ];
        for (arguments, expected) in table {
            assert_eq!(
                check(arguments, &schema).err().as_deref(),
                expected,
                "{arguments}"
            );
        }
    }
}
