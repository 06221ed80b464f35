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
    /// What the model said since its last call, as it said it.
    said: String,
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
        let rest = match self.manner {
            ScreenManner::Conversation => answer.strip_prefix(said.as_str()).unwrap_or(answer),
            ScreenManner::OneShot => answer,
        };
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

    /// What is said beside the answer.
    pub(super) fn aside(&self, text: &str) {
        let mut page = self.page();
        self.flush(&mut page);
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
        page.said.clear();
    }

    /// What was held back as the possible beginning of a secret, now that nothing follows.
    fn flush(&self, page: &mut ScreenPage) {
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

impl TurnObserver for TurnScreen {
    fn text(&self, piece: &str) {
        let mut page = self.page();
        page.said.push_str(piece);
        let given = page.stream.push(piece.as_bytes()).into_inner();
        self.show(&mut page, &given);
    }

    fn restarted(&self) {
        self.aside("[the model begins its answer anew]");
    }

    fn tool_started(&self, call: &ToolCall) {
        self.aside(&format!("⚙ {} {}", call.name, in_short(&call.arguments)));
    }

    fn tool_ended(&self, _: &ToolCall, result: &ToolResult) {
        let text = result.text();
        let result: Value = serde_json::from_str(&text).unwrap_or_default();
        let text = match (result.get("exit_code"), result.get("error")) {
            (_, Some(Value::String(error))) => format!("  ✗ {}", in_short(error)),
            (Some(code), _) if code != 0 => format!("  exit code {code}"),
            _ => return,
        };
        self.aside(&text);
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
