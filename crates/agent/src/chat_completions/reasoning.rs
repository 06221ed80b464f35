//! Thoughts in chat completions, which no standard covers.
//!
//! `reasoning_details` is OpenRouter's list of signed and encrypted blocks, `reasoning_content` the plain
//! thoughts of DeepSeek, Kimi and others, who want them back while tools are called, and
//! `extra_content` beside a call is Gemini's signature of it. All come back to where they came from.

use serde_json::{Map, Value, json};

use crate::AssistantPart;
use crate::answer_reader::text_at;

/// Thoughts as far as they have come.
#[derive(Debug, Default)]
pub(super) struct Thoughts {
    content: String,
    details: Vec<Value>,
}

impl Thoughts {
    /// Takes what a message holds of them. Says how many bytes that were.
    pub(super) fn take(&mut self, message: &Value) -> usize {
        let content = text_at(message, "reasoning_content").unwrap_or_default();
        self.content.push_str(content);
        let details = message.get("reasoning_details").and_then(Value::as_array);
        let mut detailed = 0;
        for detail in details.into_iter().flatten() {
            let texts = ["text", "summary", "data"].map(|name| text_at(detail, name));
            detailed += texts.into_iter().flatten().map(str::len).sum::<usize>();
            self.take_detail(detail);
        }
        // Several names for the same; the last is for people only.
        let shown = text_at(message, "reasoning").unwrap_or_default();
        content.len().max(detailed).max(shown.len())
    }

    /// All of them so far, if there are any.
    pub(super) fn flush(&mut self) -> Option<Value> {
        let thoughts = std::mem::take(self);
        let mut data = Map::new();
        if !thoughts.content.is_empty() {
            data.insert("reasoning_content".to_owned(), thoughts.content.into());
        }
        if !thoughts.details.is_empty() {
            data.insert("reasoning_details".to_owned(), thoughts.details.into());
        }
        (!data.is_empty()).then_some(Value::Object(data))
    }

    /// Pieces with one index and type are one block.
    fn take_detail(&mut self, detail: &Value) {
        let (Some(last), Some(detail)) = (self.details.last_mut(), detail.as_object()) else {
            self.details
                .extend(detail.is_object().then(|| detail.clone()));
            return;
        };
        let same = ["index", "type"].iter().all(|name| {
            let value = detail.get(*name);
            value.is_some_and(|value| !value.is_null()) && last.get(*name) == value
        });
        let Some(last) = last.as_object_mut().filter(|_| same) else {
            self.details.push(Value::Object(detail.clone()));
            return;
        };
        for (name, piece) in detail {
            match (last.get_mut(name), piece) {
                (Some(Value::String(so_far)), Value::String(piece)) if grows(name) => {
                    so_far.push_str(piece);
                }
                (_, Value::Null) => {}
                _ => {
                    last.insert(name.clone(), piece.clone());
                }
            }
        }
    }
}

fn grows(name: &str) -> bool {
    matches!(name, "text" | "summary" | "data")
}

/// What a message of the model gives back of its thoughts, as fields beside its content.
pub(super) fn returned(parts: &[AssistantPart], provider: &str) -> Map<String, Value> {
    let mut details = Vec::new();
    let mut content = String::new();
    let mut calls = false;
    for part in parts {
        match part {
            AssistantPart::ToolCall(_) => calls = true,
            AssistantPart::Opaque(part) => {
                let Some(data) = part.for_provider(provider) else {
                    continue;
                };
                let list = data.get("reasoning_details").and_then(Value::as_array);
                details.extend(list.into_iter().flatten().cloned());
                content.push_str(text_at(data, "reasoning_content").unwrap_or_default());
            }
            AssistantPart::Text { .. } | AssistantPart::Image(_) => {}
        }
    }
    let mut fields = Map::new();
    if !details.is_empty() {
        fields.insert("reasoning_details".to_owned(), details.into());
    }
    // Where no tool was called, some endpoints refuse a request that holds it.
    if calls && !content.is_empty() {
        fields.insert("reasoning_content".to_owned(), content.into());
    }
    fields
}

/// What stands beside a call and is wanted back with it.
pub(super) fn beside_call(call: &Value) -> Option<Value> {
    let extra = call
        .get("extra_content")
        .filter(|extra| extra.is_object())?;
    Some(json!({"extra_content": extra}))
}
