//! What programs are told, held against the document that says what they are told.

use std::collections::BTreeSet;

use hermetic_testkit::model::Reply;
use serde_json::Value;

use super::live::sandbox_of;
use super::visitor::Visitor;
use crate::approvals::{self, Deed};
use crate::lab::{ALICE, BOB, calls_terminal};

/// How this value is not what the schema says; nothing where it is.
fn faults(document: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let named = document.pointer(name.trim_start_matches('#'));
        let named = named.unwrap_or_else(|| panic!("{name} is not in the document"));
        return faults(document, named, value, at);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let all = choices.iter().map(|one| faults(document, one, value, at));
        return all.min_by_key(Vec::len).unwrap_or_default();
    }
    let kinds = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Vec::new(),
    };
    let is_kind = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("{at}: {other} is no type"),
    };
    if !kinds.iter().any(is_kind) {
        return vec![format!("{at}: {value} is no {kinds:?}")];
    }
    let mut found = Vec::new();
    if let Some(known) = schema["enum"].as_array()
        && !known.contains(value)
    {
        found.push(format!("{at}: {value} is none of {known:?}"));
    }
    if let Some(values) = value.as_array() {
        for (place, one) in values.iter().enumerate() {
            let at = format!("{at}[{place}]");
            found.extend(faults(document, &schema["items"], one, &at));
        }
    }
    if let Some(fields) = value.as_object() {
        let required = schema["required"].as_array().into_iter().flatten();
        let names = required.filter_map(Value::as_str);
        let missing = names.filter(|name| !fields.contains_key(*name));
        found.extend(missing.map(|name| format!("{at}: {name} is missing")));
        for (name, one) in fields {
            let at = format!("{at}.{name}");
            match schema["properties"].get(name) {
                Some(known) => found.extend(faults(document, known, one, &at)),
                None if schema["additionalProperties"] == false => {
                    found.push(format!("{at} is not in the document"));
                }
                None => {}
            }
        }
    }
    found
}

#[tokio::test]
async fn every_answer_is_what_the_document_says() {
    let document = include_str!("../../../../../docs/api/dashboard.json");
    let document: Value = serde_json::from_str(document).unwrap();
    let deed = Deed::new();
    let script = [
        calls_terminal("ls"),
        Reply::streams(&["There is nothing."]),
        calls_terminal(&deed.command()),
    ];
    let lab = approvals::lab(script, "").await;
    lab.ask(BOB, "what is there?").await;
    lab.ask_through(BOB, "do it", ALICE).await;
    let ada = Visitor::operator(&lab).await;
    ada.act("/chat", "/chat/open", "").await;
    let id = sandbox_of(&lab).await;
    let mut held = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let answer = &methods["get"]["responses"]["200"]["content"]["application/json"];
        let Some(schema) = answer.get("schema") else {
            // Acts, and the bytes of files.
            let is_page = methods.get("get").is_some() && path != "/api/v1/chat/file";
            assert!(!is_page, "{path} does not say what it answers");
            continue;
        };
        let asked = match path.as_str() {
            "/api/v1/conversation" => format!("{path}?key=agent%3Amain%3Atelegram%3Adm%3A8"),
            "/api/v1/sandbox" => format!("{path}?id={id}"),
            _ => path.clone(),
        };
        let told = ada.get(&asked).await;
        assert_eq!(told.status, 200, "{asked}: {told:?}");
        let value: Value = serde_json::from_str(&told.body).unwrap();
        let wrong = faults(&document, schema, &value, path);
        assert_eq!(wrong, [""; 0], "{}", told.body);
        held.insert(path.clone());
    }
    assert_eq!(held.len(), 13, "{held:?}");
    // It is looked into, and not only asked for.
    let overview = ada.get("/api/v1/overview").await.body;
    let mut changed: Value = serde_json::from_str(&overview).unwrap();
    changed["waiting"][0]["state"] = "perhaps".into();
    changed["more"] = 1.into();
    let schema = serde_json::json!({ "$ref": "#/components/schemas/Overview" });
    assert_eq!(faults(&document, &schema, &changed, "").len(), 2);
}
