//! Private key blocks, also indented, quoted, escaped into one line, or cut off.

use crate::window::{RuleMatch, TextAhead};

pub(super) fn look(ahead: TextAhead<'_>) -> RuleMatch {
    const BEGIN: &str = "-----BEGIN ";
    const MARK: &str = "PRIVATE KEY";
    if !ahead.is(0, BEGIN)? {
        return Ok(None);
    }
    let title = ahead.short_run(BEGIN.len(), 40, is_title)?;
    let named = ahead.slice(BEGIN.len()..title);
    if !named
        .windows(MARK.len())
        .any(|part| part == MARK.as_bytes())
    {
        return Ok(None);
    }
    let body = ahead.short_run(title, 5, is_dash)?;
    // Nothing in a key looks like a mark, so what comes before the next one is all of it.
    let end = match ahead.find(body, "-----")? {
        Some(mark) if ahead.is(mark, "-----END ")? => {
            let title = ahead.short_run(mark + 9, 40, is_title)?;
            let end = ahead.short_run(title, 5, is_dash)?;
            return Ok(holds_key(ahead.slice(body..mark)).then_some(0..end));
        }
        Some(mark) => mark,
        None => ahead.len(),
    };
    // No end in sight: the key was cut, or somebody only speaks of one.
    let rest = ahead.slice(body..end);
    let fits = |byte: &u8| is_digit(*byte) || b" \t\r\n\\=:,-\"'|>+".contains(byte);
    let length = rest
        .iter()
        .position(|byte| !fits(byte))
        .unwrap_or(rest.len());
    Ok(holds_key(&rest[..length]).then_some(0..body + length))
}

/// The parts of a PuTTY key file that are secret, and how each begins.
pub(super) const PUTTY_TITLES: [&str; 2] = ["Private-Lines: ", "Private-MAC: "];

pub(super) fn putty(title: &str, ahead: TextAhead<'_>) -> RuleMatch {
    if !ahead.is(0, title)? {
        return Ok(None);
    }
    let from = title.len();
    let number = ahead.short_run(from, 64, |byte| byte.is_ascii_hexdigit())?;
    if title == PUTTY_TITLES[1] {
        return Ok((number - from >= 32).then_some(from..number));
    }
    let body = ahead.short_run(number, 2, |byte| byte == b'\r' || byte == b'\n')?;
    let is_body = |byte: u8| is_digit(byte) || b"=\r\n".contains(&byte);
    let end = ahead.short_run(body, 16 << 10, is_body)?;
    // The title of the next part begins like a line of the key.
    let next = b"Private";
    let end = match ahead.slice(body..end) {
        key if key.ends_with(next) => end - next.len(),
        _ => end,
    };
    let key = ahead.slice(body..end).trim_ascii_end();
    Ok((key.len() >= 32).then_some(body..body + key.len()))
}

/// Tells a key from source code that mentions the markers.
fn holds_key(body: &[u8]) -> bool {
    let digits = body.iter().filter(|byte| is_digit(**byte)).count();
    let others = body
        .iter()
        .filter(|byte| !is_digit(**byte) && !byte.is_ascii_whitespace())
        .count();
    let longest = body
        .split(|byte| !is_digit(*byte))
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0);
    digits >= 48 && (longest >= 40 || others * 6 < digits)
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

fn is_title(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte == b' '
}

fn is_dash(byte: u8) -> bool {
    byte == b'-'
}
