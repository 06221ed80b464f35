//! What an agent says, gathered into the answer and shown while it grows.

use hermetic_agent::{CallId, ToolCall, ToolResult, TurnObserver};

use crate::bounds::LONGEST_ANSWER;
use crate::prompt::PromptListener;
use crate::supervisor::ReportedTool;
use crate::update::PlanSummary;
use crate::wire::cut;

/// The answers of a turn, one for each prompt. What was said before a tool call is commentary, as with our own
/// agent: the answer is what was said after the last one, or what was said last.
pub(crate) struct GrowingAnswer<'a> {
    observer: &'a dyn TurnObserver,
    /// Whether thoughts are shown while the answer grows.
    shows_thoughts: bool,
    text: String,
    before: String,
    left_out: bool,
    /// The answers to earlier prompts of the turn.
    closed: Vec<String>,
}

/// What the person is told at the end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnWords {
    /// Answers to earlier prompts, which are written down.
    before: String,
    /// The answer to the last prompt.
    pub(crate) last: String,
}

impl<'a> GrowingAnswer<'a> {
    pub(crate) fn new(observer: &'a dyn TurnObserver, shows_thoughts: bool) -> Self {
        Self {
            observer,
            shows_thoughts,
            text: String::new(),
            before: String::new(),
            left_out: false,
            closed: Vec::new(),
        }
    }

    /// All that was said that is worth keeping.
    pub(crate) fn take(&mut self) -> TurnWords {
        let last = self.take_answer();
        TurnWords {
            before: std::mem::take(&mut self.closed).join(BETWEEN),
            last,
        }
    }

    /// Ends the answer to one prompt: another prompt follows in the same turn. Nothing where nothing was said.
    pub(crate) fn close_answer(&mut self) -> Option<String> {
        let answer = self.take_answer();
        if answer.is_empty() {
            return None;
        }
        self.observer.answered();
        self.closed.push(answer.clone());
        Some(answer)
    }

    fn take_answer(&mut self) -> String {
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
        let said = std::mem::take(&mut self.text);
        if !said.trim().is_empty() {
            self.before = said;
        }
    }
}

/// What stands between two things that are told.
const BETWEEN: &str = "\n\n";

impl TurnWords {
    pub(crate) fn of(last: String) -> Self {
        let before = String::new();
        Self { before, last }
    }

    /// With a note behind all that was said.
    pub(crate) fn with(self, note: &str) -> Self {
        let last = match self.last.trim().is_empty() {
            true => note.to_owned(),
            false => beside(&self.last, note),
        };
        Self { last, ..self }
    }

    /// With a note before all that was said.
    pub(crate) fn put_before(&mut self, note: &str) {
        let first = match self.before.is_empty() {
            true => &mut self.last,
            false => &mut self.before,
        };
        *first = beside(note, first);
    }

    pub(crate) fn whole(&self) -> String {
        beside(&self.before, &self.last)
    }
}

fn beside(one: &str, other: &str) -> String {
    match one.is_empty() || other.is_empty() {
        true => format!("{one}{other}"),
        false => format!("{one}{BETWEEN}{other}"),
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
            self.observer.thought(piece);
        }
    }

    fn plan(&mut self, plan: &PlanSummary) {
        let words = format!("{} of {} done: {}", plan.done, plan.entries, plan.current);
        self.observer.plan(&words);
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
        assert_eq!(answer.take().whole(), "It is empty.");
        answer.text("All done.");
        answer.tool_started(&tool(true));
        answer.tool_ended(&tool(false));
        assert_eq!(
            answer.take().whole(),
            "All done.",
            "nothing came after the last tool"
        );
        answer.tool_started(&tool(true));
        answer.text("In the ");
        answer.tool_ended(&tool(false));
        answer.text("middle.");
        assert_eq!(answer.take().whole(), "In the middle.");
    }

    #[test]
    fn an_answer_without_end_is_cut_and_says_so() {
        let mut answer = GrowingAnswer::new(&SilentObserver, false);
        for _ in 0..3 {
            answer.text(&"ä".repeat(LONGEST_ANSWER / 4));
        }
        let text = answer.take().whole();
        assert!(text.len() < LONGEST_ANSWER + 100, "{}", text.len());
        assert!(text.ends_with("too long.]"));
    }
    /// Said into a turn, a second prompt is answered beside the first, whatever it does meanwhile.
    #[test]
    fn an_answer_that_is_whole_is_kept_over_the_next_one() {
        let mut answer = GrowingAnswer::new(&SilentObserver, false);
        answer.text("One.");
        assert_eq!(answer.close_answer().as_deref(), Some("One."));
        answer.text("Let me look.");
        answer.tool_started(&tool(true));
        answer.tool_ended(&tool(false));
        answer.text("Two.");
        let said = answer.take();
        assert_eq!(said.whole(), "One.\n\nTwo.");
        assert_eq!(said.last, "Two.", "the first is written down by then");
        assert_eq!(answer.close_answer(), None, "nothing was said");
        assert_eq!(answer.take(), TurnWords::default());
    }

    #[test]
    fn a_note_stands_before_or_behind_what_was_said() {
        let told = |note: &str| TurnWords::of("a".to_owned()).with(note).whole();
        assert_eq!(told(""), "a");
        assert_eq!(told("[x]"), "a\n\n[x]");
        assert_eq!(TurnWords::of(" ".to_owned()).with("[x]").whole(), "[x]");
        let mut said = TurnWords::of("a".to_owned());
        said.put_before("[x]");
        assert_eq!(said.last, "[x]\n\na", "written down with it");
        let mut said = TurnWords {
            before: "one".to_owned(),
            last: "two".to_owned(),
        };
        said.put_before("[x]");
        assert_eq!(said.whole(), "[x]\n\none\n\ntwo");
    }
}
