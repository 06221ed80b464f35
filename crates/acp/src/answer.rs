//! What an agent says, gathered into the answer and shown while it grows.

use hermetic_agent::{CallId, ToolCall, ToolResult, TurnObserver};

use crate::bounds::LONGEST_ANSWER;
use crate::prompt::PromptListener;
use crate::supervisor::ReportedTool;
use crate::update::PlanSummary;
use crate::wire::cut;

/// The answer of a turn. What was said before a tool call is commentary, as with our own agent: the answer
/// is what was said after the last one, or what was said last.
pub(crate) struct GrowingAnswer<'a> {
    observer: &'a dyn TurnObserver,
    /// Whether thoughts are shown while the answer grows.
    shows_thoughts: bool,
    text: String,
    before: String,
    /// The end of what it thinks.
    thoughts: String,
    left_out: bool,
}

/// Of what it thinks, the end.
const SHOWN_THOUGHTS: usize = 400;

impl<'a> GrowingAnswer<'a> {
    pub(crate) fn new(observer: &'a dyn TurnObserver, shows_thoughts: bool) -> Self {
        Self {
            observer,
            shows_thoughts,
            text: String::new(),
            before: String::new(),
            thoughts: String::new(),
            left_out: false,
        }
    }

    /// All that was said that is worth keeping.
    pub(crate) fn take(&mut self) -> String {
        let text = match self.text.trim().is_empty() {
            true => std::mem::take(&mut self.before),
            false => std::mem::take(&mut self.text),
        };
        let rest = match self.left_out {
            true => "\n\n[The rest of the answer is left out: it is too long.]",
            false => "",
        };
        self.text.clear();
        self.before.clear();
        self.left_out = false;
        format!("{}{rest}", text.trim())
    }

    fn turn_page(&mut self) {
        self.thoughts.clear();
        let said = std::mem::take(&mut self.text);
        if !said.trim().is_empty() {
            self.before = said;
        }
    }
}

impl PromptListener for GrowingAnswer<'_> {
    fn text(&mut self, piece: &str) {
        let room = LONGEST_ANSWER.saturating_sub(self.text.len());
        let kept = cut(piece, room);
        self.left_out |= kept.len() < piece.len();
        self.text.push_str(kept);
        if !kept.is_empty() {
            self.observer.text(kept);
        }
    }

    fn thought(&mut self, piece: &str) {
        if self.shows_thoughts {
            self.thoughts.push_str(piece);
            let excess = self.thoughts.len().saturating_sub(SHOWN_THOUGHTS);
            // Cut at a character; the search ends at the latest at the end of the text, which is
            // one.
            let begin = (excess..).find(|at| self.thoughts.is_char_boundary(*at));
            self.thoughts.drain(..begin.unwrap_or(0));
            self.observer.tool_started(&shown("thinks", &self.thoughts));
        }
    }

    fn plan(&mut self, plan: &PlanSummary) {
        let words = format!("{} of {} done: {}", plan.done, plan.entries, plan.current);
        self.observer.tool_started(&shown("plan", &words));
    }

    fn tool_started(&mut self, tool: &ReportedTool) {
        self.turn_page();
        self.observer.tool_started(&called(tool));
    }

    fn tool_ended(&mut self, tool: &ReportedTool) {
        let result = match tool.has_failed {
            true => ToolResult::failed("failed"),
            false => ToolResult::new(""),
        };
        // Some tell of an end when they are in the middle of their answer, which goes on then.
        if self.text.trim().is_empty() {
            self.observer.tool_ended(&called(tool), &result);
        }
    }
}

fn called(tool: &ReportedTool) -> ToolCall {
    let what = match &tool.detail {
        Some(detail) => format!("{} {detail}", tool.title),
        None => tool.title.clone(),
    };
    ToolCall {
        id: CallId::new(tool.id.clone()),
        name: tool.kind.clone(),
        arguments: what,
    }
}

fn shown(name: &str, words: &str) -> ToolCall {
    ToolCall {
        id: CallId::new(name.to_owned()),
        name: name.to_owned(),
        arguments: words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use hermetic_agent::SilentObserver;

    use super::*;

    fn tool(at_work: bool) -> ReportedTool {
        ReportedTool {
            agent: "x".to_owned(),
            id: "1".to_owned(),
            kind: "execute".to_owned(),
            title: "ls".to_owned(),
            detail: None,
            is_at_work: at_work,
            has_failed: false,
        }
    }

    #[test]
    fn the_answer_is_what_was_said_last() {
        let mut answer = GrowingAnswer::new(&SilentObserver, false);
        answer.text("Let me look.");
        answer.tool_started(&tool(true));
        answer.tool_ended(&tool(false));
        answer.text("It is ");
        answer.text("empty.");
        assert_eq!(answer.take(), "It is empty.");
        answer.text("All done.");
        answer.tool_started(&tool(true));
        answer.tool_ended(&tool(false));
        assert_eq!(
            answer.take(),
            "All done.",
            "nothing came after the last tool"
        );
        answer.tool_started(&tool(true));
        answer.text("In the ");
        answer.tool_ended(&tool(false));
        answer.text("middle.");
        assert_eq!(answer.take(), "In the middle.");
    }

    #[test]
    fn an_answer_without_end_is_cut_and_says_so() {
        let mut answer = GrowingAnswer::new(&SilentObserver, false);
        for _ in 0..3 {
            answer.text(&"ä".repeat(LONGEST_ANSWER / 4));
        }
        let text = answer.take();
        assert!(text.len() < LONGEST_ANSWER + 100, "{}", text.len());
        assert!(text.ends_with("too long.]"));
    }
}
