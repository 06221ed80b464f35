//! What the endpoint's events mean. Each is an answer of its own, with the parts that are new.

use serde_json::{Map, Value, json};

use crate::answer_reader::{AnswerReader, count_at, cut, parse, text_at, unreadable};
use crate::endpoint::EndpointSettings;
use crate::{CallFragment, FinishReason, ModelError, OpaquePart, ReplyDelta, TokenUsage};

#[derive(Debug)]
pub(crate) struct GeminiReader<'a> {
    settings: &'a EndpointSettings,
    calls: usize,
    finish: Option<FinishReason>,
    failed: Option<ModelError>,
    saw_event: bool,
}

impl<'a> GeminiReader<'a> {
    pub(crate) fn new(settings: &'a EndpointSettings) -> Self {
        Self {
            settings,
            calls: 0,
            finish: None,
            failed: None,
            saw_event: false,
        }
    }
}

impl AnswerReader for GeminiReader<'_> {
    /// No event says that it is the last: the connection ends.
    fn event(&mut self, data: &str) -> Result<Vec<ReplyDelta>, ModelError> {
        self.saw_event = true;
        if data.trim().is_empty() || data.trim() == "[DONE]" {
            return Ok(Vec::new());
        }
        let value = parse(self.settings, data.as_bytes())?;
        Ok(self.deltas(&value))
    }

    fn failed(&mut self) -> Option<ModelError> {
        self.failed.take()
    }

    /// One answer, or the list of events that the endpoint sends where nobody asked for a stream of them.
    fn whole(&mut self, body: &[u8]) -> Result<Vec<ReplyDelta>, ModelError> {
        let value = parse(self.settings, body)?;
        self.saw_event = true;
        let mut deltas = Vec::new();
        match &value {
            Value::Array(events) => {
                for event in events {
                    let event = event.to_string();
                    deltas.extend(self.event(&event)?);
                }
            }
            value => deltas.extend(self.deltas(value)),
        }
        if self.failed.is_some() {
            return Ok(deltas);
        }
        if self.finish.is_none() && deltas.is_empty() {
            return Err(unreadable(
                self.settings,
                "neither a candidate nor an error",
            ));
        }
        deltas.extend(self.end()?);
        Ok(deltas)
    }

    fn end(&mut self) -> Result<Vec<ReplyDelta>, ModelError> {
        match self.finish.take() {
            Some(finish) => Ok(vec![ReplyDelta::Finish(finish)]),
            None if !self.saw_event => {
                Err(unreadable(self.settings, "it is not a stream of events"))
            }
            None => Err(cut(self.settings)),
        }
    }
}

impl GeminiReader<'_> {
    fn deltas(&mut self, value: &Value) -> Vec<ReplyDelta> {
        let mut deltas: Vec<_> = usage(value).into_iter().collect();
        if value.pointer("/promptFeedback/blockReason").is_some() {
            self.finish = Some(FinishReason::Filtered);
        }
        // We ask for one candidate.
        let Some(candidate) = value.pointer("/candidates/0") else {
            return deltas;
        };
        let parts = candidate
            .pointer("/content/parts")
            .and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part, &mut deltas);
        }
        if let Some(reason) = text_at(candidate, "finishReason") {
            match self.finish_of(reason) {
                Ok(finish) => self.finish = Some(finish),
                Err(error) => self.failed = Some(error),
            }
        }
        deltas
    }

    fn part(&mut self, part: &Value, deltas: &mut Vec<ReplyDelta>) {
        let call = part.get("functionCall");
        // Before the part that it signs, as `OpaquePart` promises: it goes back at the same place.
        deltas.extend(self.mark(part, call));
        if let Some(call) = call {
            deltas.push(ReplyDelta::ToolCall(self.call(call)));
            return;
        }
        // A summary of thoughts is for people, and we asked for none.
        let thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        deltas.extend(text_at(part, "text").map(|text| match thought {
            true => ReplyDelta::Thinking(text.len()),
            false => ReplyDelta::Text(text.to_owned()),
        }));
    }

    /// The signature of a part and the id of a call, which are wanted back with it.
    fn mark(&self, part: &Value, call: Option<&Value>) -> Option<ReplyDelta> {
        let mut mark = Map::new();
        if let Some(signature) = text_at(part, "thoughtSignature") {
            mark.insert("thoughtSignature".to_owned(), signature.into());
        }
        if let Some(id) = call.and_then(|call| text_at(call, "id")) {
            mark.insert("id".to_owned(), id.into());
        }
        let part = |data| OpaquePart::new(self.settings.provider(), Value::Object(data));
        (!mark.is_empty()).then(|| ReplyDelta::Opaque(part(mark)))
    }

    /// Calls come whole.
    fn call(&mut self, call: &Value) -> CallFragment {
        let index = self.calls;
        self.calls += 1;
        let text = |name| text_at(call, name).map(str::to_owned);
        CallFragment {
            index,
            id: text("id"),
            name: text("name"),
            arguments: call.get("args").unwrap_or(&json!({})).to_string(),
        }
    }

    fn finish_of(&self, reason: &str) -> Result<FinishReason, ModelError> {
        match reason {
            "STOP" | "FINISH_REASON_UNSPECIFIED" => Ok(FinishReason::Done),
            "MAX_TOKENS" => Ok(FinishReason::Length),
            // The model garbled a call: worth another try.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "OTHER" => {
                Err(unreadable(self.settings, format!("it ended with {reason}")))
            }
            _ => Ok(FinishReason::Filtered),
        }
    }
}

fn usage(value: &Value) -> Option<ReplyDelta> {
    let usage = value
        .get("usageMetadata")
        .filter(|usage| usage.is_object())?;
    let count = |path| count_at(usage, path).unwrap_or(0);
    let thoughts = count("thoughtsTokenCount");
    Some(ReplyDelta::Usage(TokenUsage {
        input_tokens: count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount")),
        output_tokens: count("candidatesTokenCount").saturating_add(thoughts),
        cached_tokens: count("cachedContentTokenCount"),
        cache_write_tokens: 0,
        reasoning_tokens: thoughts,
        cost: None,
    }))
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
