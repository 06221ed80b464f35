//! `algolia = "…"`: a value that looks drawn, assigned on a line that names a service.

use super::assignment::{is_of_a_hash, touches_mask};
use super::names::line_of;
use super::random::{is_random, is_uuid};
use super::services::is_named_in;
use super::value::{is_placeholder, quote, spaces};
use crate::class::Class;
use crate::filter::{Key, key};
use crate::window::{Ahead, Found};

/// Shorter ones are ids and names more often than keys.
const LEAST: usize = 20;

pub(super) fn look(behind: &[u8], ahead: Ahead<'_>) -> Found {
    let divider = ahead.at(0)?;
    if !matches!(divider, Some(b'=' | b':' | b' ' | b'(')) {
        return Ok(None);
    }
    let spaced = spaces(ahead, 1)?;
    let start = quote(ahead, spaced)?;
    if start == spaced && matches!(divider, Some(b' ' | b'(')) {
        return Ok(None);
    }
    let end = ahead.run(start, Class::Drawn)?;
    if end - start < LEAST {
        return Ok(None);
    }
    let token = ahead.slice(start..end);
    let line = line_of(behind);
    let fits = !touches_mask(ahead, start, end)?
        && is_random(token, LEAST)
        && !is_uuid(token)
        && !is_placeholder(token)
        && !is_of_a_hash(line)
        && is_named_in(line);
    Ok(fits.then_some(start..end))
}

/// Every way a value begins: `="x`, `= "`, `=xy`, `: "`, `: x`, `:"x`, and in quotes ` "x` and `("x`.
pub(super) fn keys() -> impl Iterator<Item = Key> {
    let plain = || (b'0'..=b'9').chain(b'a'..=b'z');
    let quotes = || *b"\"'`\\";
    let divided = *b"=: (";
    divided.into_iter().flat_map(move |divider| {
        let spaced = plain()
            .chain(quotes())
            .map(move |byte| key([divider, b' ', byte]))
            .filter(move |_| divider == b'=' || divider == b':');
        let quoted = quotes().into_iter().flat_map(move |mark| {
            plain()
                .chain(quotes())
                .map(move |byte| key([divider, mark, byte]))
        });
        let tight = plain()
            .flat_map(move |one| plain().map(move |two| key([b'=', one, two])))
            .filter(move |_| divider == b'=');
        spaced.chain(quoted).chain(tight)
    })
}
