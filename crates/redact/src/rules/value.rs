//! Whether what follows a name is a secret, or code and prose about one.

use super::names::mentions;
use super::random::{is_random, is_uuid};
use crate::MASK;
use crate::window::{NeedMore, TextAhead};

/// The way in which a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueStyle {
    /// `NAME=value` with a name in capitals: a line of an environment.
    Environment,
    /// `?name=value` in an address.
    Query,
    Quoted,
    /// Alone after `name: ` at the start of a line, as in YAML.
    Line,
    /// After `password = ` at the start of a line, or after `--password`.
    Password,
    /// Anything else without quotes.
    Bare,
}

/// What the name says of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameClaim {
    /// People choose it: a word may be one.
    Password,
    /// A machine made it: it is no word.
    Key,
    /// The name speaks of keys and may mean something else.
    Doubtful,
}

/// A value is judged by its beginning.
const LOOKED_AT: usize = 256;

pub(super) fn is_secret(value: &[u8], style: ValueStyle, claim: NameClaim) -> bool {
    let whole = value;
    let value = &value[..value.len().min(LOOKED_AT)];
    if value.len() < 4
        || is_placeholder(whole)
        || is_version(value)
        || is_address(value)
        || is_code_number(value)
        || is_folder(value)
        || is_page(value)
    {
        return false;
    }
    if claim == NameClaim::Doubtful {
        let hex = value
            .iter()
            .all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
        return is_random(value, 20) && !is_uuid(value) && !is_code(value) && !hex;
    }
    let drawn = is_random(value, 16);
    if style == ValueStyle::Environment && !drawn && is_expression(value) {
        return false;
    }
    if speaks_of_itself(value) && !drawn && (claim == NameClaim::Key || !has_digit(value)) {
        return style == ValueStyle::Environment && !value.iter().all(u8::is_ascii_alphabetic);
    }
    let drawn = drawn || claim != NameClaim::Doubtful && is_unbroken(value);
    let made = claim == NameClaim::Password || has_digit(value) || drawn;
    match style {
        ValueStyle::Environment => !is_small_number(value),
        ValueStyle::Query => made && !is_small_number(value),
        ValueStyle::Quoted => {
            made && !is_colour(value)
                && (!value.contains(&b' ') || has_digit(value))
                && (claim == NameClaim::Password || drawn || !is_identifier(value))
        }
        ValueStyle::Line => {
            made && !is_small_number(value)
                && (drawn || !is_variable(value))
                && (drawn || !is_code(value) && !is_type(value) && !is_identifier(value))
        }
        ValueStyle::Password => {
            (has_digit(value) && has_letter(value) || is_random(value, 8)) && !is_code(value)
        }
        ValueStyle::Bare => {
            drawn
                || claim == NameClaim::Password && (is_random(value, 8) || mixes_kinds(value))
                || value.len() >= 8
                    && has_digit(value)
                    && has_letter(value)
                    && !is_code(value)
                    && (claim == NameClaim::Password || !is_identifier(value))
        }
    }
}

/// `readpassphrase.3bsd`: a page of a manual.
fn is_page(value: &[u8]) -> bool {
    let Some(dot) = value.iter().rposition(|byte| *byte == b'.') else {
        return false;
    };
    let (name, section) = (&value[..dot], &value[dot + 1..]);
    let plain = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-');
    name.len() >= 2
        && name.iter().all(plain)
        && section.len() <= 4
        && section
            .first()
            .is_some_and(|byte| (b'1'..=b'9').contains(byte))
        && section[1..].iter().all(u8::is_ascii_lowercase)
}

/// `0x80041064`, `0x80000000i32` and `-2147483648i32`: a number of a program, too short for a key.
fn is_code_number(value: &[u8]) -> bool {
    const MOST_DIGITS: usize = 16;
    const TYPES: [&[u8]; 8] = [
        b"u8", b"u16", b"u32", b"i32", b"u64", b"i64", b"usize", b"L",
    ];
    let value = value.strip_prefix(b"-").unwrap_or(value);
    let (digits, hex) = match value.strip_prefix(b"0x") {
        Some(digits) => (digits, true),
        None => (value, false),
    };
    let end = digits
        .iter()
        .position(|byte| {
            !(byte.is_ascii_digit() || hex && byte.is_ascii_hexdigit() || *byte == b'_')
        })
        .unwrap_or(digits.len());
    let rest = &digits[end..];
    (1..=MOST_DIGITS).contains(&end) && (hex && rest.is_empty() || TYPES.contains(&rest))
}

/// `/Users/somebody`: where somebody works, as `PWD` says it.
fn is_folder(value: &[u8]) -> bool {
    let name = |byte: &u8| byte.is_ascii_alphabetic() || b"/._-".contains(byte);
    value.starts_with(b"/")
        && value.iter().filter(|byte| **byte == b'/').count() > 1
        && value.iter().all(name)
}

/// Where something is, which others may know. What opens it is looked for in addresses as well.
fn is_address(value: &[u8]) -> bool {
    value.starts_with(b"http://") || value.starts_with(b"https://")
}

/// More letters and digits in a row than words are put together of, without a seam between them.
fn is_unbroken(value: &[u8]) -> bool {
    const LEAST: usize = 22;
    let seam = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    value.len() >= LEAST
        && value.iter().all(u8::is_ascii_alphanumeric)
        && !value.windows(2).any(seam)
}

