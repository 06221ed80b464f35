//! What a text looks like to a person: without terminal escapes and invisible letters, and with
//! look-alike letters folded.
//!
//! A shell would not fold them, so both texts are judged and the worse verdict counts.

use unicode_normalization::UnicodeNormalization;

use crate::text::is_hole;

/// The folded text, if it differs.
pub(crate) fn folded(text: &str) -> Option<String> {
    let plain = text
        .bytes()
        .all(|b| (0x20..0x7f).contains(&b) || b == b'\n' || b == b'\t');
    if plain {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_csi(&mut chars),
            '\u{9d}' => skip_osc(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            c if invisible(c) => {}
            c => out.push(c),
        }
    }
    let out: String = out.nfkc().collect();
    (out != text).then_some(out)
}

/// The marks for unknown parts must not come from outside.
pub(crate) fn without_holes(text: &str) -> Option<String> {
    text.contains(is_hole)
        .then(|| text.replace(is_hole, "\u{FFFD}"))
}

fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => skip_csi(chars),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_osc(chars),
        _ => {}
    }
}

fn skip_csi(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    for c in chars.by_ref().take(64) {
        if ('\u{40}'..='\u{7e}').contains(&c) {
            break;
        }
    }
}

fn skip_osc(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(c) = chars.next() {
        if c == '\u{7}' || c == '\u{9c}' {
            break;
        }
        if c == '\u{1b}' {
            chars.next();
            break;
        }
    }
}

fn invisible(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{180e}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{e0000}'..='\u{e007f}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
    )
}
