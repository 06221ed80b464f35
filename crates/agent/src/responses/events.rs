//! What the endpoint's events mean.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer_reader::{AnswerReader, count_at, cut, parse, text_at, unreadable};
use crate::endpoint::{EndpointSettings, failure};
use crate::{CallFragment, FinishReason, ModelError, OpaquePart, ReplyDelta, TokenUsage};

#[derive(Debug)]
pub(crate) struct ResponsesReader<'a> {
    settings: &'a EndpointSettings,
    /// What came of each item in pieces, by its place in the answer.
    items: BTreeMap<u64, ItemSoFar>,
    calls: usize,
    failed: Option<ModelError>,
    saw_event: bool,
}

#[derive(Debug, Default)]
struct ItemSoFar {
    /// The number of the call that it is.
    call: Option<usize>,
    /// Whether its text or arguments came in pieces, so that the whole is a repetition.
    in_pieces: bool,
    done: bool,
}

impl<'a> ResponsesReader<'a> {
    pub(crate) fn new(settings: &'a EndpointSettings) -> Self {
        Self {
            settings,
            items: BTreeMap::new(),
            calls: 0,
            failed: None,
            saw_event: false,
        }
    }
}

impl AnswerReader for ResponsesReader<'_> {
    fn event(&mut self, data: &str) -> Result<Vec<ReplyDelta>, ModelError> {
        self.saw_event = true;
        if data.trim().is_empty() || data.trim() == "[DONE]" {
            return Ok(Vec::new());
        }
        let event = parse(self.settings, data.as_bytes())?;
        let null = Value::Null;
        let response = event.get("response").unwrap_or(&null);
        Ok(match text_at(&event, "type").unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => self.text(&event),
            "response.reasoning_text.delta" => thought(&event, "delta").into_iter().collect(),
            "response.output_item.added" => self.added(&event),
            "response.function_call_arguments.delta" => self.arguments(&event, "delta"),
            "response.function_call_arguments.done" => self.arguments(&event, "arguments"),
            "response.output_item.done" => self.done(&event),
            "response.completed" | "response.incomplete" | "response.done" => {
                self.finished(response)
            }
            "response.failed" => {
                let error = response.get("error").unwrap_or(&event);
                self.failed = Some(failure::of_object(self.settings, error));
                usage(response).into_iter().collect()
            }
            // The error itself, with its fields beside the type.
            "error" => return Err(failure::of_object(self.settings, &event)),
            _ => Vec::new(),
        })
    }

    fn failed(&mut self) -> Option<ModelError> {
        self.failed.take()
    }

    fn whole(&mut self, body: &[u8]) -> Result<Vec<ReplyDelta>, ModelError> {
        let response = parse(self.settings, body)?;
        if !response.get("output").is_some_and(Value::is_array) {
            return Err(unreadable(self.settings, "neither output nor an error"));
        }
        Ok(self.finished(&response))
    }

    fn end(&mut self) -> Result<Vec<ReplyDelta>, ModelError> {
        if self.saw_event {
            return Err(cut(self.settings));
        }
        Err(unreadable(self.settings, "it is not a stream of events"))
    }
}

