//! What is posted, field by field as the documentation has it.

use serde_json::{Value, json};

use super::{DISPLAY_NUMBER, PHONE_NUMBER_ID, Person};

/// A message of this person's. Whoever hides their number shows their id alone.
pub(super) fn message(person: Person, id: &str, fields: Value) -> Value {
    let mut message = json!({
        "from_user_id": person.id,
        "id": id,
        "timestamp": "1790000000",
    });
    let mut contact = json!({ "profile": { "name": person.name }, "user_id": person.id });
    if let Some(number) = person.number {
        message["from"] = json!(number);
        contact["wa_id"] = json!(number);
    }
    if let (Some(message), Value::Object(fields)) = (message.as_object_mut(), fields) {
        message.extend(fields);
    }
    change(json!({ "contacts": [contact], "messages": [message] }))
}

/// What became of a message.
pub(super) fn status(id: &str, sent: &Value, failed: Option<i64>) -> Value {
    let mut status = json!({
        "id": id,
        "status": if failed.is_some() { "failed" } else { "sent" },
        "timestamp": "1790000001",
        "recipient_type": sent["recipient_type"],
    });
    for (from, to) in [
        ("to", "recipient_id"),
        ("recipient", "recipient_user_id"),
        ("biz_opaque_callback_data", "biz_opaque_callback_data"),
    ] {
        if let Some(value) = sent.get(from) {
            status[to] = value.clone();
        }
    }
    if let Some(code) = failed {
        status["errors"] = json!([{
            "code": code,
            "title": "it failed",
            "message": "it failed",
            "error_data": { "details": "as Meta details it" },
        }]);
    }
    let mut contact = json!({ "profile": { "name": "somebody" } });
    for (from, to) in [("to", "wa_id"), ("recipient", "user_id")] {
        if let Some(value) = sent.get(from) {
            contact[to] = value.clone();
        }
    }
    change(json!({ "contacts": [contact], "statuses": [status] }))
}

fn change(mut value: Value) -> Value {
    value["messaging_product"] = json!("whatsapp");
    value["metadata"] = json!({
        "display_phone_number": DISPLAY_NUMBER,
        "phone_number_id": PHONE_NUMBER_ID,
    });
    json!({
        "object": "whatsapp_business_account",
        "entry": [{ "id": "102290129340398", "changes": [{ "value": value, "field": "messages" }] }],
    })
}
