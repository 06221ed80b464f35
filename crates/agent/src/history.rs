//! Keeps a conversation in a shape that every provider accepts, and within its budget.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::{CallId, Message, MessagePart, ModelText};

/// How much of a conversation the model is shown, in bytes of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryBudget {
    bytes: usize,
}

impl HistoryBudget {
    pub fn bytes(bytes: usize) -> Self {
        Self { bytes }
    }

    /// Three quarters of a context window, at three bytes for a token: a little is left for the
    /// tools and for the answer.
    pub fn for_context(tokens: usize) -> Self {
        Self {
            bytes: tokens.saturating_mul(9) / 4,
        }
    }

    /// The smaller of two.
    pub(crate) fn min(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.min(other.bytes),
        }
    }

    /// What is left of it beside something of this size.
    pub(crate) fn beside(self, bytes: usize) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(bytes),
        }
    }

    /// Half of it, or half of what there is to show if that is less.
    pub(crate) fn halved_for(self, shown: &[Message]) -> Self {
        let size = shown.iter().map(Message::size).sum::<usize>();
        Self {
            bytes: self.bytes.min(size) / 2,
        }
    }
}

/// Gives every tool call its result, directly after the message that made it, and drops results that
/// nobody asked for.
///
/// A call without a result was cut by a crash. `begun` names those the journal saw start: whether
/// they happened is not known, and the model is told so. The others never ran.
pub fn mend(history: Vec<Message>, begun: &HashSet<CallId>) -> Vec<Message> {
    let mut results: HashMap<CallId, Message> = HashMap::new();
    for message in &history {
        if let Message::Tool { call_id, .. } = message {
            results
                .entry(call_id.clone())
                .or_insert_with(|| message.clone());
        }
    }
    let mut mended = Vec::with_capacity(history.len());
    for message in history {
        if matches!(message, Message::Tool { .. }) {
            continue;
        }
        let calls: Vec<_> = message.tool_calls().map(|call| call.id.clone()).collect();
        mended.push(message);
        for call in calls {
            let result = results.remove(&call);
            mended.push(result.unwrap_or_else(|| missing(begun.contains(&call), call)));
        }
    }
    mended
}

pub(crate) const MAYBE: &str =
    "interrupted by a restart; it may or may not have happened. Look before you do it again.";

fn missing(begun: bool, call: CallId) -> Message {
    let text = if begun {
        MAYBE
    } else {
        "not run: a restart came first. Call it again if it is still wanted."
    };
    Message::failed_tool(call, text)
}

/// The most recent part of `history` that fits. It starts with something a person said, so calls and
/// their results stay together.
///
/// Everything from `keep` on, the turn at hand, stays; where it alone is too large, the oldest tool
/// results give way. What was left out is said in its place.
pub fn trim(history: &[Message], keep: usize, budget: HistoryBudget) -> Cow<'_, [Message]> {
    let total: usize = history.iter().map(Message::size).sum();
    if total <= budget.bytes {
        return Cow::Borrowed(history);
    }
    let mut start = 0;
    let mut size = total;
    let mut passed = 0;
    // Never beyond what the turn is about: an answer to a question that is not shown is worse than
    // a request that is too long.
    for (index, message) in history.iter().enumerate().take(keep.saturating_add(1)) {
        if matches!(message, Message::User { .. }) {
            start = index;
            size -= passed;
            passed = 0;
            if size <= budget.bytes {
                break;
            }
        }
        passed += message.size();
    }
    let mut kept = Vec::with_capacity(history.len() - start + 1);
    if start > 0 {
        kept.push(Message::user(ModelText::assembled(format!(
            "[{start} earlier messages of this conversation were left out because it has become long]"
        ))));
    }
    kept.extend_from_slice(&history[start..]);
    shorten_results(&mut kept, budget);
    Cow::Owned(kept)
}

