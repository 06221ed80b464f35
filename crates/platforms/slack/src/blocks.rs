//! Block Kit: texts with buttons under them, and texts too long for an edit.

use hermetic_chat::ReplyButton;
use serde_json::{Value, json};

/// What Slack takes in one section.
const SECTION: usize = 3000;
/// What Slack takes as the text of an edit.
const TEXT: usize = 4000;
/// What Slack shows of a button's label.
const LABEL: usize = 75;

/// A message as the API takes it: its text, and blocks where a text alone does not do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MessageBody {
    pub(crate) text: String,
    /// Empty where the text says everything.
    pub(crate) blocks: Vec<Value>,
}

impl MessageBody {
    pub(crate) fn new(mrkdwn: String, buttons: &[Vec<ReplyButton>]) -> Self {
        let rows = buttons.iter().filter(|row| !row.is_empty());
        let actions: Vec<_> = rows
            .enumerate()
            .map(|(number, row)| actions(number, row))
            .collect();
        if actions.is_empty() && mrkdwn.chars().count() <= TEXT {
            return Self {
                text: mrkdwn,
                blocks: Vec::new(),
            };
        }
        let section = |text: &String| {
            let text = json!({ "type": "mrkdwn", "text": text });
            json!({ "type": "section", "expand": true, "text": text })
        };
        let blocks = sections(&mrkdwn)
            .iter()
            .map(section)
            .chain(actions)
            .collect();
        Self {
            // Shown in notifications only.
            text: mrkdwn.chars().take(TEXT).collect(),
            blocks,
        }
    }
}

fn actions(row_number: usize, row: &[ReplyButton]) -> Value {
    let button = |(number, button): (usize, &ReplyButton)| {
        let label: String = button.label().chars().take(LABEL).collect();
        json!({
            "type": "button",
            "action_id": format!("choice-{row_number}-{number}"),
            "text": { "type": "plain_text", "text": label },
            "value": button.data(),
        })
    };
    let elements: Vec<_> = row.iter().enumerate().map(button).collect();
    json!({ "type": "actions", "elements": elements })
}

/// The text in pieces that fit a section, cut between lines where possible. Code that is cut is code in
/// both pieces.
fn sections(text: &str) -> Vec<String> {
    const FENCE: &str = "```";
    let room = SECTION - 2 * (FENCE.len() + 1);
    let (mut pieces, mut piece, mut in_code) = (Vec::new(), String::new(), false);
    for line in text.split('\n') {
        for part in cut(line, room) {
            let length = piece.chars().count() + part.chars().count() + 1;
            if !piece.is_empty() && length > room {
                let end = if in_code { "\n```" } else { "" };
                pieces.push(std::mem::take(&mut piece) + end);
                piece.push_str(if in_code { FENCE } else { "" });
            }
            if !piece.is_empty() {
                piece.push('\n');
            }
            piece.push_str(part);
        }
        in_code ^= line == FENCE;
    }
    pieces.push(piece);
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}

fn cut(line: &str, room: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some((at, _)) = rest.char_indices().nth(room) {
        let (part, after) = rest.split_at(at);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_needs_no_blocks_and_buttons_do() {
        let plain = MessageBody::new("hello".to_owned(), &[]);
        assert_eq!((plain.text.as_str(), plain.blocks.len()), ("hello", 0));
        let yes = ReplyButton::new("y".repeat(100), "q1:yes").unwrap();
        let asked = MessageBody::new("May I?".to_owned(), &[vec![yes], vec![]]);
        assert_eq!(asked.blocks.len(), 2);
        assert_eq!(asked.blocks[0]["text"]["text"], "May I?");
        let button = &asked.blocks[1]["elements"][0];
        assert_eq!(button["value"], "q1:yes");
        assert_eq!(button["text"]["text"].as_str().unwrap().len(), LABEL);
    }

    #[test]
    fn a_long_text_is_cut_into_sections_and_code_stays_code() {
        let code = format!("before\n```\n{}```\nafter", "a line of code\n".repeat(500));
        let pieces = sections(&code);
        assert!(pieces.len() > 2);
        for piece in &pieces {
            assert!(piece.chars().count() <= SECTION);
            assert_eq!(piece.matches("```").count() % 2, 0, "{piece}");
        }
        let unbroken = sections(&"x".repeat(7000));
        assert_eq!(unbroken.iter().map(String::len).sum::<usize>(), 7000);
        assert!(unbroken.iter().all(|piece| piece.len() <= SECTION));
    }
}
