//! Private key blocks, also indented, quoted, escaped into one line, or cut off.

use crate::window::{Ahead, Found};

pub(super) fn look(ahead: Ahead<'_>) -> Found {
    const BEGIN: &str = "-----BEGIN ";
    const MARK: &str = "PRIVATE KEY";
    if !ahead.is(0, BEGIN)? {
        return Ok(None);
    }
    let title = ahead.short_run(BEGIN.len(), 40, |byte| {
        byte.is_ascii_uppercase() || byte == b' '
    })?;
    let named = ahead.slice(BEGIN.len()..title);
    if !named
        .windows(MARK.len())
        .any(|part| part == MARK.as_bytes())
    {
        return Ok(None);
    }
    let body = ahead.run(title, |byte| byte == b'-')?;
    if let Some(end) = ahead.find(body, "-----END ")? {
        let end = ahead.run(end + "-----END ".len(), |byte| {
            byte.is_ascii_uppercase() || byte == b' '
        })?;
        let end = ahead.run(end, |byte| byte == b'-')?;
        return Ok(holds_key(ahead.slice(body..end)).then_some(0..end));
    }
    // No end in sight: the key was cut, or somebody only speaks of one.
    let end = ahead.run(body, |byte| {
        is_digit(byte) || b" \t\r\n\\=:,-\"'|>".contains(&byte)
    })?;
    Ok(holds_key(ahead.slice(body..end)).then_some(0..end))
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
