//! The schema as JSON Schema, for editors.

use serde_json::{Map, Value, json};

use crate::schema::{SCHEMA, SchemaKey};
use crate::shape::{LoneValues, RecordField, ValueShape};

/// Unknown keys are let through, as the original system has many that we do not use.
pub fn json_schema() -> Value {
    let mut root = object();
    for key in &SCHEMA.keys {
        insert(&mut root, &key.path, described(key));
        if !key.path.starts_with("platforms.") {
            for path in &key.also {
                insert(&mut root, path, described(key));
            }
        }
    }
    share_platforms(&mut root);
    shorten(&mut root, "model", &json!({"type": "string"}));
    shorten(&mut root, "streaming", &json!({"type": "boolean"}));
    if let Value::Object(root) = &mut root {
        root.insert(
            "$schema".into(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        root.insert("title".into(), json!("Hermetic configuration"));
    }
    root
}

fn insert(root: &mut Value, path: &str, schema: Value) {
    let mut at = root;
    let mut names = path.split('.').peekable();
    while let Some(name) = names.next() {
        let entry = at["properties"]
            .as_object_mut()
            .expect("`object` makes one")
            .entry(name)
            .or_insert_with(object);
        if names.peek().is_none() {
            *entry = schema;
            return;
        }
        at = entry;
    }
}

/// A platform looks the same wherever it stands, so it is written once.
fn share_platforms(root: &mut Value) {
    let Value::Object(platforms) = root["properties"]["platforms"]["properties"].take() else {
        return;
    };
    let mut everywhere = object();
    for (name, mut platform) in platforms {
        let shared = json!({"$ref": format!("#/$defs/{name}")});
        platform["properties"]["extra"] = shared.clone();
        root["$defs"][&name] = platform;
        everywhere["properties"][&name] = shared.clone();
        root["properties"][&name] = shared.clone();
        let nested = &mut root["properties"]["gateway"]["properties"][&name];
        *nested = match nested.take() {
            Value::Null => shared,
            own => json!({"allOf": [own, shared]}),
        };
    }
    root["properties"]["gateway"]["properties"]["platforms"] = everywhere.clone();
    root["properties"]["platforms"] = everywhere;
}

/// Where a section may also be written as one value.
fn shorten(root: &mut Value, section: &str, short: &Value) {
    let long = root["properties"][section].take();
    root["properties"][section] = json!({"anyOf": [long, short]});
}

fn described(key: &SchemaKey) -> Value {
    let mut schema = nullable(&of(&key.shape));
    if let Value::Object(schema) = &mut schema {
        let about = match &key.variable {
            Some(variable) if *variable != key.path => format!("{} ({variable})", key.about),
            _ => key.about.to_owned(),
        };
        schema.insert("description".into(), json!(about));
        if let Ok(Some(value)) = key.shape.read_text(key.fallback) {
            schema.insert("default".into(), value.to_json());
        }
    }
    schema
}

fn nullable(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn of(shape: &ValueShape) -> Value {
    let text = || json!({"type": "string"});
    let variable = || json!({"type": "string", "pattern": r"\$\{"});
    match shape {
        ValueShape::Flag => json!({"anyOf": [
            {"type": "boolean"},
            {"enum": [0, 1]},
            {"type": "string", "pattern": "^(?i:true|false|yes|no|on|off|y|n|1|0)$"},
            variable(),
        ]}),
        ValueShape::Whole { least, most } => json!({"anyOf": [
            {"type": "integer", "minimum": least, "maximum": most},
            {"type": "string", "pattern": "^[+-]?[0-9_]+$"},
            variable(),
        ]}),
        ValueShape::Number { least, most } => json!({"anyOf": [
            {"type": "number", "minimum": least, "maximum": most},
            {"type": "string", "pattern": "^[+-]?[0-9_.]+$"},
            variable(),
        ]}),
        ValueShape::Size { .. } => json!({"anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": "^[0-9_.]+ *([kKmMgGtT]?[iI]?[bB]?)$"},
            variable(),
        ]}),
        ValueShape::Text | ValueShape::Secret => json!({"type": ["string", "number", "boolean"]}),
        ValueShape::OneOf(choices) => {
            let mut options = vec![json!({"enum": choices}), variable(), json!({"const": ""})];
            if choices.contains(&"off") {
                options.push(json!({"const": false}));
            }
            json!({ "anyOf": options })
        }
        ValueShape::Texts { commas, .. } => {
            let list = json!({"type": "array", "items": {"type": ["string", "number", "boolean"]}});
            if *commas {
                json!({"anyOf": [list, {"type": ["string", "number"]}]})
            } else {
                list
            }
        }
        ValueShape::Pairs => json!({
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
        }),
        ValueShape::Records { fields, lone } => {
            let record = record(fields);
            match lone {
                Some(_) => json!({"anyOf": [
                    text(),
                    record,
                    {"type": "array", "items": {"anyOf": [text(), record]}},
                ]}),
                None => json!({"type": "array", "items": record}),
            }
        }
        ValueShape::Table {
            fields,
            lone_values,
        } => {
            let record = nullable(&record(fields));
            let entry = match lone_values {
                LoneValues::Refused => record,
                LoneValues::Unused => json!({"anyOf": [record, {"not": {"type": "array"}}]}),
            };
            json!({"type": "object", "additionalProperties": entry})
        }
        ValueShape::Tree => json!({}),
    }
}

fn record(fields: &[RecordField]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| {
            let mut schema = nullable(&of(&field.shape));
            schema["description"] = json!(field.about);
            (field.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> = fields
        .iter()
        .filter(|f| f.required)
        .map(|f| f.name)
        .collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn object() -> Value {
    json!({"type": ["object", "null"], "properties": {}})
}
