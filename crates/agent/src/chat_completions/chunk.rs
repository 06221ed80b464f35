//! What the endpoint's JSON means.

use serde_json::Value;

use super::reasoning::{Thoughts, beside_call};
use crate::answer_reader::{AnswerReader, count_at, cut, parse, text_at, unreadable};
use crate::endpoint::{EndpointSettings, failure};
use crate::reply::MOST_CALLS;
use crate::{
    CallFragment, FinishReason, ModelError, NanoDollars, OpaquePart, ReplyDelta, TokenUsage,
};

#[derive(Debug)]
pub(crate) struct ChatCompletionsReader<'a> {
    settings: &'a EndpointSettings,
    thoughts: Thoughts,
    finish: Option<FinishReason>,
    failed: Option<ModelError>,
    /// Ids of the calls seen so far by their place, for servers that send no index.
    ids: Vec<Option<String>>,
    said_something: bool,
    saw_event: bool,
}

impl<'a> ChatCompletionsReader<'a> {
    pub(crate) fn new(settings: &'a EndpointSettings) -> Self {
        Self {
            settings,
            thoughts: Thoughts::default(),
            finish: None,
            failed: None,
            ids: Vec::new(),
            said_something: false,
            saw_event: false,
        }
    }
}

impl AnswerReader for ChatCompletionsReader<'_> {
    fn event(&mut self, data: &str) -> Result<Vec<ReplyDelta>, ModelError> {
        self.saw_event = true;
        let data = data.trim();
        if data.is_empty() {
            return Ok(Vec::new());
        }
        if data == "[DONE]" {
            return Ok(vec![ReplyDelta::Finish(
                self.finish.take().unwrap_or(FinishReason::Done),
            )]);
        }
        let value = parse(self.settings, data.as_bytes())?;
        Ok(self.deltas(&value, "delta"))
    }

    fn failed(&mut self) -> Option<ModelError> {
        self.failed.take()
    }

    fn whole(&mut self, body: &[u8]) -> Result<Vec<ReplyDelta>, ModelError> {
        let value = parse(self.settings, body)?;
        let mut deltas = self.deltas(&value, "message");
        if self.failed.is_some() {
            return Ok(deltas);
        }
        if self.finish.is_none() && !self.said_something {
            return Err(unreadable(self.settings, "neither a choice nor an error"));
        }
        deltas.push(ReplyDelta::Finish(
            self.finish.take().unwrap_or(FinishReason::Done),
        ));
        Ok(deltas)
    }

    /// Without `[DONE]` it is an answer if the server gave a reason to finish before.
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

