//! Keys of vendors that no table names, without anything beside them that tells.
//!
//! Most vendors put a few letters in front of what they drew: `acme_live_…`. Names in code are put
//! together from words; nothing else in ordinary text goes on like that.

use std::iter;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::assignment::{is_of_a_hash, touches_mask};
use super::azure::is_signed;
use super::names::{line_of, mentions};
use super::random::{CharacterMix, is_random, is_uuid, mixture};
use super::services::names_service;
use super::value::is_placeholder;
use super::vendor::VendorPrefix;
use crate::byte_class::ByteClass;
use crate::window::{NeedMore, TextAhead, ends_in_colour, is_token};

/// A longer run is data: an image, a certificate, a program.
const LONGEST_BARE_RUN: usize = 400;

/// How many characters a generator drew at the least, behind a prefix and without one.
const LEAST_BEHIND_PREFIX: usize = 20;
const LEAST_ALONE: usize = 30;

/// How long the longest piece of it is at the least that nothing divides.
const LEAST_PART: usize = 10;
const LEAST_PART_ALONE: usize = 16;

/// Checksums have this many digits and more, and stand behind a name as well, with a dash.
const LEAST_HEX: usize = 32;

/// A key that only the name of its service gives away is no longer than this.
const LONGEST_OF_SERVICE: usize = 100;

/// A prefix is short, and so are its parts.
const LONGEST_PREFIX: usize = 32;
const LONGEST_PART: usize = 12;

/// Data in base64 is folded into lines of this length and more.
const LEAST_FOLDED: usize = 60;

pub(super) fn look(behind: &[u8], ahead: TextAhead<'_>) -> Result<Vec<Range<usize>>, NeedMore> {
    let found = drawn_pieces(behind, ahead)?;
    let end = ahead.run(0, ByteClass::Drawn)?;
    let line = line_of(behind);
    let other = !found.is_empty()
        && (is_alphabet(ahead.slice(0..end))
            || ends_public_block(ahead, end)?
            || touches_mask(behind, ahead, end)?
            || is_of_a_hash(line)
            || is_public(line) && PrefixedKey::of(ahead.slice(0..end)).words == 0);
    Ok(if other { Vec::new() } else { found })
}

/// `[0123456789abcdef…]`: all digits in their order are a set to choose from.
fn is_alphabet(run: &[u8]) -> bool {
    run.windows(10).any(|part| part == b"0123456789")
}

