//! Whether what follows a name is a secret, or code and prose about one.

use crate::MASK;
use crate::window::{Ahead, NeedMore};

/// How a value stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `NAME=value` with a name in capitals: a line of an environment.
    Environment,
    Quoted,
    /// Alone after `name: ` at the start of a line, as in YAML.
    Line,
    /// After `password = ` at the start of a line, or after `--password`.
    Password,
    /// Anything else without quotes.
    Bare,
}

/// A value is judged by its beginning.
const LOOKED_AT: usize = 512;

pub(super) fn is_secret(value: &[u8], style: Style) -> bool {
    if value.len() < 4 || is_placeholder(value) {
        return false;
    }
    let value = &value[..value.len().min(LOOKED_AT)];
    match style {
        Style::Environment => !is_small_number(value),
        Style::Quoted => !is_colour(value) && (!value.contains(&b' ') || has_digit(value)),
        Style::Line => !is_small_number(value) && !is_code(value) && !is_type(value),
        Style::Password => has_digit(value) && has_letter(value) && !is_code(value),
        Style::Bare => value.len() >= 8 && has_digit(value) && has_letter(value) && !is_code(value),
    }
}

/// What people write where a secret would stand.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    const WORDS: [&str; 14] = [
        "none",
        "null",
        "nil",
        "true",
        "false",
        "undefined",
        "required",
        "optional",
        "string",
        "redacted",
        "secret",
        "password",
        "token",
        "str",
    ];
    let Some(first) = value.first() else {
        return true;
    };
    let variable = *first == b'$'
        && value
            .get(1)
            .is_some_and(|next| next.is_ascii_alphabetic() || b"_{(".contains(next));
    let brackets = value.starts_with(b"<") && value.ends_with(b">")
        || value.starts_with(b"{") && value.ends_with(b"}")
        || value.starts_with(b"%") && value.ends_with(b"%");
    // A value without quotes ends before the closing bracket.
    let looked_at = &value[..value.len().min(LOOKED_AT)];
    let mask = MASK.trim_end_matches(']').as_bytes();
    variable
        || looked_at.windows(mask.len()).any(|part| part == mask)
        || brackets
        || value.iter().all(|byte| byte == first)
        || WORDS
            .iter()
            .any(|known| value.eq_ignore_ascii_case(known.as_bytes()))
        || value
            .get(..4)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"your"))
}

/// A quote, possibly escaped because it stands within another string. Gives back where it ends, or
/// `from` if there is none.
pub(super) fn quote(ahead: Ahead<'_>, from: usize) -> Result<usize, NeedMore> {
    let at = ahead.short_run(from, 3, |byte| byte == b'\\')?;
    match ahead.at(at)? {
        Some(b'"' | b'\'' | b'`') => Ok(at + 1),
        _ => Ok(from),
    }
}

pub(super) fn spaces(ahead: Ahead<'_>, from: usize) -> Result<usize, NeedMore> {
    ahead.short_run(from, 16, |byte| byte == b' ' || byte == b'\t')
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

fn has_letter(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_alphabetic)
}

/// `max_token: 4096` and its like.
fn is_small_number(value: &[u8]) -> bool {
    value.len() < 8
        && value
            .iter()
            .all(|byte| byte.is_ascii_digit() || b".-_".contains(byte))
}

/// Highlighters have a colour for tokens.
fn is_colour(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"#").unwrap_or_default();
    matches!(digits.len(), 3 | 4 | 6 | 8) && digits.iter().all(u8::is_ascii_hexdigit)
}

/// A call, an index, a path, or a field of something.
fn is_code(value: &[u8]) -> bool {
    let punctuated = value.iter().any(|byte| b"([{<".contains(byte));
    let path = value.starts_with(b"/") || value.starts_with(b"./") || value.starts_with(b"~/");
    let is_name = |part: &[u8]| {
        part.first()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            && part.len() <= 24
            && !part
                .iter()
                .any(|byte| byte.is_ascii_digit() || *byte == b'-')
    };
    let dotted = value.contains(&b'.') && value.split(|byte| *byte == b'.').all(is_name);
    punctuated || path || dotted || value.windows(2).any(|pair| pair == b"::" || pair == b"->")
}

/// `password: SecretText`, as a declaration has it.
fn is_type(value: &[u8]) -> bool {
    const TYPES: [&str; 8] = [
        "bytes", "number", "object", "boolean", "&str", "text", "varchar", "any",
    ];
    let value = value
        .strip_suffix(b",")
        .or_else(|| value.strip_suffix(b";"))
        .unwrap_or(value);
    let name = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let declared = value.iter().all(name) && !value[0].is_ascii_lowercase();
    value.len() < 4
        || declared
        || TYPES
            .iter()
            .any(|known| value.eq_ignore_ascii_case(known.as_bytes()))
        || is_placeholder(value)
}
