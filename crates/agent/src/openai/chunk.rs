//! What the endpoint's JSON means.

use serde_json::Value;

use super::{Settings, failure};
use crate::{Delta, Finish, Fragment, ModelError, Usage};

/// Reads one answer, event by event or whole.
#[derive(Debug)]
pub(super) struct Chunks<'a> {
    settings: &'a Settings,
    finish: Option<Finish>,
    /// Ids of the calls seen so far by their place, for servers that send no index.
    ids: Vec<Option<String>>,
    said_something: bool,
    saw_event: bool,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        Self {
            settings,
            finish: None,
            ids: Vec::new(),
            said_something: false,
            saw_event: false,
        }
    }

    /// The deltas of one event of a stream.
    pub(super) fn event(&mut self, data: &str) -> Result<Vec<Delta>, ModelError> {
        self.saw_event = true;
        let data = data.trim();
        if data.is_empty() {
            return Ok(Vec::new());
        }
        if data == "[DONE]" {
            return Ok(vec![Delta::Finish(
                self.finish.take().unwrap_or(Finish::Done),
            )]);
        }
        let value = self.parse(data.as_bytes())?;
        Ok(self.deltas(&value, "delta"))
    }

    /// The deltas of an answer that came in one piece.
    pub(super) fn whole(&mut self, body: &[u8]) -> Result<Vec<Delta>, ModelError> {
        let value = self.parse(body)?;
        let mut deltas = self.deltas(&value, "message");
        if self.finish.is_none() && !self.said_something {
            return Err(self.unreadable("neither a choice nor an error"));
        }
        deltas.push(Delta::Finish(self.finish.take().unwrap_or(Finish::Done)));
        Ok(deltas)
    }

    /// What the end of the connection means without `[DONE]`: an answer, if the server gave a reason
    /// to finish before.
    pub(super) fn end(&mut self) -> Result<Vec<Delta>, ModelError> {
        match self.finish.take() {
            Some(finish) => Ok(vec![Delta::Finish(finish)]),
            None if !self.saw_event => Err(self.unreadable("it is not a stream of events")),
            None => Err(ModelError::Cut {
                model: self.settings.model.clone(),
            }),
        }
    }

    fn parse(&self, json: &[u8]) -> Result<Value, ModelError> {
        let value: Value =
            serde_json::from_slice(json).map_err(|error| self.unreadable(&error.to_string()))?;
        match value.get("error") {
            None | Some(Value::Null) => Ok(value),
            Some(error) => Err(failure::of_object(self.settings, error)),
        }
    }

    fn deltas(&mut self, value: &Value, kind: &str) -> Vec<Delta> {
        let mut deltas = Vec::new();
        deltas.extend(usage(value));
        // We ask for one choice.
        let Some(choice) = value.get("choices").and_then(|choices| choices.get(0)) else {
            return deltas;
        };
        if let Some(message) = choice.get(kind) {
            if let Some(text) = text_of(message) {
                deltas.push(Delta::Text(text));
            }
            let calls = message.get("tool_calls").and_then(Value::as_array);
            for (place, call) in calls.into_iter().flatten().enumerate() {
                deltas.push(Delta::ToolCall(self.fragment(call, place, kind)));
            }
            self.said_something |= !deltas.is_empty();
        }
        // Usage may follow, so the end is kept until the stream itself ends.
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(match reason {
                "length" | "max_tokens" => Finish::Length,
                "content_filter" => Finish::Filtered,
                _ => Finish::Done,
            });
        }
        deltas
    }

    fn fragment(&mut self, call: &Value, place: usize, kind: &str) -> Fragment {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let function = call.get("function");
        let id = text(call.get("id")).filter(|id| !id.is_empty());
        let arguments = match function.and_then(|function| function.get("arguments")) {
            Some(Value::String(text)) => text.clone(),
            // Some servers send the object itself.
            Some(object @ Value::Object(_)) => object.to_string(),
            _ => String::new(),
        };
        Fragment {
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
            (Some(id), None) => {
                self.ids.push(Some(id.to_owned()));
                self.ids.len() - 1
            }
            (None, _) => self.ids.len().saturating_sub(1),
        }
    }

    fn unreadable(&self, what: &str) -> ModelError {
        ModelError::Unreadable {
            model: self.settings.model.clone(),
            what: what.to_owned(),
        }
    }
}

/// Text is a string, or a list of parts.
fn text_of(message: &Value) -> Option<String> {
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

fn usage(value: &Value) -> Option<Delta> {
    let usage = value.get("usage").filter(|usage| usage.is_object())?;
    let count = |name| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    Some(Delta::Usage(Usage {
        input_tokens: count("prompt_tokens"),
        output_tokens: count("completion_tokens"),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sse::Events;
    use super::*;

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

    fn settings() -> Settings {
        Settings::new("http://127.0.0.1:1/v1", None, "m")
    }

    fn deltas<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Delta> {
        let mut events = Events::new(1 << 20);
        let settings = settings();
        let mut chunks = Chunks::new(&settings);
        let mut all = Vec::new();
        for piece in pieces {
            for event in events.push(piece).expect("small") {
                all.extend(chunks.event(&event).expect("readable"));
            }
        }
        all
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
            let whole = deltas([STREAM.as_bytes()]);
            prop_assert_eq!(whole.len(), 6);
            prop_assert_eq!(deltas(pieces), whole);
        }

        #[test]
        fn no_json_makes_it_panic(data in "[\\[\\]{}:,\"a-z0-9 ]{0,80}") {
            let settings = settings();
            let mut chunks = Chunks::new(&settings);
            let _ = chunks.event(&data);
            let _ = chunks.whole(data.as_bytes());
        }
    }
}