impl ChatCompletionsReader<'_> {
    fn deltas(&mut self, value: &Value, kind: &str) -> Vec<ReplyDelta> {
        let mut deltas = Vec::new();
        deltas.extend(usage(value));
        // We ask for one choice.
        let Some(choice) = value.get("choices").and_then(|choices| choices.get(0)) else {
            return deltas;
        };
        if let Some(message) = choice.get(kind) {
            let thought = self.thoughts.take(message);
            let text = text_of(message);
            let calls = message.get("tool_calls").and_then(Value::as_array);
            let calls: Vec<_> = calls.into_iter().flatten().collect();
            if text.is_some() || !calls.is_empty() {
                deltas.extend(self.flushed_thoughts());
            }
            deltas.extend(text.map(ReplyDelta::Text));
            for (place, call) in calls.into_iter().enumerate() {
                deltas.extend(beside_call(call).map(|data| self.opaque(data)));
                deltas.push(ReplyDelta::ToolCall(self.fragment(call, place, kind)));
            }
            self.said_something |= !deltas.is_empty();
            // Behind the line above: thoughts alone are not an answer, and a server that only
            // thinks has said nothing.
            deltas.extend((thought > 0).then_some(ReplyDelta::Thinking(thought)));
        }
        self.failed = self.failure(choice);
        // Usage may follow, so the end is kept until the stream itself ends.
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            deltas.extend(self.flushed_thoughts());
            self.finish = Some(match reason {
                "length" | "max_tokens" => FinishReason::Length,
                "content_filter" => FinishReason::Filtered,
                _ => FinishReason::Done,
            });
        }
        deltas
    }

    /// Routers say in the choice that the provider behind them failed.
    fn failure(&self, choice: &Value) -> Option<ModelError> {
        let error = choice.get("error").filter(|error| !error.is_null());
        if let Some(error) = error {
            return Some(failure::of_object(self.settings, error));
        }
        let reason = choice.get("finish_reason").and_then(Value::as_str);
        let failed = reason == Some("error");
        failed.then(|| unreadable(self.settings, "it ended with an error"))
    }

    /// Thoughts stand before what they led to.
    fn flushed_thoughts(&mut self) -> Option<ReplyDelta> {
        let thoughts = self.thoughts.flush()?;
        Some(self.opaque(thoughts))
    }

    fn opaque(&self, data: Value) -> ReplyDelta {
        ReplyDelta::Opaque(OpaquePart::new(self.settings.provider(), data))
    }

    fn fragment(&mut self, call: &Value, place: usize, kind: &str) -> CallFragment {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let function = call.get("function");
        let id = text(call.get("id")).filter(|id| !id.is_empty());
        let arguments = match function.and_then(|function| function.get("arguments")) {
            Some(Value::String(text)) => text.clone(),
            // Some servers send the object itself.
            Some(object @ Value::Object(_)) => object.to_string(),
            _ => String::new(),
        };
        CallFragment {
            index: if kind == "message" {
                place
            } else {
                self.index(call, id.as_deref())
            },
            id,
            name: text(function.and_then(|function| function.get("name"))),
            arguments,
        }
    }

    fn index(&mut self, call: &Value, id: Option<&str>) -> usize {
        if let Some(index) = call.get("index").and_then(Value::as_u64) {
            return usize::try_from(index).unwrap_or(usize::MAX);
        }
        // Without an index an unknown id opens a call, and anything else goes on with the last.
        let known = self.ids.iter().position(|other| other.as_deref() == id);
        match (id, known) {
            (Some(_), Some(place)) => place,
            // One more than are taken. It is passed over, and not looked for among all before it.
            (Some(_), None) if self.ids.len() >= MOST_CALLS => usize::MAX,
            (Some(id), None) => {
                self.ids.push(Some(id.to_owned()));
                self.ids.len() - 1
            }
            (None, _) => self.ids.len().saturating_sub(1),
        }
    }
}

