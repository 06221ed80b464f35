//! What is not read as a whole is still looked through for the worst.
//!
//! Too long or broken texts end in a question anyway. This scan decides only whether they end in a
//! refusal: pieces between separators that begin with a program of the floor are judged alone.

use crate::context::JudgementContext;
use crate::reduce::{self, ReducedScript};
use crate::syntax;
use crate::text::ByteFlow;

const MOST_PIECES: usize = 64;
const LONGEST_PIECE: usize = 400;

const WORST: &[&str] = &[
    "rm",
    "dd",
    "mkfs",
    "shutdown",
    "reboot",
    "halt",
    "poweroff",
    "init",
    "telinit",
    "systemctl",
    "kill",
    "wipefs",
    "shred",
    "sudo",
    "find",
    "blkdiscard",
    "sgdisk",
];

/// A text too long to follow.
pub(crate) fn long(text: &str, context: &JudgementContext) -> ReducedScript {
    let mut reduced = pieces(text, context);
    reduced
        .doubts
        .push(format!("it is too long to follow ({} bytes)", text.len()));
    reduced
}

/// A text that is no shell, or not one that can be read.
pub(crate) fn unreadable(text: &str, context: &JudgementContext) -> ReducedScript {
    pieces(text, context)
}

fn pieces(text: &str, context: &JudgementContext) -> ReducedScript {
    let mut all = ReducedScript::default();
    let mut seen = 0;
    let bytes = text.as_bytes();
    let (mut at_start, mut in_first_word) = (true, true);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' | b';' | b'|' | b'&' | b'(' | b'{' | b'`' => {
                (at_start, in_first_word) = (true, true);
                continue;
            }
            b' ' | b'\t' => {
                in_first_word = at_start;
                continue;
            }
            // `/bin/rm` is `rm`.
            b'/' if in_first_word => {
                at_start = true;
                continue;
            }
            _ => {}
        }
        let begins = at_start
            && WORST
                .iter()
                .any(|worst| bytes[at..].starts_with(worst.as_bytes()));
        at_start = false;
        if !begins {
            continue;
        }
        let piece = up_to(text, at, LONGEST_PIECE);
        let piece = piece
            .split(['\n', ';', '|', '&', '(', '{', '`'])
            .next()
            .unwrap_or_default();
        seen += 1;
        if seen > MOST_PIECES {
            break;
        }
        let piece = piece.trim_end_matches([')', '}', '"', '\'', ' ']);
        if let Ok(script) = syntax::parse(piece) {
            let reduced = reduce::reduce(&script, context, &ByteFlow::default(), None);
            all.findings.extend(reduced.findings);
            all.commands.extend(reduced.commands);
        }
    }
    all
}

/// At most `length` bytes from `at`, without cutting a character.
fn up_to(text: &str, at: usize, length: usize) -> &str {
    let mut end = text.len().min(at + length);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[at..end]
}
