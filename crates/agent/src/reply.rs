//! Puts the pieces of an answer together.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::spending::tokens_in;
use crate::{
    AssistantPart, CallFragment, CallId, FinishReason, ModelError, OpaquePart, ReplyDelta,
    SpentTokens, TokenPrice, TokenUsage, ToolCall,
};

/// An answer as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct ModelReply {
    parts: Vec<ReplyPart>,
    calls: BTreeMap<usize, CallFragment>,
    /// The latest figures of this attempt.
    usage: TokenUsage,
    /// Bytes of this attempt that the model wrote, thoughts among them.
    seen: usize,
    /// What answers took that broke off before this one: they are paid for too.
    void: TokenUsage,
    /// Whether the last that came was that the answer starts anew.
    just_restarted: bool,
    /// What one attempt is thought to take, and by which price.
    estimate: TokenUsage,
    price: Option<TokenPrice>,
    pub(crate) finish: Option<FinishReason>,
    /// The model that answers, where it is not the first.
    pub(crate) model: Option<Arc<str>>,
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
pub(crate) const MOST_CALLS: usize = 64;

impl ModelReply {
    pub(crate) fn new(estimate: TokenUsage, price: Option<TokenPrice>) -> Self {
        Self {
            estimate,
            price,
            ..Self::default()
        }
    }

    pub(crate) fn take(&mut self, delta: ReplyDelta) {
        self.seen = self.seen.saturating_add(written(&delta));
        if !matches!(delta, ReplyDelta::GaveWay(_)) {
            self.just_restarted = matches!(delta, ReplyDelta::Restarted);
        }
        match delta {
            ReplyDelta::Text(piece) => self.take_text(&piece),
            ReplyDelta::ToolCall(fragment) => self.take_fragment(fragment),
            // It is stored within other JSON, which is read again up to a depth.
            ReplyDelta::Opaque(part) if !part.is_shallow() => {}
            ReplyDelta::Opaque(part) => self.parts.push(ReplyPart::Opaque(part)),
            ReplyDelta::Thinking(_) => {}
            // Later figures are totals, not additions.
            ReplyDelta::Usage(usage) => self.usage = usage,
            ReplyDelta::Restarted => {
                let mut void = self.void;
                void.add(self.at_least());
                *self = Self {
                    void,
                    just_restarted: true,
                    model: self.model.take(),
                    ..Self::new(self.estimate, self.price)
                };
            }
            ReplyDelta::GaveWay(model) => self.model = Some(model),
            ReplyDelta::Finish(finish) => self.finish = Some(finish),
        }
    }

    /// What it took with all its attempts, as far as that is known.
    pub(crate) fn usage(&self) -> TokenUsage {
        let mut usage = self.answer_usage();
        usage.add(self.void);
        usage
    }

    /// What the last attempt took: how long the question was, however often it was asked.
    pub(crate) fn answer_usage(&self) -> TokenUsage {
        match self.finish {
            Some(_) if self.usage.tokens() > 0 => self.usage,
            _ => self.at_least(),
        }
    }

    /// What has to be counted after this failure.
    pub(crate) fn spent_by_failure(&self, error: &ModelError) -> SpentTokens {
        let began = self.seen > 0 || self.usage.tokens() > 0;
        // Whoever tries again says so after each attempt, also after the last.
        if began || error.may_be_billed() && !self.just_restarted {
            return SpentTokens::Counted(self.usage());
        }
        match self.void.tokens() {
            0 => SpentTokens::Nothing,
            _ => SpentTokens::Counted(self.void),
        }
    }

