//! What the endpoint's events mean.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer_reader::{AnswerReader, count_at, cut, parse, text_at, unreadable};
use crate::endpoint::EndpointSettings;
use crate::{CallFragment, FinishReason, ModelError, OpaquePart, ReplyDelta, TokenUsage};

#[derive(Debug)]
pub(crate) struct AnthropicReader<'a> {
    settings: &'a EndpointSettings,
    /// Blocks that have begun and not ended, by their index.
    open: BTreeMap<u64, OpenBlock>,
    calls: usize,
    usage: WireUsage,
    finish: Option<FinishReason>,
    saw_event: bool,
}

/// A block as far as it has come.
#[derive(Debug)]
enum OpenBlock {
    Text,
    Call {
        index: usize,
        /// Whether any of its arguments came.
        argued: bool,
    },
    /// Thinking, whole or redacted, with the signature when it comes.
    Opaque(Value),
    /// A kind we do not know and never asked for.
    Unknown,
}

/// Figures as this dialect counts: cached input beside the rest, not within.
#[derive(Clone, Copy, Debug, Default)]
struct WireUsage {
    fresh: u64,
    cached: u64,
    written: u64,
    output: u64,
    reasoning: u64,
}

impl<'a> AnthropicReader<'a> {
    pub(crate) fn new(settings: &'a EndpointSettings) -> Self {
        Self {
            settings,
            open: BTreeMap::new(),
            calls: 0,
            usage: WireUsage::default(),
            finish: None,
            saw_event: false,
        }
    }
}

impl AnswerReader for AnthropicReader<'_> {
    fn event(&mut self, data: &str) -> Result<Vec<ReplyDelta>, ModelError> {
        self.saw_event = true;
        if data.trim().is_empty() || data.trim() == "[DONE]" {
            return Ok(Vec::new());
        }
        let event = parse(self.settings, data.as_bytes())?;
        Ok(match text_at(&event, "type").unwrap_or_default() {
            "message_start" => self.usage_of(event.get("message")).into_iter().collect(),
            "content_block_start" => self.start(&event),
            "content_block_delta" => self.delta(&event).into_iter().collect(),
            "content_block_stop" => self.stop(index(&event)).into_iter().collect(),
            "message_delta" => {
                if let Some(delta) = event.get("delta") {
                    // Figures may come in several such events, of which one says why it stopped; a
                    // later one without that must not take it away.
                    self.finish = finish(delta).or(self.finish.take());
                }
                self.usage_of(Some(&event)).into_iter().collect()
            }
            "message_stop" => self.finished(),
            // Pings, and what this dialect learns after us.
            _ => Vec::new(),
        })
    }

    fn whole(&mut self, body: &[u8]) -> Result<Vec<ReplyDelta>, ModelError> {
        let value = parse(self.settings, body)?;
        let Some(blocks) = value.get("content").and_then(Value::as_array) else {
            return Err(unreadable(self.settings, "neither content nor an error"));
        };
        let mut deltas: Vec<_> = self.usage_of(Some(&value)).into_iter().collect();
        for (index, block) in blocks.iter().enumerate() {
            deltas.extend(self.start(&json!({"index": index, "content_block": block})));
            deltas.extend(self.stop(index as u64));
        }
        self.finish = finish(&value);
        deltas.extend(self.finished());
        Ok(deltas)
    }

    fn end(&mut self) -> Result<Vec<ReplyDelta>, ModelError> {
        match self.finish {
            Some(_) => Ok(self.finished()),
            None if !self.saw_event => {
                Err(unreadable(self.settings, "it is not a stream of events"))
            }
            None => Err(cut(self.settings)),
        }
    }
}