/// Whether this is the last line of a certificate or of a public key in PEM.
fn ends_public_block(ahead: TextAhead<'_>, end: usize) -> Result<bool, NeedMore> {
    let end = ahead.short_run(end, 2, |byte| byte == b'=')?;
    // Also within a comment.
    let next = ahead.short_run(end, 64, |byte| {
        byte.is_ascii_whitespace() || b"/!#*".contains(&byte)
    })?;
    const ENDS: [&str; 4] = [
        "-----END CERTIFICATE",
        "-----END PUBLIC KEY",
        "-----END X509 CRL",
        "-----END TRUSTED CERTIFICATE",
    ];
    for title in ENDS {
        if ahead.is(next, title)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the line says of what follows that everybody may have it: half of a pair of keys, a
/// signature, the id of an event.
fn is_public(line: &[u8]) -> bool {
    mentions(
        line,
        &[
            "public_key",
            "public key",
            "publickey",
            "public-key",
            "pubkey",
            "pub_key",
            "curve25519",
            "ed25519",
            "x25519",
            "verify",
            "verification",
            "signature",
            "certificate",
            "thumbprint",
            "event_id",
            "sender_key",
            "identity_key",
            "ciphertext",
            "test_vector",
        ],
    )
}

fn drawn_pieces(behind: &[u8], ahead: TextAhead<'_>) -> Result<Vec<Range<usize>>, NeedMore> {
    let end = ahead.run(0, ByteClass::Drawn)?;
    if end > LONGEST_BARE_RUN {
        return Ok(Vec::new());
    }
    let run = ahead.slice(0..end);
    // Most long runs are names in code, and most of those are without a number.
    if !run.iter().any(u8::is_ascii_digit) {
        return Ok(Vec::new());
    }
    if is_signed(run) {
        let end = ahead.run(0, ByteClass::Base64)?;
        return Ok(iter::once(0..end).collect());
    }
    // A line of its own, or a string that fills one and that the next line goes on with.
    let next = ahead.at(end)?;
    let fills_line = match behind.strip_suffix(b"\"") {
        Some(before) => {
            let closed = next == Some(b'"') && matches!(ahead.at(end + 1)?, Some(b'\n' | b'\r'));
            starts_line(before) && (closed || matches!(next, Some(b'\\' | b'=')))
        }
        None => starts_line(behind) && matches!(next, None | Some(b'\n' | b'\r' | b'=' | b'\\')),
    };
    // A string that goes on in the next line is folded wherever its writer liked.
    let goes_on = next == Some(b'\\');
    let last_line = next == Some(b'=') && fills_line && follows_folded(behind);
    let folded =
        fills_line && end >= LEAST_FOLDED && (goes_on || end.is_multiple_of(4)) || last_line;
    if folded && !run.iter().any(|byte| matches!(byte, b'_' | b'-' | b'.')) {
        return Ok(Vec::new());
    }
    if follows_number_of_asana(behind, run) || follows_number_of_facebook(behind, run) {
        return Ok(iter::once(0..end).collect());
    }
    let start = length_of_escape(behind, run);
    let (mut at, whole) = (start, &run[start..]);
    if hides_key(whole) {
        let end = ahead.run(start, ByteClass::Base64)?;
        return Ok(iter::once(start..end).collect());
    }
    if is_key(whole, RunContext::Alone) && whole.contains(&b'_') && !is_placeholder(whole) {
        return Ok(iter::once(start..end).collect());
    }
    let line = line_of(behind);
    let in_address = matches!(behind, [.., b'='])
        && line.iter().any(|byte| b"?&".contains(byte))
        && mentions(line, &["://"]);
    let mut found = Vec::new();
    for piece in whole.split(|byte| b"/%~+".contains(byte)) {
        let place = at..at + piece.len();
        at = place.end + 1;
        let stands = if piece.len() == whole.len() && !in_address {
            RunContext::Alone
        } else {
            RunContext::InPath
        };
        if is_key(piece, stands) && !is_placeholder(piece) && !is_of_a_hash(piece) {
            found.push(place);
        }
    }
    if found.is_empty() && !in_address && is_of_a_service(line, whole) && !is_called(ahead, end)? {
        found.push(start..end);
    }
    Ok(found)
}

/// Whether a service is named shortly before something that looks drawn: `datadog said 8f3k…`.
fn is_of_a_service(line: &[u8], run: &[u8]) -> bool {
    // Ids of commits and contents are as long as these, and paths stand behind names of services.
    let apart = !matches!(
        line,
        [.., b'/' | b'.' | b'@' | b'#'] | [.., b'h', b'1', b':']
    );
    let plain = run.len() <= LONGEST_OF_SERVICE && run.iter().all(|byte| is_token(*byte));
    let told = || ends_in_claim(line);
    let drawn = || match mixture(run) {
        CharacterMix::Hex => (run.len() == LEAST_HEX || told()) && is_random(run, LEAST_HEX),
        CharacterMix::Letters => false,
        _ => is_random(run, LEAST_BEHIND_PREFIX),
    };
    let fits = || is_uuid(run) && told() || drawn() && !is_uuid(run);
    apart && plain && fits() && !is_placeholder(run) && names_service(line)
}

/// Whether the word before it says that it opens something: `acme ACCESS …`.
fn ends_in_claim(line: &[u8]) -> bool {
    const CLAIMS: [&[u8]; 4] = [b"access", b"private", b"login", b"code"];
    let end = line
        .iter()
        .rposition(u8::is_ascii_alphanumeric)
        .map_or(0, |last| last + 1);
    CLAIMS.iter().any(|claim| {
        let from = end.saturating_sub(claim.len());
        line[from..end].eq_ignore_ascii_case(claim)
    })
}

/// A name that is called, or that something is looked up in, is code.
fn is_called(ahead: TextAhead<'_>, end: usize) -> Result<bool, NeedMore> {
    Ok(matches!(ahead.at(end)?, Some(b'(' | b'<')) || ahead.is(end, "::")?)
}

/// `1/1200000000000000:…`: a checksum behind the number of an account.
fn follows_number_of_asana(behind: &[u8], run: &[u8]) -> bool {
    let Some(before) = behind.strip_suffix(b":") else {
        return false;
    };
    let digits = before
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    run.len() == LEAST_HEX
        && run.iter().all(u8::is_ascii_hexdigit)
        && digits == 16
        && before[..before.len() - digits].ends_with(b"/")
}

/// `953202032910963|…`: what an application of a social network logs in with.
fn follows_number_of_facebook(behind: &[u8], run: &[u8]) -> bool {
    let Some(before) = behind.strip_suffix(b"|") else {
        return false;
    };
    let digits = before
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    (15..=16).contains(&digits)
        && (27..=40).contains(&run.len())
        && run.iter().all(|byte| is_token(*byte))
}

/// Whether the line before is one of folded data, of which this is the rest.
fn follows_folded(behind: &[u8]) -> bool {
    let mut lines = behind.rsplit(|byte| *byte == b'\n').skip(1);
    let before = lines.next().unwrap_or_default().trim_ascii();
    let before = before.strip_prefix(b"\"").unwrap_or(before);
    let before = before.strip_suffix(b"\"").unwrap_or(before);
    let before = before.strip_suffix(b"\\n").unwrap_or(before);
    before.len() >= LEAST_FOLDED
        && before
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte))
}

/// Nothing but indentation stands before it on its line.
fn starts_line(behind: &[u8]) -> bool {
    let mut before = behind.iter().rev();
    let last = before.find(|byte| !matches!(byte, b' ' | b'\t'));
    matches!(last, None | Some(b'\n' | b'\r'))
}

