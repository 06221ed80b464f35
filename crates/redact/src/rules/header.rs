//! Credentials on their way in a header.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::random::is_random;
use super::value::{is_placeholder, quote, spaces};
use crate::byte_class::ByteClass;
use crate::window::{RuleMatch, TextAhead, starts_word};

/// A cookie's name is shorter.
const LONGEST_NAME: usize = 128;

/// How much of a value is looked at to tell it from a word.
const LOOKED_AT: usize = 512;

const SCHEMES: [&str; 6] = ["bearer", "basic", "token", "digest", "apikey", "bot"];

/// `Authorization: Bearer …`, also as JSON, in a curl command, or with the scheme left out.
pub(super) fn authorization(ahead: TextAhead<'_>) -> RuleMatch {
    const NAME: &str = "authorization";
    if !ahead.folds_to(0, NAME)? {
        return Ok(None);
    }
    let at = quote(ahead, NAME.len())?;
    let at = spaces(ahead, at)?;
    if !matches!(ahead.at(at)?, Some(b':' | b'=')) {
        return Ok(None);
    }
    let at = spaces(ahead, at + 1)?;
    // A list of one value, as some libraries print headers.
    let at = ahead.short_run(at, 1, |byte| byte == b'[')?;
    let at = quote(ahead, at)?;
    for scheme in SCHEMES {
        if ahead.folds_to(at, scheme)? && ahead.at(at + scheme.len())? == Some(b' ') {
            let from = spaces(ahead, at + scheme.len())?;
            let class = if scheme == "digest" {
                ByteClass::Line
            } else {
                ByteClass::Credential
            };
            let end = ahead.run(from, class)?;
            let value = ahead.slice(from..end);
            let plain = is_placeholder(value) || scheme == "basic" && is_plain_pair(value);
            return Ok((end - from >= 4 && !plain).then_some(from..end));
        }
    }
    let end = ahead.run(at, ByteClass::Credential)?;
    let value = ahead.slice(at..end);
    let address = value.starts_with(b"http");
    Ok((value.len() >= 16 && has_digit(value) && !address).then_some(at..end))
}

/// A user and the password of an example, as `Basic` has them.
fn is_plain_pair(encoded: &[u8]) -> bool {
    let Ok(pair) = STANDARD.decode(&encoded[..encoded.len().min(LOOKED_AT)]) else {
        return false;
    };
    let password = pair.iter().position(|byte| *byte == b':');
    password.is_some_and(|colon| is_placeholder(&pair[colon + 1..]))
}

/// `Bearer …` wherever it stands.
pub(super) fn bearer(behind: &[u8], ahead: TextAhead<'_>) -> RuleMatch {
    const WORD: &str = "bearer ";
    if !starts_word(behind) || !ahead.folds_to(0, WORD)? {
        return Ok(None);
    }
    let end = ahead.run(WORD.len(), ByteClass::Credential)?;
    let value = ahead.slice(WORD.len()..end);
    Ok(
        (value.len() >= 16 && (has_digit(value) || is_random(value, 16)))
            .then_some(WORD.len()..end),
    )
}

/// `Cookie: a=b` and `Set-Cookie: a=b`, to the end of the line.
pub(super) fn cookie(ahead: TextAhead<'_>) -> RuleMatch {
    const NAME: &str = "cookie: ";
    if !ahead.folds_to(0, NAME)? {
        return Ok(None);
    }
    let end = ahead.run(NAME.len(), ByteClass::Unquoted)?;
    let value = ahead.slice(NAME.len()..end);
    let name = value
        .iter()
        .take(LONGEST_NAME)
        .position(|byte| *byte == b'=');
    let is_pair = name.is_some_and(|length| !value[..length].contains(&b' '));
    Ok((is_pair && value.len() >= 8 && !is_placeholder(value)).then_some(NAME.len()..end))
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().take(LOOKED_AT).any(u8::is_ascii_digit)
}
