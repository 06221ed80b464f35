//! What a decoder may make of the strings it is given.
//!
//! Code that decodes a command and runs it is asked about whatever it says. Where one of the usual
//! decoders makes a command out of a string beside it, that command is judged as well, so that the worst
//! of it is named.

use super::super::ScriptWalker;
use super::super::decode;
use super::super::literals::CodeToken;
use crate::text::ByteFlow;

/// Strings that are tried, and how long they are at the most.
const MOST_TRIED: usize = 4;
const LONGEST_TRIED: usize = 2_000;

impl ScriptWalker<'_> {
    pub(super) fn decoded(&mut self, tokens: &[CodeToken], language: &'static str) {
        let texts = tokens.iter().take(32).filter_map(|token| match token {
            CodeToken::Text(text) if (6..LONGEST_TRIED).contains(&text.len()) => Some(text),
            _ => None,
        });
        let guesses: Vec<String> = texts
            .take(MOST_TRIED)
            .flat_map(|text| readings(text))
            .collect();
        for guess in guesses {
            self.run_text(&guess, language, &ByteFlow::default());
        }
    }
}

/// Backwards, thirteen letters on, in hexadecimal, in base64: whichever of them reads like a command.
fn readings(text: &str) -> Vec<String> {
    let rotated = |c: char| match c {
        'a'..='z' => turned(c, 'a'),
        'A'..='Z' => turned(c, 'A'),
        c => c,
    };
    [
        Some(text.chars().rev().collect()),
        Some(text.chars().map(rotated).collect()),
        decode::hex(text),
        decode::base64(text),
    ]
    .into_iter()
    .flatten()
    .filter(|reading: &String| reads_like_a_command(reading))
    .collect()
}

fn turned(c: char, first: char) -> char {
    let from = u32::from(first);
    char::from_u32((u32::from(c) - from + 13) % 26 + from).unwrap_or(c)
}

fn reads_like_a_command(text: &str) -> bool {
    let text = text.trim();
    text.contains(' ')
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c == '/')
        && text
            .chars()
            .all(|c| c.is_ascii_graphic() || c.is_ascii_whitespace())
}