    /// What this attempt took at least. Figures on the way are right about the input, and say of the output
    /// what was written until then, or less: Anthropic begins with one token.
    fn at_least(&self) -> TokenUsage {
        let (named, estimate) = (self.usage, self.estimate);
        let output_tokens = named
            .output_tokens
            .max(estimate.output_tokens)
            .max(tokens_in(self.seen));
        if named.input_tokens == 0 {
            let usage = TokenUsage {
                input_tokens: estimate.input_tokens,
                output_tokens,
                ..named
            };
            let cost = self.price.map(|price| price.of(usage));
            return TokenUsage {
                cost: cost.max(named.cost),
                ..usage
            };
        }
        let unnamed = TokenUsage {
            output_tokens: output_tokens - named.output_tokens,
            ..TokenUsage::default()
        };
        let more = self.price.map(|price| price.of(unnamed));
        TokenUsage {
            output_tokens,
            cost: named.cost.map(|cost| cost.plus(more.unwrap_or_default())),
            ..named
        }
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
            // Passed over and not an error: the calls before it are as good as ever.
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

/// Bytes that the model wrote. What goes back untouched was counted as thought, or is a signature.
fn written(delta: &ReplyDelta) -> usize {
    match delta {
        ReplyDelta::Text(text) => text.len(),
        ReplyDelta::Thinking(bytes) => *bytes,
        ReplyDelta::ToolCall(call) => {
            call.arguments.len() + call.name.as_ref().map_or(0, String::len)
        }
        ReplyDelta::Opaque(_)
        | ReplyDelta::Usage(_)
        | ReplyDelta::GaveWay(_)
        | ReplyDelta::Restarted
        | ReplyDelta::Finish(_) => 0,
    }
}

fn named(call: CallFragment, taken: &mut HashSet<CallId>) -> ToolCall {
    let given = call.id.filter(|id| is_usable(id)).map(CallId::new);
    // An id that is in the conversation already gets another: some servers count from zero in each
    // answer, and a result would be taken for that of an older call.
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
    use crate::NanoDollars;

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

    fn figures(input_tokens: u64, output_tokens: u64) -> ReplyDelta {
        ReplyDelta::Usage(TokenUsage {
            input_tokens,
            output_tokens,
            ..TokenUsage::default()
        })
    }

    /// A dollar for a million of anything, and an estimate of 100 and 10 tokens.
    fn reply() -> ModelReply {
        let dollar = NanoDollars::new(1_000_000_000);
        let price = TokenPrice {
            input: dollar,
            output: dollar,
            cached_input: None,
            cache_write: None,
        };
        let estimate = TokenUsage {
            input_tokens: 100,
            output_tokens: 10,
            ..TokenUsage::default()
        };
        ModelReply::new(estimate, Some(price))
    }

    fn cut() -> ModelError {
        ModelError::Cut {
            model: "m".to_owned(),
        }
    }

    fn text(bytes: usize) -> ReplyDelta {
        ReplyDelta::Text("x".repeat(bytes))
    }

    #[test]
    fn a_restart_forgets_what_was_said_and_not_what_it_took() {
        let mut reply = reply();
        reply.take(ReplyDelta::Text("half an ans".to_owned()));
        reply.take(figures(7, 0));
        reply.take(ReplyDelta::Restarted);
        reply.take(ReplyDelta::Text("whole".to_owned()));
        reply.take(figures(7, 2));
        reply.take(ReplyDelta::Finish(FinishReason::Done));
        assert_eq!(reply.text(), "whole");
        let usage = reply.usage();
        assert_eq!(usage.input_tokens, 14, "both are paid for");
        assert_eq!(
            reply.answer_usage().input_tokens,
            7,
            "the question is no longer"
        );
        assert_eq!(usage.output_tokens, 10 + 2);
    }

    #[test]
    fn an_unfinished_answer_took_no_less_than_what_was_seen_of_it() {
        let mut reply = reply();
        assert_eq!(reply.usage().tokens(), 110, "as estimated");
        // As Anthropic begins every answer.
        reply.take(figures(50, 1));
        assert_eq!(reply.usage().tokens(), 60);
        reply.take(ReplyDelta::Thinking(3000));
        reply.take(text(3000));
        assert_eq!(reply.usage().tokens(), 2050);
        reply.take(figures(50, 70));
        reply.take(ReplyDelta::Finish(FinishReason::Done));
        assert_eq!(reply.usage().tokens(), 120, "whoever finished said it all");
    }

    #[test]
    fn what_is_added_to_figures_has_a_price_too() {
        let mut reply = reply();
        reply.take(ReplyDelta::Usage(TokenUsage {
            input_tokens: 50,
            output_tokens: 1,
            cost: Some(NanoDollars::new(5000)),
            ..TokenUsage::default()
        }));
        reply.take(text(3000));
        assert_eq!(reply.usage().cost, Some(NanoDollars::new(5000 + 999_000)));
    }

    #[test]
    fn a_failure_is_counted_where_the_provider_worked_for_it() {
        let refused = ModelError::Refused {
            model: "m".to_owned(),
            status: 400,
            detail: String::new(),
        };
        assert_eq!(reply().spent_by_failure(&refused), SpentTokens::Nothing);
        let counted = |reply: &ModelReply, error: &ModelError| match reply.spent_by_failure(error) {
            SpentTokens::Counted(usage) => usage.tokens(),
            SpentTokens::Nothing => 0,
        };
        assert_eq!(counted(&reply(), &cut()), 110);
        let mut begun = reply();
        begun.take(text(300));
        assert_eq!(counted(&begun, &refused), 200, "it had begun to answer");
        let mut again = reply();
        again.take(ReplyDelta::Restarted);
        assert_eq!(
            counted(&again, &cut()),
            110,
            "the failure that was just told"
        );
        again.take(ReplyDelta::Restarted);
        assert_eq!(counted(&again, &refused), 220);
    }

    #[test]
    fn what_is_nested_too_deeply_to_be_read_again_is_left_out() {
        let deep = |depth: usize| {
            let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let data = serde_json::from_str(&nested).expect("JSON");
            ReplyDelta::Opaque(OpaquePart::new("p", data))
        };
        let mut reply = reply();
        reply.take(deep(100));
        reply.take(deep(60));
        assert_eq!(reply.into_parts(&mut HashSet::new()).len(), 1);
    }
}
