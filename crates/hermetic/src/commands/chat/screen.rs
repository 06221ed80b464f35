//! A turn, as it is shown while it happens.
//!
//! Everything is redacted as a stream, so that no secret shows for a moment, and what a model or a
//! command wrote cannot steer the terminal.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermetic_agent::{ToolCall, ToolResult, TurnObserver};
use hermetic_redact::{Redactor, StreamRedactor};
use serde_json::Value;

use crate::output::DIM;

/// How a turn is shown: in a conversation, or as the only answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenManner {
    /// Everything on stdout, for somebody who reads along.
    Conversation,
    /// The answer alone is printed at the end; what is done shows on stderr.
    OneShot,
}

#[derive(Debug)]
pub(super) struct TurnScreen {
    manner: ScreenManner,
    redactor: Redactor,
    page: Mutex<ScreenPage>,
}

#[derive(Debug)]
struct ScreenPage {
    stream: StreamRedactor,
    /// The end of what was given out, if it is no whole character yet.
    rest: Vec<u8>,
    at_line_start: bool,
    /// What was said since the last call, as it was said.
    said: String,
    /// What was said before that call, where nothing was said since.
    said_before: String,
    /// While it thinks aloud.
    thoughts: Option<ThoughtLine>,
}

/// Thoughts on their way to the screen.
#[derive(Debug)]
struct ThoughtLine {
    stream: StreamRedactor,
    rest: Vec<u8>,
}

/// Of a call's arguments.
const MOST_SHOWN: usize = 200;

impl TurnScreen {
    pub(super) fn new(manner: ScreenManner, redactor: Redactor) -> Self {
        let page = ScreenPage {
            stream: redactor.stream(),
            rest: Vec::new(),
            at_line_start: true,
            said: String::new(),
            said_before: String::new(),
            thoughts: None,
        };
        Self {
            manner,
            redactor,
            page: Mutex::new(page),
        }
    }

    /// The end of a turn, with what it came to: of that, what was not seen to grow.
    pub(super) fn close(&self, answer: &str) {
        let mut page = self.page();
        self.flush(&mut page);
        let said = std::mem::take(&mut page.said);
        let before = std::mem::take(&mut page.said_before);
        let rest = match self.manner {
            ScreenManner::Conversation => unseen(answer, &said, &before),
            ScreenManner::OneShot => answer.to_owned(),
        };
        if !rest.is_empty() && rest.len() == answer.len() && !page.at_line_start {
            write_out("\n");
        }
        write_out(self.redactor.redact(rest).as_str());
        write_out("\n");
        page.at_line_start = true;
    }

    /// A question of ours, and what can be typed. Both are on the screen whatever came before.
    pub(super) fn ask(&self, question: &str, choices: &str) {
        let mut page = self.page();
        self.flush(&mut page);
        if !page.at_line_start {
            write_out("\n");
        }
        write_out(self.redactor.redact(question).as_str());
        write_out(choices);
        // The answer ends the line.
        page.at_line_start = true;
    }

    /// Something of ours, or of a command that was typed.
    pub(super) fn tell(&self, text: &str) {
        write_out(self.redactor.redact(text).as_str());
        if !text.ends_with('\n') {
            write_out("\n");
        }
    }

    /// What is said beside the answer, which may go on behind it.
    pub(super) fn aside(&self, text: &str) {
        let mut page = self.page();
        self.put_aside(&mut page, text);
    }

    /// The same, where a new answer begins behind it.
    fn turn_page(&self, text: Option<&str>) {
        let mut page = self.page();
        if let Some(text) = text {
            self.put_aside(&mut page, text);
        }
        let said = std::mem::take(&mut page.said);
        if !said.trim().is_empty() {
            page.said_before = said;
        }
    }

    fn put_aside(&self, page: &mut ScreenPage, text: &str) {
        self.flush(page);
        let text = self.redactor.redact(text);
        let text = harmless(text.as_str());
        match self.manner {
            ScreenManner::OneShot => {
                let mut err = anstream::stderr().lock();
                let _ = writeln!(err, "{DIM}{text}{DIM:#}");
            }
            ScreenManner::Conversation => {
                let mut out = anstream::stdout().lock();
                let start = if page.at_line_start { "" } else { "\n" };
                let _ = writeln!(out, "{start}{DIM}{text}{DIM:#}");
                page.at_line_start = true;
            }
        }
    }