fn shorten_results(messages: &mut [Message], budget: HistoryBudget) {
    let mut total: usize = messages.iter().map(Message::size).sum();
    for message in messages {
        if total <= budget.bytes {
            return;
        }
        let size = message.size();
        if let Message::Tool { parts, .. } = message {
            let note = format!("[{size} bytes of an earlier result were left out]");
            if note.len() < size {
                total -= size - note.len();
                *parts = vec![MessagePart::text(ModelText::assembled(note))];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AssistantPart, ToolCall};

    fn call(id: &str) -> ToolCall {
        ToolCall {
            id: CallId::new(id),
            name: "terminal".to_owned(),
            arguments: "{}".to_owned(),
        }
    }

    fn calling(ids: &[&str]) -> Message {
        let calls = ids.iter().map(|id| AssistantPart::ToolCall(call(id)));
        Message::Assistant {
            parts: calls.collect(),
        }
    }

    fn result(id: &str, text: &str) -> Message {
        Message::tool(CallId::new(id), ModelText::assembled(text))
    }

    #[test]
    fn a_call_cut_by_a_crash_is_answered_honestly() {
        let history = vec![
            Message::user("go"),
            calling(&["a", "b", "c"]),
            result("a", "done"),
        ];
        let mended = mend(history, &HashSet::from([CallId::new("b")]));
        assert_eq!(mended.len(), 5);
        assert_eq!(mended[2], result("a", "done"));
        assert_eq!(mended[3], Message::failed_tool(CallId::new("b"), MAYBE));
        assert!(matches!(&mended[4], Message::Tool { failed: true, .. }));
        assert!(mended[4].text().starts_with("not run"));
    }

    #[test]
    fn results_without_a_call_are_dropped() {
        let mended = mend(
            vec![result("x", "stray"), Message::user("hi")],
            &HashSet::new(),
        );
        assert_eq!(mended, [Message::user("hi")]);
    }

    #[test]
    fn mending_twice_changes_nothing() {
        let history = vec![Message::user("go"), calling(&["a"]), Message::user("next")];
        let once = mend(history, &HashSet::new());
        assert_eq!(mend(once.clone(), &HashSet::new()), once);
    }

    #[test]
    fn the_oldest_turns_go_first_and_whole() {
        let big = "x".repeat(100);
        let history = vec![
            Message::user("one"),
            calling(&["a"]),
            result("a", &big),
            Message::assistant("first answer"),
            Message::user("two"),
            calling(&["b"]),
            result("b", "small"),
            Message::user("steered"),
            Message::assistant("second answer"),
        ];
        let trimmed = trim(&history, 4, HistoryBudget::bytes(60));
        assert!(matches!(&trimmed[0], Message::User { .. }));
        assert!(trimmed[0].text().starts_with("[4 earlier messages"));
        assert_eq!(trimmed[1..], history[4..]);
    }

    #[test]
    fn within_the_last_turn_old_results_give_way() {
        let big = "x".repeat(500);
        let history = vec![
            Message::user("go"),
            calling(&["a"]),
            result("a", &big),
            calling(&["b"]),
            result("b", &big),
        ];
        let trimmed = trim(&history, 0, HistoryBudget::bytes(700));
        assert_eq!(
            trimmed[2],
            result("a", "[500 bytes of an earlier result were left out]")
        );
        assert_eq!(trimmed[4], result("b", &big));
    }

    #[test]
    fn the_turn_at_hand_is_never_cut() {
        let history = [
            Message::user("a"),
            Message::user("question"),
            Message::user("steered"),
        ];
        let trimmed = trim(&history, 1, HistoryBudget::bytes(3));
        assert_eq!(trimmed[1..], history[1..]);
    }

    #[test]
    fn what_fits_is_not_copied() {
        let history = [Message::user("hi")];
        assert!(matches!(
            trim(&history, 0, HistoryBudget::bytes(10)),
            Cow::Borrowed(_)
        ));
    }
}