impl ResponsesReader<'_> {
    fn text(&mut self, event: &Value) -> Vec<ReplyDelta> {
        let Some(piece) = text_at(event, "delta") else {
            return Vec::new();
        };
        self.item(event).in_pieces = true;
        vec![ReplyDelta::Text(piece.to_owned())]
    }

    fn added(&mut self, event: &Value) -> Vec<ReplyDelta> {
        let call = event.get("item").filter(|item| is_call(item));
        let call = call.map(|call| self.open_call(event, call));
        call.map(ReplyDelta::ToolCall).into_iter().collect()
    }

    /// The call with its name and id. Its arguments follow.
    fn open_call(&mut self, event: &Value, call: &Value) -> CallFragment {
        let index = self.calls;
        self.calls += 1;
        self.item(event).call = Some(index);
        let text = |name| text_at(call, name).map(str::to_owned);
        CallFragment {
            index,
            id: text("call_id"),
            name: text("name"),
            arguments: String::new(),
        }
    }

    /// A piece of arguments, or all of them where none came in pieces.
    fn arguments(&mut self, event: &Value, name: &str) -> Vec<ReplyDelta> {
        let piece = text_at(event, name).unwrap_or_default();
        let item = self.item(event);
        let repeats = name != "delta" && item.in_pieces;
        let (Some(index), false, false) = (item.call, repeats, piece.is_empty()) else {
            return Vec::new();
        };
        item.in_pieces = true;
        vec![ReplyDelta::ToolCall(CallFragment {
            index,
            arguments: piece.to_owned(),
            ..CallFragment::default()
        })]
    }

    /// An item as a whole: new are thoughts, and what did not come in pieces.
    fn done(&mut self, event: &Value) -> Vec<ReplyDelta> {
        let item = event.get("item").unwrap_or(&Value::Null);
        let so_far = self.item(event);
        // Each item once, whether it is told of as it ends, in the answer as a whole, or both.
        if std::mem::replace(&mut so_far.done, true) {
            return Vec::new();
        }
        let (in_pieces, call) = (so_far.in_pieces, so_far.call);
        match text_at(item, "type").unwrap_or_default() {
            "reasoning" => {
                let counted = thought(item, "encrypted_content");
                counted.into_iter().chain(self.thoughts(item)).collect()
            }
            "function_call" => {
                let mut deltas = Vec::new();
                if call.is_none() {
                    deltas.push(ReplyDelta::ToolCall(self.open_call(event, item)));
                }
                let arguments = item.get("arguments").unwrap_or(&Value::Null);
                let place = event.get("output_index");
                let event = json!({"output_index": place, "arguments": arguments});
                deltas.extend(self.arguments(&event, "arguments"));
                deltas
            }
            "message" if !in_pieces => texts(item),
            _ => Vec::new(),
        }
    }

    /// Thoughts that are not encrypted are known to the provider by their id only, and we ask it to keep
    /// nothing.
    fn thoughts(&self, item: &Value) -> Option<ReplyDelta> {
        text_at(item, "encrypted_content")?;
        let part = OpaquePart::new(self.settings.provider(), item.clone());
        Some(ReplyDelta::Opaque(part))
    }

    /// The end, with whatever was not said before: some servers leave the events of items out.
    fn finished(&mut self, response: &Value) -> Vec<ReplyDelta> {
        let mut deltas = Vec::new();
        let output = response.get("output").and_then(Value::as_array);
        for (place, item) in output.into_iter().flatten().enumerate() {
            deltas.extend(self.done(&json!({"output_index": place, "item": item})));
        }
        deltas.extend(usage(response));
        deltas.push(ReplyDelta::Finish(finish(response)));
        deltas
    }

    fn item(&mut self, event: &Value) -> &mut ItemSoFar {
        let place = count_at(event, "output_index").unwrap_or(0);
        self.items.entry(place).or_default()
    }
}

/// How much was thought, by the text at `name`.
fn thought(at: &Value, name: &str) -> Option<ReplyDelta> {
    text_at(at, name).map(|text| ReplyDelta::Thinking(text.len()))
}

fn is_call(item: &Value) -> bool {
    text_at(item, "type") == Some("function_call")
}

fn texts(item: &Value) -> Vec<ReplyDelta> {
    let parts = item.get("content").and_then(Value::as_array);
    let texts = parts.into_iter().flatten().filter_map(|part| {
        let text = text_at(part, "text").or_else(|| text_at(part, "refusal"));
        text.map(|text| ReplyDelta::Text(text.to_owned()))
    });
    texts.collect()
}

fn finish(response: &Value) -> FinishReason {
    let reason = response.get("incomplete_details");
    match reason.and_then(|details| text_at(details, "reason")) {
        Some("content_filter") => FinishReason::Filtered,
        Some(_) => FinishReason::Length,
        None => FinishReason::Done,
    }
}

fn usage(response: &Value) -> Option<ReplyDelta> {
    let usage = response.get("usage").filter(|usage| usage.is_object())?;
    let count = |path| count_at(usage, path).unwrap_or(0);
    Some(ReplyDelta::Usage(TokenUsage {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        cached_tokens: count("input_tokens_details.cached_tokens"),
        cache_write_tokens: 0,
        reasoning_tokens: count("output_tokens_details.reasoning_tokens"),
        cost: None,
    }))
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