/// What people write where a secret would stand.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    const WORDS: [&str; 46] = [
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
        "value",
        "write",
        "read",
        "include",
        "omit",
        "same-origin",
        "default",
        "auto",
        "inherit",
        "enabled",
        "disabled",
        "hidden",
        "empty",
        "masked",
        "unknown",
        "example",
        "invalid",
        "missing",
        "count",
        "number",
        // What is tried first by anybody, and written in every example.
        "pass",
        "passwd",
        "pwd",
        "test",
        "testing",
        "foo",
        "bar",
        "baz",
        "foobar",
        "user",
        "username",
        "mypassword",
    ];
    /// What stands somewhere in such a word.
    const PIECES: [&str; 5] = ["***", "xxxx", "...", "\u{2026}", "<your"];
    let Some(first) = value.first() else {
        return true;
    };
    let variable = *first == b'$'
        && value
            .get(1)
            .is_some_and(|next| next.is_ascii_alphabetic() || b"_{(".contains(next));
    let brackets = value.starts_with(b"<") && value.ends_with(b">")
        || value.starts_with(b"{") && value.ends_with(b"}")
        || value.starts_with(b"{{")
        || value.starts_with(b"%(")
        || value.starts_with(b"%") && value.ends_with(b"%");
    // A value without quotes ends before the closing bracket.
    let looked_at = &value[..value.len().min(LOOKED_AT)];
    let mask = MASK.trim_end_matches(']').as_bytes();
    // A name of something that is kept elsewhere.
    let reference = value.starts_with(b"urn:") || value.starts_with(b"arn:");
    variable
        || reference
        || looked_at.windows(mask.len()).any(|part| part == mask)
        || brackets
        || looked_at.iter().all(|byte| byte == first)
        || WORDS
            .iter()
            .any(|known| without_number(value).eq_ignore_ascii_case(known.as_bytes()))
        || value
            .get(..4)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"your"))
        || mentions(looked_at, &PIECES)
}

/// `value2` is `value` once more. A `password1` is one, though.
fn without_number(value: &[u8]) -> &[u8] {
    let end = value
        .iter()
        .rposition(|byte| !byte.is_ascii_digit())
        .map_or(0, |last| last + 1);
    if value.starts_with(b"value") {
        &value[..end]
    } else {
        value
    }
}

/// A quote, possibly escaped because it stands within another string. Gives back where it ends, or
/// `from` if there is none.
pub(super) fn quote(ahead: TextAhead<'_>, from: usize) -> Result<usize, NeedMore> {
    let at = ahead.short_run(from, 3, |byte| byte == b'\\')?;
    match ahead.at(at)? {
        Some(b'"' | b'\'' | b'`') => Ok(at + 1),
        _ => Ok(from),
    }
}

pub(super) fn spaces(ahead: TextAhead<'_>, from: usize) -> Result<usize, NeedMore> {
    ahead.short_run(from, 16, |byte| byte == b' ' || byte == b'\t')
}

pub(super) fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

pub(super) fn has_letter(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_alphabetic)
}

/// `test-token`, `MYTOKEN`, `my_secret_name`: a value that is called by the name it stands under.
fn speaks_of_itself(value: &[u8]) -> bool {
    value.len() <= 64
        && mentions(
            value,
            &[
                "token",
                "secret",
                "password",
                "passwd",
                "wrongpass",
                "credential",
                "key",
                "example",
                "dummy",
                "fake",
                "sample",
                "test-",
            ],
        )
}

/// Capitals, small letters and digits in one short word, as rules for passwords demand it.
fn mixes_kinds(value: &[u8]) -> bool {
    value.len() >= 6
        && has_digit(value)
        && value.iter().any(u8::is_ascii_uppercase)
        && value.iter().any(u8::is_ascii_lowercase)
        && !is_code(value)
        && !is_variable(value)
}

/// `1.2.1`, `^4.0`, `v2.1.0`.
fn is_version(value: &[u8]) -> bool {
    let digits = match value {
        [b'v' | b'^' | b'~' | b'=', rest @ ..] => rest,
        all => all,
    };
    digits.contains(&b'.')
        && digits
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// `_bindgen_ty_29`, `users_id_0123`, `oauthClientSecret`: a name of something.
pub(crate) fn is_identifier(value: &[u8]) -> bool {
    let value = value.strip_suffix(b",").unwrap_or(value);
    let joined = value.iter().any(|byte| b"_-.".contains(byte));
    let parts = value.split(|byte| b"_-.".contains(byte));
    let plain = |part: &[u8]| {
        part.iter().all(u8::is_ascii_alphabetic)
            || part.len() <= 4 && part.iter().all(u8::is_ascii_digit)
    };
    let humps = value
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    value.iter().all(u8::is_ascii_alphabetic) && humps || joined && parts.into_iter().all(plain)
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

/// `str(path)`, `response['secret'],`: a call or an element, as a keyword argument has it.
fn is_expression(value: &[u8]) -> bool {
    let name = value
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(byte))
        .count();
    let closing = match value.get(name) {
        Some(b'(') => b')',
        Some(b'[') => b']',
        _ => return false,
    };
    name > 0 && value[name..].contains(&closing)
}

/// `hashedPwd2,`: what stands before a comma at the end of a line is an element of a literal.
fn is_variable(value: &[u8]) -> bool {
    value.strip_suffix(b",").is_some_and(|name| {
        name.iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            && name.first().is_some_and(|first| !first.is_ascii_digit())
    })
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
