//! What is not read as a whole is still looked through for the worst.
//!
//! Too long or broken texts end in a question anyway. This scan decides only whether they end in a
//! refusal: pieces between separators that begin with a program of the floor are judged alone.

use crate::context::Context;
use crate::reduce::{self, Reduced};
use crate::syntax;
use crate::text::Flow;

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
pub(crate) fn long(text: &str, context: &Context) -> Reduced {
    let mut reduced = pieces(text, context);
    reduced
        .doubts
        .push(format!("it is too long to follow ({} bytes)", text.len()));
    reduced
}

/// A text that is no shell, or not one that can be read.
pub(crate) fn unreadable(text: &str, context: &Context) -> Reduced {
    pieces(text, context)
}

fn pieces(text: &str, context: &Context) -> Reduced {
    let mut all = Reduced::default();
    let mut seen = 0;
    for piece in text.split(['\n', ';', '|', '&', '(', '{', '`']) {
        let piece = piece.trim_start();
        let first = piece.split([' ', '\t']).next().unwrap_or_default();
        let name = crate::effective::base_name(first);
        if !WORST
            .iter()
            .any(|worst| name == *worst || (*worst == "mkfs" && name.starts_with("mkfs.")))
        {
            continue;
        }
        seen += 1;
        if seen > MOST_PIECES {
            break;
        }
        let mut end = piece.len().min(LONGEST_PIECE);
        while !piece.is_char_boundary(end) {
            end -= 1;
        }
        let piece = piece[..end].trim_end_matches([')', '}', '"', '\'', ' ']);
        if let Ok(script) = syntax::parse(piece) {
            let reduced = reduce::reduce(&script, context, &Flow::default());
            all.findings.extend(reduced.findings);
            all.commands.extend(reduced.commands);
        }
    }
    all
}