/// Whether this is base64 of something that begins like a key: `Z2hwX…`.
fn hides_key(run: &[u8]) -> bool {
    const LOOKED_AT: usize = 32;
    let whole = &run[..run.len().min(LOOKED_AT) / 4 * 4];
    STANDARD
        .decode(whole)
        .is_ok_and(|text| VendorPrefix::begins(&text))
}

/// The end of an escape that the run begins with: `\n` in JSON, or a colour, `ESC [ 31 m`.
fn length_of_escape(behind: &[u8], run: &[u8]) -> usize {
    if behind.ends_with(b"\\") && matches!(run, [b'n' | b'r' | b't', ..]) {
        return 1;
    }
    let digits = run.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let colour = run.get(digits) == Some(&b'm') && ends_in_colour(behind);
    if colour { digits + 1 } else { 0 }
}

/// What stands around a run of characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunContext {
    Alone,
    /// Between the slashes of an address or a path, where ids look drawn as well.
    InPath,
}

fn is_key(piece: &[u8], stands: RunContext) -> bool {
    if piece.len() < LEAST_BEHIND_PREFIX {
        return false;
    }
    let PrefixedKey {
        body,
        divider,
        words,
    } = PrefixedKey::of(piece);
    if body.len() == piece.len() {
        return stands == RunContext::Alone && (is_drawn_alone(body) || is_mailchimp(body));
    }
    // A checksum behind words is one, however many words there are.
    let made_of = match mixture(longest_part(body)) {
        CharacterMix::Hex => CharacterMix::Hex,
        _ => mixture(body),
    };
    let least = match made_of {
        CharacterMix::Cases | CharacterMix::LettersAndDigits => LEAST_BEHIND_PREFIX,
        // `NODE_SEA_FUSE_…`: vendors have one word or two.
        CharacterMix::Hex if divider == b'_' && words <= 2 => LEAST_HEX,
        _ => return false,
    };
    (stands == RunContext::Alone || divider == b'_')
        && is_random(body, least)
        && is_made_up(longest_part(body))
}

/// Long enough, and no word.
fn is_made_up(part: &[u8]) -> bool {
    part.len() >= LEAST_PART && (part.iter().any(u8::is_ascii_digit) || is_random(part, LEAST_PART))
}

/// The longest part that nothing divides. Words, versions and coordinates have dividers all the time.
fn longest_part(body: &[u8]) -> &[u8] {
    body.split(|byte| b"_-.".contains(byte))
        .max_by_key(|part| part.len())
        .unwrap_or_default()
}

fn is_drawn_alone(body: &[u8]) -> bool {
    match mixture(body) {
        CharacterMix::Cases => {
            is_random(body, LEAST_ALONE) && is_random(longest_part(body), LEAST_PART_ALONE)
        }
        // The alphabet of base32.
        CharacterMix::LettersAndDigits => {
            let base32 = |byte: &u8| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(byte);
            body.iter().all(base32) && is_random(body, LEAST_HEX)
        }
        CharacterMix::Hex | CharacterMix::Letters => false,
    }
}

/// `…-us12`: a checksum behind which a data centre stands.
fn is_mailchimp(body: &[u8]) -> bool {
    let Some((key, centre)) = body.split_at_checked(LEAST_HEX) else {
        return false;
    };
    let number = centre.strip_prefix(b"-us").unwrap_or_default();
    let numbered = (1..=2).contains(&number.len()) && number.iter().all(u8::is_ascii_digit);
    key.iter().all(u8::is_ascii_hexdigit) && (numbered || is_mailgun(centre))
}

/// `…-1a2b3c4d-5e6f7a8b` behind a checksum.
fn is_mailgun(rest: &[u8]) -> bool {
    rest.len() == 18
        && rest.iter().enumerate().all(|(index, byte)| match index {
            0 | 9 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// A key without the words in front of it that tell whose it is.
struct PrefixedKey<'a> {
    body: &'a [u8],
    /// What stands between them.
    divider: u8,
    /// How many there are.
    words: usize,
}

impl<'a> PrefixedKey<'a> {
    fn of(piece: &'a [u8]) -> Self {
        let mut prefixed = Self {
            body: piece,
            divider: 0,
            words: 0,
        };
        while let Some(length) = prefixed.body.iter().position(|byte| b"_-.".contains(byte)) {
            let part = &prefixed.body[..length];
            if !is_word(part) || piece.len() - prefixed.body.len() + length > LONGEST_PREFIX {
                break;
            }
            prefixed.divider = prefixed.body[length];
            prefixed.words += 1;
            prefixed.body = &prefixed.body[length + 1..];
        }
        // A single letter in front of a dash is no vendor.
        let length = piece.len() - prefixed.body.len();
        let letters = piece[..length]
            .iter()
            .filter(|byte| byte.is_ascii_alphabetic());
        if letters.count() < 2 {
            prefixed.body = piece;
        }
        prefixed
    }
}

/// `acme`, `LIVE`, `v1`.
fn is_word(part: &[u8]) -> bool {
    let small = part
        .iter()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let capitals = part
        .iter()
        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let letters = part.iter().all(u8::is_ascii_alphabetic);
    (small || capitals) && part.len() <= if letters { LONGEST_PART } else { 4 }
}