/// Text is a string, or a list of parts. What a model says when it refuses is text too.
fn text_of(message: &Value) -> Option<String> {
    if let Some(refusal) = text_at(message, "refusal") {
        return Some(refusal.to_owned());
    }
    let text = match message.get("content")? {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts
                .iter()
                .filter_map(|part| part.get("text").and_then(Value::as_str));
            texts.collect()
        }
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

fn usage(value: &Value) -> Option<ReplyDelta> {
    let usage = value.get("usage").filter(|usage| usage.is_object())?;
    let count = |path| count_at(usage, path).unwrap_or(0);
    Some(ReplyDelta::Usage(TokenUsage {
        input_tokens: count("prompt_tokens"),
        output_tokens: count("completion_tokens"),
        // DeepSeek has a name of its own for it.
        cached_tokens: count("prompt_tokens_details.cached_tokens")
            .max(count("prompt_cache_hit_tokens")),
        cache_write_tokens: count("prompt_tokens_details.cache_write_tokens"),
        reasoning_tokens: count("completion_tokens_details.reasoning_tokens"),
        cost: cost(usage),
    }))
}

/// What OpenRouter says that it takes. With a key of one's own at the provider that is its fee, and what the
/// provider takes stands beside it or is not known.
fn cost(usage: &Value) -> Option<NanoDollars> {
    let amount = |path: &str| {
        let dollars = usage.pointer(path).and_then(Value::as_f64)?;
        NanoDollars::from_dollars(dollars)
    };
    let cost = amount("/cost")?;
    if usage.get("is_byok").and_then(Value::as_bool) != Some(true) {
        return Some(cost);
    }
    amount("/cost_details/upstream_inference_cost").map(|upstream| cost.plus(upstream))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::endpoint::read_events;

    const STREAM: &str = concat!(
        ": hello\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"Grüße \"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\u{1f600}\"}}]}\r\r",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\ndata: \"function\":{\"name\":\"t\",\"arguments\":\"{\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]}}]}\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n",
        "data: [DONE]\n\n",
    );

    fn settings() -> EndpointSettings {
        EndpointSettings::new("http://127.0.0.1:1/v1", None, "m")
    }

    fn deltas(pieces: &[&[u8]]) -> Vec<ReplyDelta> {
        read_events(&settings(), pieces).expect("readable")
    }

    fn event(json: &Value) -> (Vec<ReplyDelta>, Option<ModelError>) {
        let settings = settings();
        let mut reader = ChatCompletionsReader::new(&settings);
        let deltas = reader.event(&json.to_string()).expect("readable");
        (deltas, reader.failed())
    }

    #[test]
    fn a_provider_that_failed_behind_a_router_is_a_failure() {
        let usage = json!({"prompt_tokens": 5});
        let failed = json!({"code": 502, "message": "upstream broke"});
        for choice in [
            json!({"delta": {"content": ""}, "finish_reason": "error"}),
            json!({"delta": {"content": "half"}, "error": failed}),
        ] {
            let (deltas, failed) = event(&json!({"choices": [choice], "usage": usage}));
            assert!(matches!(deltas[0], ReplyDelta::Usage(_)), "{deltas:?}");
            assert!(failed.is_some_and(|error| error.is_passing()), "{choice}");
        }
    }

    #[test]
    fn calls_without_an_index_are_bounded() {
        let call = |id: usize| json!({"id": id.to_string(), "function": {"name": "t"}});
        let calls: Vec<_> = (0..1000).map(call).collect();
        let (deltas, _) = event(&json!({"choices": [{"delta": {"tool_calls": calls}}]}));
        let known = deltas.iter().filter(|delta| {
            let ReplyDelta::ToolCall(call) = delta else {
                return false;
            };
            call.index < MOST_CALLS
        });
        assert_eq!(known.count(), MOST_CALLS);
        let settings = settings();
        let mut reader = ChatCompletionsReader::new(&settings);
        for id in 0..1000 {
            reader.index(&json!({}), Some(&id.to_string()));
        }
        assert_eq!(reader.ids.len(), MOST_CALLS);
    }

    #[test]
    fn with_a_key_of_ones_own_the_providers_price_is_added_or_unknown() {
        let cost = |usage| {
            let (deltas, _) = event(&json!({"usage": usage}));
            let ReplyDelta::Usage(usage) = deltas[0] else {
                panic!("{deltas:?}")
            };
            usage.cost.map(NanoDollars::dollars)
        };
        let upstream = json!({"upstream_inference_cost": 0.5});
        assert_eq!(cost(json!({"cost": 0.25})), Some(0.25));
        assert_eq!(
            cost(json!({"cost": 0.25, "is_byok": false, "cost_details": upstream})),
            Some(0.25)
        );
        assert_eq!(
            cost(json!({"cost": 0.25, "is_byok": true, "cost_details": upstream})),
            Some(0.75)
        );
        assert_eq!(cost(json!({"cost": 0.25, "is_byok": true})), None);
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_deltas(cuts in proptest::collection::vec(1_usize..30, 1..40)) {
            let mut rest = STREAM.as_bytes();
            let mut pieces = Vec::new();
            for cut in cuts.iter().cycle() {
                let (piece, later) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            let whole = deltas(&[STREAM.as_bytes()]);
            prop_assert_eq!(whole.len(), 6);
            prop_assert_eq!(deltas(&pieces), whole);
        }

        #[test]
        fn no_json_makes_it_panic(data in "[\\[\\]{}:,\"a-z0-9 ]{0,80}") {
            let settings = settings();
            let mut chunks = ChatCompletionsReader::new(&settings);
            let _ = chunks.event(&data);
            let _ = chunks.whole(data.as_bytes());
        }
    }
}