    /// What was held back as the possible beginning of a secret, now that nothing follows.
    fn flush(&self, page: &mut ScreenPage) {
        self.end_thought(page);
        let stream = std::mem::replace(&mut page.stream, self.redactor.stream());
        let rest = stream.finish().into_inner();
        self.show(page, &rest);
        page.rest.clear();
    }

    fn show(&self, page: &mut ScreenPage, bytes: &[u8]) {
        if self.manner == ScreenManner::OneShot || bytes.is_empty() {
            return;
        }
        page.rest.extend_from_slice(bytes);
        let text = take_text(&mut page.rest);
        if text.is_empty() {
            return;
        }
        write_out(&text);
        page.at_line_start = text.ends_with('\n');
    }

    fn show_thought(&self, page: &mut ScreenPage, bytes: &[u8]) {
        let Some(thoughts) = &mut page.thoughts else {
            return;
        };
        thoughts.rest.extend_from_slice(bytes);
        let text = harmless(&take_text(&mut thoughts.rest));
        if text.is_empty() {
            return;
        }
        match self.manner {
            ScreenManner::OneShot => {
                let mut err = anstream::stderr().lock();
                let _ = write!(err, "{DIM}{text}{DIM:#}");
            }
            ScreenManner::Conversation => {
                let mut out = anstream::stdout().lock();
                let _ = write!(out, "{DIM}{text}{DIM:#}");
                let _ = out.flush();
                page.at_line_start = text.ends_with('\n');
            }
        }
    }

    /// What comes next begins a line of its own.
    fn end_thought(&self, page: &mut ScreenPage) {
        let Some(thoughts) = &mut page.thoughts else {
            return;
        };
        let stream = std::mem::replace(&mut thoughts.stream, self.redactor.stream());
        let rest = stream.finish().into_inner();
        self.show_thought(page, &rest);
        page.thoughts = None;
        match self.manner {
            ScreenManner::OneShot => {
                let _ = writeln!(anstream::stderr().lock());
            }
            ScreenManner::Conversation if !page.at_line_start => {
                write_out("\n");
                page.at_line_start = true;
            }
            ScreenManner::Conversation => {}
        }
    }

    fn page(&self) -> MutexGuard<'_, ScreenPage> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All but the beginning of a character whose end is still to come. What no text begins with is replaced.
fn take_text(rest: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut taken = 0;
    for chunk in rest.utf8_chunks() {
        text.push_str(chunk.valid());
        taken += chunk.valid().len();
        let invalid = chunk.invalid();
        let is_last = taken + invalid.len() == rest.len();
        // Only the last one can be a character that was cut in the middle.
        let is_cut =
            is_last && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
        if invalid.is_empty() || is_cut {
            break;
        }
        text.push(char::REPLACEMENT_CHARACTER);
        taken += invalid.len();
    }
    rest.drain(..taken);
    text
}

/// Of an answer, what was not seen to grow: notes of ours before it and behind it, or all of it. What was said is
/// looked for without the blanks around it, as an answer comes without them.
fn unseen(answer: &str, said: &str, before: &str) -> String {
    let said = match said.trim() {
        "" => before.trim(),
        said => said,
    };
    match answer.split_once(said) {
        Some((first, last)) if !said.is_empty() && first.is_empty() => last.to_owned(),
        // On a line of its own: what it stands before is above it.
        Some((first, last)) if !said.is_empty() => format!("\n{}{last}", first.trim_end()),
        _ => answer.to_owned(),
    }
}

impl TurnObserver for TurnScreen {
    fn text(&self, piece: &str) {
        let mut page = self.page();
        self.end_thought(&mut page);
        page.said.push_str(piece);
        let given = page.stream.push(piece.as_bytes()).into_inner();
        self.show(&mut page, &given);
    }

    fn restarted(&self) {
        self.turn_page(Some("[the model begins its answer anew]"));
    }

    fn tool_started(&self, call: &ToolCall) {
        let text = format!("⚙ {} {}", call.name, in_short(&call.arguments));
        self.turn_page(Some(&text));
    }

    fn tool_ended(&self, _: &ToolCall, result: &ToolResult) {
        let text = result.text();
        let result: Value = serde_json::from_str(&text).unwrap_or_default();
        let text = match (result.get("exit_code"), result.get("error")) {
            (_, Some(Value::String(error))) => format!("  ✗ {}", in_short(error)),
            (Some(code), _) if code != 0 => format!("  exit code {code}"),
            _ => return self.turn_page(None),
        };
        self.turn_page(Some(&text));
    }