impl AnthropicReader<'_> {
    fn start(&mut self, event: &Value) -> Vec<ReplyDelta> {
        let null = Value::Null;
        let block = event.get("content_block").unwrap_or(&null);
        let mut deltas = Vec::new();
        // Kept by index: blocks may begin before another has ended, and pieces name only the index.
        let open = match text_at(block, "type").unwrap_or_default() {
            "text" => {
                deltas.extend(text_at(block, "text").map(|text| ReplyDelta::Text(text.to_owned())));
                OpenBlock::Text
            }
            "tool_use" => {
                let call = self.call(block);
                deltas.push(ReplyDelta::ToolCall(call.0));
                call.1
            }
            "thinking" | "redacted_thinking" => {
                let thought = text_at(block, "thinking").or_else(|| text_at(block, "data"));
                deltas.extend(thought.map(|text| ReplyDelta::Thinking(text.len())));
                OpenBlock::Opaque(block.clone())
            }
            _ => OpenBlock::Unknown,
        };
        self.open.insert(index(event), open);
        deltas
    }

    fn call(&mut self, block: &Value) -> (CallFragment, OpenBlock) {
        let text = |name| text_at(block, name).map(str::to_owned);
        // Empty here while the arguments follow in pieces; some servers send them at once.
        let input = block.get("input").and_then(Value::as_object);
        let input = input.filter(|input| !input.is_empty());
        let arguments = input.map(|input| json!(input).to_string());
        let index = self.calls;
        self.calls += 1;
        let argued = arguments.is_some();
        let fragment = CallFragment {
            index,
            id: text("id"),
            name: text("name"),
            arguments: arguments.unwrap_or_default(),
        };
        (fragment, OpenBlock::Call { index, argued })
    }

    fn delta(&mut self, event: &Value) -> Option<ReplyDelta> {
        let delta = event.get("delta")?;
        match (text_at(delta, "type")?, self.open.get_mut(&index(event))) {
            // Text is text, also where its block was never announced.
            ("text_delta", _) => {
                text_at(delta, "text").map(|text| ReplyDelta::Text(text.to_owned()))
            }
            ("input_json_delta", Some(OpenBlock::Call { index, argued })) => {
                let piece = text_at(delta, "partial_json")?;
                *argued = true;
                Some(ReplyDelta::ToolCall(CallFragment {
                    index: *index,
                    arguments: piece.to_owned(),
                    ..CallFragment::default()
                }))
            }
            ("thinking_delta", Some(OpenBlock::Opaque(block))) => {
                let piece = text_at(delta, "thinking")?;
                append(block, "thinking", piece);
                Some(ReplyDelta::Thinking(piece.len()))
            }
            ("signature_delta", Some(OpenBlock::Opaque(block))) => {
                append(block, "signature", text_at(delta, "signature")?);
                None
            }
            _ => None,
        }
    }

    fn stop(&mut self, index: u64) -> Option<ReplyDelta> {
        match self.open.remove(&index)? {
            OpenBlock::Opaque(block) => {
                let part = OpaquePart::new(self.settings.provider(), block);
                Some(ReplyDelta::Opaque(part))
            }
            // A call without arguments has an empty object of them.
            OpenBlock::Call {
                index,
                argued: false,
            } => Some(ReplyDelta::ToolCall(CallFragment {
                index,
                arguments: "{}".to_owned(),
                ..CallFragment::default()
            })),
            OpenBlock::Call { .. } | OpenBlock::Text | OpenBlock::Unknown => None,
        }
    }

    fn finished(&mut self) -> Vec<ReplyDelta> {
        let finish = self.finish.take().unwrap_or(FinishReason::Done);
        vec![ReplyDelta::Finish(finish)]
    }

    /// The figures of the whole answer so far: each event repeats or adds some of them.
    fn usage_of(&mut self, at: Option<&Value>) -> Option<ReplyDelta> {
        let usage = at?.get("usage").filter(|usage| usage.is_object())?;
        let take = |figure: &mut u64, path: &str| {
            if let Some(count) = count_at(usage, path) {
                *figure = count;
            }
        };
        take(&mut self.usage.fresh, "input_tokens");
        take(&mut self.usage.cached, "cache_read_input_tokens");
        take(&mut self.usage.written, "cache_creation_input_tokens");
        take(&mut self.usage.output, "output_tokens");
        take(
            &mut self.usage.reasoning,
            "output_tokens_details.thinking_tokens",
        );
        Some(ReplyDelta::Usage(self.usage.into()))
    }
}

impl From<WireUsage> for TokenUsage {
    fn from(wire: WireUsage) -> Self {
        let read = wire.fresh.saturating_add(wire.cached);
        Self {
            input_tokens: read.saturating_add(wire.written),
            output_tokens: wire.output,
            cached_tokens: wire.cached,
            cache_write_tokens: wire.written,
            reasoning_tokens: wire.reasoning,
            cost: None,
        }
    }
}

fn index(event: &Value) -> u64 {
    count_at(event, "index").unwrap_or(0)
}

fn append(block: &mut Value, name: &str, piece: &str) {
    let Some(fields) = block.as_object_mut() else {
        return;
    };
    match fields.get_mut(name) {
        Some(Value::String(so_far)) => so_far.push_str(piece),
        _ => {
            fields.insert(name.to_owned(), piece.into());
        }
    }
}

fn finish(at: &Value) -> Option<FinishReason> {
    Some(match text_at(at, "stop_reason")? {
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::Filtered,
        _ => FinishReason::Done,
    })
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
