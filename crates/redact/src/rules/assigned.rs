//! `algolia = "…"`: a value that looks drawn, assigned on a line that names a service.

use super::assignment::{is_of_a_hash, touches_mask};
use super::names::{ends_in_another_name, line_of};
use super::random::{is_random, is_uuid};
use super::services::is_named_in;
use super::value::is_placeholder;
use crate::byte_class::ByteClass;
use crate::window::{RuleMatch, TextAhead};

/// Shorter ones are ids and names more often than keys.
const SHORTEST_ASSIGNED: usize = 20;

pub(super) fn look(behind: &[u8], ahead: TextAhead<'_>) -> RuleMatch {
    if !is_assigned(behind) {
        return Ok(None);
    }
    let end = ahead.run(0, ByteClass::Drawn)?;
    let token = ahead.slice(0..end);
    let line = line_of(behind);
    let fits = is_random(token, SHORTEST_ASSIGNED)
        && !touches_mask(behind, ahead, end)?
        && !is_uuid(token)
        && !is_placeholder(token)
        && !is_of_a_hash(line)
        && !ends_in_another_name(line)
        && is_named_in(line);
    Ok(fits.then_some(0..end))
}

/// Whether a value begins behind `=x`, `= x`, `: x`, `:"x`, and in quotes also behind a space or a bracket.
fn is_assigned(behind: &[u8]) -> bool {
    let opened = match behind {
        [rest @ .., b'"' | b'\'' | b'`'] => rest,
        _ => behind,
    };
    let quoted = opened.len() < behind.len();
    let opened = match opened {
        [rest @ .., b'\\'] => rest,
        all => all,
    };
    match opened {
        [.., b'=' | b':'] => true,
        [.., b' ' | b'\t'] if quoted => true,
        [.., b'('] => quoted,
        [rest @ .., b' ' | b'\t'] => matches!(rest.trim_ascii_end(), [.., b'=' | b':']),
        _ => false,
    }
}