    fn thought(&self, piece: &str) {
        let mut page = self.page();
        if page.thoughts.is_none() {
            self.flush(&mut page);
            if self.manner == ScreenManner::Conversation && !page.at_line_start {
                write_out("\n");
            }
            page.thoughts = Some(ThoughtLine {
                stream: self.redactor.stream(),
                rest: Vec::new(),
            });
        }
        let Some(thoughts) = &mut page.thoughts else {
            return;
        };
        let given = thoughts.stream.push(piece.as_bytes()).into_inner();
        self.show_thought(&mut page, &given);
    }

    fn plan(&self, words: &str) {
        self.aside(&format!("☰ {}", in_short(words)));
    }

    fn answered(&self) {
        let mut page = self.page();
        self.flush(&mut page);
        if self.manner == ScreenManner::Conversation {
            write_out("\n\n");
        }
        page.at_line_start = true;
        page.said.push_str("\n\n");
    }
}

/// A command alone where there is one, otherwise the arguments as they are.
fn in_short(arguments: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(arguments).ok();
    let command = parsed
        .as_ref()
        .and_then(|value| value.get("command")?.as_str());
    let text = command.unwrap_or(arguments);
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST_SHOWN) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

fn write_out(text: &str) {
    let mut out = std::io::stdout().lock();
    // A reader who has gone away is noticed by the turn that cannot be read any more.
    let _ = out.write_all(harmless(text).as_bytes());
    let _ = out.flush();
}

/// Without anything a terminal would obey.
fn harmless(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_steered() {
        assert_eq!(
            harmless("a\u{1b}]0;title\u{7}b\r\u{9b}2Jc\n"),
            "a]0;titleb2Jc\n"
        );
    }

    #[test]
    fn of_an_answer_that_was_seen_to_grow_only_the_notes_are_told() {
        assert_eq!(unseen("It is done.", "It is done. ", ""), "");
        assert_eq!(
            unseen("It is done.\n\n[cut]", " It is done.", ""),
            "\n\n[cut]"
        );
        assert_eq!(
            unseen("[anew]\n\nIt is done.", "It is done.\n", ""),
            "\n[anew]"
        );
        // Nothing came after the last call.
        assert_eq!(unseen("Looked.", "", "Looked."), "");
        assert_eq!(unseen("Another one.", "Let me look.", ""), "Another one.");
        assert_eq!(unseen("Another one.", " ", ""), "Another one.");
    }

    /// What a plan, a thought or a notice interrupts goes on as the same answer, and is not told twice.
    #[test]
    fn what_is_said_aside_does_not_make_an_answer_another_one() {
        let redactor = Redactor::new([], hermetic_redact::RedactorSettings::default());
        let screen = TurnScreen::new(ScreenManner::OneShot, redactor);
        screen.text("It is ");
        screen.plan("1 of 2 done: look");
        screen.thought("hm, let me see");
        screen.aside("a host was not reached");
        screen.text("done.");
        assert_eq!(screen.page().said, "It is done.");
        let call = ToolCall {
            id: hermetic_agent::CallId::new("1"),
            name: "execute".to_owned(),
            arguments: "ls".to_owned(),
        };
        screen.tool_started(&call);
        assert_eq!(screen.page().said, "", "commentary");
    }

    #[test]
    fn a_broken_byte_holds_nothing_up() {
        let mut rest = b"\xff\xffabc\xe2\x82".to_vec();
        assert_eq!(take_text(&mut rest), "\u{fffd}\u{fffd}abc");
        rest.extend(b"\xac!\xc3\xc3");
        assert_eq!(take_text(&mut rest), "\u{20ac}!\u{fffd}");
        rest.extend(b"\xa4");
        assert_eq!(take_text(&mut rest), "\u{e4}");
        assert!(rest.is_empty());
    }

    #[test]
    fn a_call_is_shown_in_a_line() {
        assert_eq!(in_short(r#"{"command": "ls\n  -l"}"#), "ls -l");
        assert_eq!(in_short("not json"), "not json");
        assert_eq!(in_short(&"é".repeat(300)).chars().count(), MOST_SHOWN + 1);
    }
}
