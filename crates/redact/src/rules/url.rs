//! Passwords in front of a host name: databases, proxies, git remotes.

use super::value::is_placeholder;
use crate::window::{RuleMatch, TextAhead};

/// Longer ones are not read as one.
const LONGEST_URL: usize = 1024;

pub(super) fn userinfo(ahead: TextAhead<'_>) -> RuleMatch {
    const SEPARATOR: &str = "://";
    if !ahead.is(0, SEPARATOR)? {
        return Ok(None);
    }
    let from = SEPARATOR.len();
    let end = ahead.short_run(from, LONGEST_URL, |byte| {
        !byte.is_ascii_whitespace() && !b"/?#\"'`<>".contains(&byte)
    })?;
    let authority = ahead.slice(from..end);
    let Some(at_sign) = authority.iter().rposition(|byte| *byte == b'@') else {
        return Ok(None);
    };
    let userinfo = &authority[..at_sign];
    let secret = match userinfo.iter().position(|byte| *byte == b':') {
        Some(colon) => colon + 1..at_sign,
        // A token may stand alone: `https://ghp_…@host`. A short name is only a name.
        None if userinfo.len() >= 20 && userinfo.iter().any(u8::is_ascii_digit) => 0..at_sign,
        None => return Ok(None),
    };
    if is_placeholder(&userinfo[secret.clone()]) {
        return Ok(None);
    }
    Ok(Some(from + secret.start..from + secret.end))
}
