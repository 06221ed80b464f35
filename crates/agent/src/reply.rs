//! Puts the pieces of an answer together.

use std::collections::{BTreeMap, HashSet};

use crate::{
    AssistantPart, CallFragment, CallId, FinishReason, OpaquePart, ReplyDelta, TokenUsage, ToolCall,
};

/// An answer as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct ModelReply {
    parts: Vec<ReplyPart>,
    calls: BTreeMap<usize, CallFragment>,
    usage: TokenUsage,
    /// What answers took that broke off before this one: they are paid for too.
    void: TokenUsage,
    pub(crate) finish: Option<FinishReason>,
}

/// What stands at one place of the answer.
#[derive(Debug)]
enum ReplyPart {
    Text(String),
    /// The next call by the model's own count: pieces of several may come in any order.
    Call,
    Opaque(OpaquePart),
}

/// A model that calls more than this at once is out of its mind.
const MOST_CALLS: usize = 64;

impl ModelReply {
    pub(crate) fn take(&mut self, delta: ReplyDelta) {
        match delta {
            ReplyDelta::Text(piece) => self.take_text(&piece),
            ReplyDelta::ToolCall(fragment) => self.take_fragment(fragment),
            ReplyDelta::Opaque(part) => self.parts.push(ReplyPart::Opaque(part)),
            // Later figures are totals, not additions.
            ReplyDelta::Usage(usage) => self.usage = usage,
            ReplyDelta::Restarted => {
                let void = self.usage();
                *self = Self {
                    void,
                    ..Self::default()
                };
            }
            ReplyDelta::Finish(finish) => self.finish = Some(finish),
        }
    }

    pub(crate) fn usage(&self) -> TokenUsage {
        let mut usage = self.usage;
        usage.add(self.void);
        usage
    }

    fn take_text(&mut self, piece: &str) {
        match self.parts.last_mut() {
            Some(ReplyPart::Text(text)) => text.push_str(piece),
            _ if piece.is_empty() => {}
            _ => self.parts.push(ReplyPart::Text(piece.to_owned())),
        }
    }

    fn take_fragment(&mut self, fragment: CallFragment) {
        if !self.calls.contains_key(&fragment.index) {
            if self.calls.len() >= MOST_CALLS {
                return;
            }
            self.parts.push(ReplyPart::Call);
        }
        let call = self.calls.entry(fragment.index).or_default();
        call.id = call.id.take().or(fragment.id.filter(|id| !id.is_empty()));
        // Some servers repeat the name with every piece, others send it in pieces.
        if let Some(name) = fragment.name {
            let known = call.name.get_or_insert_default();
            if *known != name {
                known.push_str(&name);
            }
        }
        call.arguments.push_str(&fragment.arguments);
    }

    /// What it says, without what it does.
    pub(crate) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            ReplyPart::Text(text) => Some(text.as_str()),
            ReplyPart::Call | ReplyPart::Opaque(_) => None,
        });
        texts.collect()
    }

    /// Its parts in the model's order, each call with an id of its own that `taken` does not hold yet.
    pub(crate) fn into_parts(self, taken: &mut HashSet<CallId>) -> Vec<AssistantPart> {
        let mut calls = self.calls.into_values();
        let parts = self.parts.into_iter().filter_map(|part| match part {
            ReplyPart::Text(text) => Some(AssistantPart::Text { text }),
            ReplyPart::Opaque(part) => Some(AssistantPart::Opaque(part)),
            ReplyPart::Call => calls
                .next()
                .map(|call| AssistantPart::ToolCall(named(call, taken))),
        });
        parts.collect()
    }
}

fn named(call: CallFragment, taken: &mut HashSet<CallId>) -> ToolCall {
    let given = call.id.filter(|id| is_usable(id)).map(CallId::new);
    let given = given.filter(|id| !taken.contains(id));
    let id = given.unwrap_or_else(CallId::random);
    taken.insert(id.clone());
    ToolCall {
        id,
        name: call.name.unwrap_or_default(),
        arguments: call.arguments,
    }
}

/// Ids go back to the endpoint with the history, and not necessarily to the one that made them.
fn is_usable(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    (1..=64).contains(&id.len()) && id.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(index: usize, id: Option<&str>, name: Option<&str>, arguments: &str) -> ReplyDelta {
        ReplyDelta::ToolCall(CallFragment {
            index,
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            arguments: arguments.to_owned(),
        })
    }

    fn calls(deltas: impl IntoIterator<Item = ReplyDelta>) -> Vec<ToolCall> {
        let mut reply = ModelReply::default();
        deltas.into_iter().for_each(|delta| reply.take(delta));
        let parts = reply.into_parts(&mut HashSet::new()).into_iter();
        let calls = parts.filter_map(|part| match part {
            AssistantPart::ToolCall(call) => Some(call),
            _ => None,
        });
        calls.collect()
    }

    #[test]
    fn pieces_of_parallel_calls_are_sorted_by_index() {
        let calls = calls([
            fragment(1, Some("b"), Some("two"), "{\"x\""),
            fragment(0, Some("a"), Some("one"), "{}"),
            fragment(1, None, None, ":1}"),
        ]);
        let names: Vec<_> = calls
            .iter()
            .map(|call| (call.id.as_str(), &*call.name, &*call.arguments))
            .collect();
        assert_eq!(names, [("a", "one", "{}"), ("b", "two", "{\"x\":1}")]);
    }

    #[test]
    fn missing_and_repeated_ids_become_different_ones() {
        let calls = calls([
            fragment(0, None, Some("one"), ""),
            fragment(1, Some("x"), Some("two"), ""),
            fragment(2, Some("x"), Some("three"), ""),
            fragment(3, Some(""), Some("four"), ""),
            fragment(4, Some("not\nan id"), Some("five"), ""),
        ]);
        let ids: HashSet<_> = calls.iter().map(|call| &call.id).collect();
        assert_eq!(ids.len(), 5);
        assert_ne!(calls[4].id.as_str(), "not\nan id");
        assert_eq!(calls[1].id.as_str(), "x");
    }

    #[test]
    fn a_name_repeated_with_every_piece_is_one_name() {
        let calls = calls([
            fragment(0, Some("a"), Some("terminal"), "{"),
            fragment(0, Some("a"), Some("terminal"), "}"),
        ]);
        assert_eq!((&*calls[0].name, &*calls[0].arguments), ("terminal", "{}"));
    }

    #[test]
    fn a_restart_forgets_what_was_said_and_not_what_it_took() {
        let mut reply = ModelReply::default();
        let usage = ReplyDelta::Usage(TokenUsage {
            input_tokens: 7,
            ..TokenUsage::default()
        });
        reply.take(ReplyDelta::Text("half an ans".to_owned()));
        reply.take(usage.clone());
        reply.take(ReplyDelta::Restarted);
        reply.take(ReplyDelta::Text("whole".to_owned()));
        reply.take(usage);
        assert_eq!(reply.text(), "whole");
        assert_eq!(reply.usage().input_tokens, 14, "both are paid for");
    }
}
