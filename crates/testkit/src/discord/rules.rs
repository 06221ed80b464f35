//! What Discord refuses in a message.

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::Value;

use super::rest::Refusal;
use super::world::Inner;

const INVALID: Refusal = (400, 50035, "Invalid Form Body");
const EMPTY: Refusal = (400, 50006, "Cannot send an empty message");
const TOO_LARGE: Refusal = (413, 40005, "Request entity too large");
const MOST_UPLOADED: usize = 10 << 20;

pub(super) fn check_message(
    inner: &Inner,
    channel: u64,
    body: &Value,
    file: Option<&Bytes>,
) -> Result<(), Refusal> {
    let content = body["content"].as_str().unwrap_or_default();
    if content.chars().count() > 2000 {
        return Err(INVALID);
    }
    if content.trim().is_empty() && file.is_none() {
        return Err(EMPTY);
    }
    if file.is_some_and(|file| file.len() > MOST_UPLOADED) {
        return Err(TOO_LARGE);
    }
    let nonce = body["nonce"].as_str().unwrap_or_default();
    if nonce.chars().count() > 25 {
        return Err(INVALID);
    }
    let reference = &body["message_reference"];
    if let Some(id) = reference["message_id"].as_str() {
        let id = id.parse().map_err(|_| INVALID)?;
        let is_there = inner.messages.contains_key(&(channel, id));
        if !is_there && reference["fail_if_not_exists"] != false {
            return Err(INVALID);
        }
    }
    check_components(&body["components"])
}

fn check_components(components: &Value) -> Result<(), Refusal> {
    let none = Vec::new();
    let rows = components.as_array().unwrap_or(&none);
    let mut known = HashSet::new();
    if rows.len() > 5 {
        return Err(INVALID);
    }
    for row in rows {
        let buttons = row["components"].as_array().ok_or(INVALID)?;
        if row["type"] != 1 || !(1..=5).contains(&buttons.len()) {
            return Err(INVALID);
        }
        for button in buttons {
            let id = button["custom_id"].as_str().ok_or(INVALID)?;
            let label = button["label"].as_str().ok_or(INVALID)?;
            let fits = (1..=100).contains(&id.chars().count())
                && (1..=80).contains(&label.chars().count())
                && button["type"] == 2;
            if !fits || !known.insert(id.to_owned()) {
                return Err(INVALID);
            }
        }
    }
    Ok(())
}
