//! `API_KEY=…`, `"password": "…"`, `?token=…`, `--secret …`, `<password>…</password>`, `| token | … |`.
//!
//! The hard part is leaving prose and code alone: the name has to tell ([`super::names`]), and the value
//! has to look like one ([`super::value`]). The less the name says, the more the value has to.

use std::ops::Range;

use super::names::{NameSuffix, ValueName, ends_in_another_name, joined_value, mentions, suffix};
use super::random::{is_random, is_uuid};
use super::value::{NameClaim, ValueStyle, has_digit, is_secret, quote, spaces};
use crate::MASK;
use crate::byte_class::ByteClass;
use crate::window::{NeedMore, RuleMatch, TextAhead};

/// A longer string is a document, not a password.
const LONGEST_PASSWORD: usize = 4096;

/// How far the end of a value in a tag, or an escape that ends a line, is looked for.
const LONGEST_TAG_LINE: usize = 256;

/// How far behind a telling name a value that looks drawn still belongs to it.
const NEAR: usize = 64;

/// How long such a value is at the least, and how long right behind the name.
const LEAST_NEAR: usize = 20;
const LEAST_NEXT: usize = 12;

/// How long a value in quotes is at the least that only the word `key` tells of.
const LEAST_MERE: usize = 20;

pub(super) fn look(
    word: &str,
    behind: &[u8],
    ahead: TextAhead<'_>,
) -> Result<Vec<Range<usize>>, NeedMore> {
    if !ahead.folds_to(0, word)? {
        return Ok(Vec::new());
    }
    let Some((end, suffix)) = suffix(ahead, word.len())? else {
        return Ok(Vec::new());
    };
    let name = ValueName::new(behind, ahead.slice(0..word.len()));
    let mere_key = name.is_mere_key(word);
    if !mere_key && !name.tells(word) {
        return Ok(Vec::new());
    }
    let claim = match suffix {
        NameSuffix::Plural => NameClaim::Doubtful,
        // In capitals it is an access token; a pattern in code is not.
        _ if word == "pat" && name.is_upper() => NameClaim::Key,
        _ if mere_key => NameClaim::Doubtful,
        NameSuffix::None if is_password(word) => NameClaim::Password,
        _ => NameClaim::Key,
    };
    let assignment = AssignedValue {
        word,
        name,
        end,
        claim,
        ahead,
    };
    let mut found = Vec::new();
    match assignment.value()? {
        Some(value) => {
            // Another one beside it: `token = '…' | '…'`.
            found.extend(near(ahead, value.end, ValueGap::SameLine)?);
            found.push(value);
        }
        None if claim == NameClaim::Doubtful => {}
        // What stands behind `token: ${{ … }}` and `credentials: false` is no value of theirs.
        None if is_told_elsewhere(ahead, end)? => {}
        None => match joined_value(ahead.slice(word.len()..end)) {
            Some(value) => found.push(value.start + word.len()..value.end + word.len()),
            None => found.extend(near(ahead, end, ValueGap::TwoLines)?),
        },
    }
    Ok(found)
}

/// Whether the name has a value, and that is a reference or a choice.
fn is_told_elsewhere(ahead: TextAhead<'_>, end: usize) -> Result<bool, NeedMore> {
    for value in [": ${{", ": false\n", ": true\n", ": null\n"] {
        if ahead.is(end, value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A key is long and drawn; a password need not be.
fn is_password(word: &str) -> bool {
    word.starts_with("pass") || ["pw", "pwd", "psk", "secret"].contains(&word)
}

/// A value and the name that it is assigned to.
struct AssignedValue<'a> {
    word: &'a str,
    name: ValueName<'a>,
    /// Where the name ends.
    end: usize,
    claim: NameClaim,
    ahead: TextAhead<'a>,
}

/// What stands between a name and its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AssignmentSeparator {
    Equals,
    Colon,
    Space,
}

impl AssignedValue<'_> {
    /// Whether the name alone says too little: many things have a key, and `pat` is a pattern as well.
    fn is_mere(&self) -> bool {
        matches!(self.word, "key" | "pat") && self.claim == NameClaim::Doubtful
    }

    fn value(&self) -> RuleMatch {
        let Self { ahead, end, .. } = *self;
        let after = quote(ahead, end)?;
        let at = spaces(ahead, after)?;
        let next = ahead.at(at + 1)?;
        let (from, separator) = match ahead.at(at)? {
            Some(b'=') if next == Some(b'=') => return Ok(None),
            Some(b'=') if next == Some(b'>') => (at + 2, AssignmentSeparator::Equals),
            Some(b'=') => (at + 1, AssignmentSeparator::Equals),
            Some(b':' | b'?') if next == Some(b'=') => (at + 2, AssignmentSeparator::Equals),
            Some(b'-') if next == Some(b'>') && at > end => (at + 2, AssignmentSeparator::Equals),
            Some(b'%') if ahead.folds_to(at, "%3d")? => (at + 3, AssignmentSeparator::Equals),
            Some(b':') if next == Some(b':') => return Ok(None),
            Some(b':') => (at + 1, AssignmentSeparator::Colon),
            Some(b'>') if at == end && self.name.is_tag() || after > end && at == after => {
                return self.in_tag(at + 1);
            }
            Some(b'|') => return self.in_cell(at + 1),
            Some(_) if at > end && after == end && self.takes_space() => {
                (at, AssignmentSeparator::Space)
            }
            Some(b'i' | b'w' | b't') if at > after => return self.in_prose(at),
            // `WITH PASSWORD 'x'`, as SQL has it.
            Some(b'\'') if at > after && self.is_sql() => (at, AssignmentSeparator::Space),
            _ => return self.beside(after),
        };
        let tight = at == end;
        let start = spaces(ahead, from)?;
        let opened = quote(ahead, start)?;
        if opened > start {
            return self.quoted(opened);
        }
        let mere_key = self.is_mere();
        if mere_key && !(tight && start == from) {
            return Ok(None);
        }
        let query = self.name.follows_query_mark();
        let style = match separator {
            AssignmentSeparator::Equals if tight && start == from && query => ValueStyle::Query,
            AssignmentSeparator::Equals if tight && start == from && self.name.is_upper() => {
                ValueStyle::Environment
            }
            AssignmentSeparator::Colon if start > from && self.name.starts_line() => {
                ValueStyle::Line
            }
            AssignmentSeparator::Space if !self.name.is_flag() => ValueStyle::Environment,
            _ if self.claim == NameClaim::Password
                && (self.name.is_flag() || self.name.starts_line()) =>
            {
                ValueStyle::Password
            }
            _ => ValueStyle::Bare,
        };
        let end = match style {
            ValueStyle::Environment if self.name.starts_line() => {
                ahead.run(start, ByteClass::Line)?
            }
            ValueStyle::Line => ahead.run(start, ByteClass::Line)?,
            _ => ahead.run(start, ByteClass::Bare)?,
        };
        let bytes = up_to_escape(ahead.slice(start..end)).trim_ascii_end();
        if bytes.len() > LONGEST_PASSWORD && style == ValueStyle::Bare {
            return Ok(None);
        }
        // `private_key: PrivatePkcs8KeyDer<'_>` declares one, and so does `SECRET: kind_3 = 1`.
        let declares = ahead.at(end)? == Some(b'<')
            || separator == AssignmentSeparator::Colon && start > from && ahead.is(end, " = ")?;
        if declares && !is_random(bytes, LEAST_NEAR) {
            return Ok(None);
        }
        // `password = base64.b16encode(…)` calls something.
        let name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
        if bytes.contains(&b'(') && style == ValueStyle::Bare
            || ahead.at(end)? == Some(b'(') && bytes.iter().all(name)
        {
            return Ok(None);
        }
        // `OTHER_KEY=Some Value`: a key that the name says nothing more of is drawn.
        let mere = self.word == "key" && !self.name.is_of_a_door();
        if mere
            && style == ValueStyle::Environment
            && !has_digit(&bytes[..bytes.len().min(LONGEST_TAG_LINE)])
            && !is_random(bytes, LEAST_NEXT)
        {
            return Ok(None);
        }
        // More than one word after a colon is a sentence.
        let beginning = &bytes[..bytes.len().min(LONGEST_TAG_LINE)];
        if style == ValueStyle::Line && beginning.contains(&b' ') {
            return Ok(None);
        }
        Ok(is_secret(bytes, style, self.claim).then_some(start..start + bytes.len()))
    }

    /// `--password value`, `ENV NAME value`, and `login … password …` of a netrc file.
    fn takes_space(&self) -> bool {
        let line = self.name.line_before().trim_ascii();
        self.name.is_flag()
            || line == b"ENV"
            || line == b"setenv"
            || self.word == "password"
                && self.end == self.word.len()
                && mentions(self.name.behind(), &["login "])
    }

    fn is_sql(&self) -> bool {
        self.word == "password"
            && self.end == self.word.len()
            && mentions(
                self.name.line_before(),
                &["user ", "role ", "identified ", "login "],
            )
    }

    fn quoted(&self, from: usize) -> RuleMatch {
        let ahead = self.ahead;
        let class = match ahead.slice(from - 1..from) {
            b"\"" => ByteClass::InDouble,
            b"'" => ByteClass::InSingle,
            _ => ByteClass::InBacktick,
        };
        let escaped = ahead.slice(from.saturating_sub(2)..from - 1) == b"\\";
        let mut end = ahead.run(from, class)?;
        // Within an escaped string the backslash belongs to the closing quote.
        while !escaped && end - from < LONGEST_PASSWORD && ahead.at(end)? == Some(b'\\') {
            end = ahead.run(end + 2, class)?;
        }
        let bytes = ahead.slice(from..end);
        // Many things have a key, and few of those look drawn.
        let mere_key = self.is_mere();
        if mere_key
            && !(bytes.iter().all(u8::is_ascii_alphanumeric) && is_random(bytes, LEAST_MERE))
        {
            return Ok(None);
        }
        let fits =
            bytes.len() <= LONGEST_PASSWORD && is_secret(bytes, ValueStyle::Quoted, self.claim);
        Ok(fits.then_some(from..from + bytes.len()))
    }

    /// `<password>…</password>`, `<entry key="password">…</entry>`.
    fn in_tag(&self, from: usize) -> RuleMatch {
        let ahead = self.ahead;
        let end = ahead.short_run(from, LONGEST_TAG_LINE, |byte| {
            byte != b'<' && byte != b'\n' && byte != b'\r'
        })?;
        let bytes = ahead.slice(from..end);
        let value = bytes.trim_ascii();
        let start = from + bytes.len() - bytes.trim_ascii_start().len();
        let closed = ahead.at(end)? == Some(b'<');
        Ok(
            (closed && !value.contains(&b' ') && is_secret(value, ValueStyle::Quoted, self.claim))
                .then_some(start..start + value.len()),
        )
    }

    /// `| name | value |`, as tables of Markdown and of database clients have it.
    fn in_cell(&self, from: usize) -> RuleMatch {
        let ahead = self.ahead;
        let start = spaces(ahead, from)?;
        let start = quote(ahead, start)?;
        let end = ahead.run(start, ByteClass::Bare)?;
        let value = ahead.slice(start..end);
        Ok(is_secret(value, ValueStyle::Bare, self.claim).then_some(start..end))
    }

    /// `the password is …`.
    fn in_prose(&self, at: usize) -> RuleMatch {
        let ahead = self.ahead;
        let mut from = at;
        for verb in ["is ", "is:", "was ", "was:", "to "] {
            // One passes something to something.
            if ahead.folds_to(at, verb)? && !(self.word == "pass" && verb == "to ") {
                from = at + verb.len();
            }
        }
        if from == at {
            return Ok(None);
        }
        let start = spaces(ahead, from)?;
        let start = ahead.short_run(start, 1, |byte| byte == b':')?;
        let start = spaces(ahead, start)?;
        let opened = quote(ahead, start)?;
        if opened > start {
            return self.quoted(opened);
        }
        let end = ahead.run(start, ByteClass::Bare)?;
        let bytes = ahead.slice(start..end);
        let value = bytes.strip_suffix(b".").unwrap_or(bytes);
        Ok(is_secret(value, ValueStyle::Bare, self.claim).then_some(start..start + value.len()))
    }

    /// `name="PASSWORD" value="…"`, `- name: PASSWORD` with `value: …` on the next line.
    fn beside(&self, from: usize) -> RuleMatch {
        const WORDS: [&str; 2] = ["value", "default"];
        let ahead = self.ahead;
        let at = ahead.short_run(from, 40, |byte| {
            byte.is_ascii_whitespace() || byte == b',' || byte == b'{'
        })?;
        let at = quote(ahead, at)?;
        let mut word = None;
        for known in WORDS {
            if at > from && ahead.folds_to(at, known)? {
                word = Some(known);
            }
        }
        let Some(word) = word else {
            return Ok(None);
        };
        let at = quote(ahead, at + word.len())?;
        let at = spaces(ahead, at)?;
        if !matches!(ahead.at(at)?, Some(b'=' | b':')) {
            return Ok(None);
        }
        let start = spaces(ahead, at + 1)?;
        let opened = quote(ahead, start)?;
        if opened > start {
            return self.quoted(opened);
        }
        let end = ahead.run(start, ByteClass::Bare)?;
        let value = ahead.slice(start..end);
        Ok(is_secret(value, ValueStyle::Line, self.claim).then_some(start..end))
    }
}

/// A line break that is written as an escape ends a line as well.
fn up_to_escape(value: &[u8]) -> &[u8] {
    let breaks = |pair: &[u8]| pair == b"\\n" || pair == b"\\r";
    let looked_at = &value[..value.len().min(LONGEST_TAG_LINE)];
    let end = looked_at.windows(2).position(breaks).unwrap_or(value.len());
    &value[..end]
}

/// How far a value may stand behind the word that tells of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueGap {
    SameLine,
    TwoLines,
}

/// A value that looks drawn, shortly behind a name that tells.
fn near(ahead: TextAhead<'_>, from: usize, lines: ValueGap) -> RuleMatch {
    let until = ahead.short_run(from, NEAR, |_| true)?;
    let gap = ahead.slice(from..until);
    let mut at = from;
    let mut breaks = 0;
    while at < until {
        let offset = at - from;
        let byte = gap[offset];
        breaks += usize::from(byte == b'\n');
        if breaks > usize::from(lines == ValueGap::TwoLines)
            || gap[offset..].starts_with(&MASK.as_bytes()[..4])
        {
            return Ok(None);
        }
        if !byte.is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let end = ahead.run(at, ByteClass::Drawn)?;
        let token = ahead.slice(at..end);
        let between = &gap[..offset];
        let next =
            lines == ValueGap::TwoLines && between.iter().all(|byte| !byte.is_ascii_alphanumeric());
        let least = if next { LEAST_NEXT } else { LEAST_NEAR };
        // What a mask stands beside is the rest of something.
        let cut = touches_mask(ahead.slice(at.saturating_sub(1)..at), ahead, end)?;
        let plain = next && token.len() >= LEAST_NEAR && is_letters_and_digits(token);
        let fits = if is_uuid(token) {
            next
        } else {
            !is_constant(token) && (plain || is_random(token, least))
        };
        if fits && !cut {
            // `a_key, NID_X9_62_prime256v1` is a list of names, and `Key5915Der<'_>` a type.
            let listed = between.trim_ascii() == b"," && !between.contains(&b'"');
            let typed = matches!(ahead.at(end)?, Some(b'<' | b'(')) || ahead.is(end, "::")?;
            let other = is_of_a_hash(between)
                || ends_in_another_name(between)
                || listed
                || typed
                || is_pinned(between, token)
                || is_sample(between)
                || is_fingerprint(token)
                || is_constant_of_parts(token);
            return Ok((!other).then_some(at..end));
        }
        at = end;
    }
    Ok(None)
}

/// `hex!("669cfe52…")`: what a test expects.
fn is_sample(between: &[u8]) -> bool {
    [
        &b"hex!(\""[..],
        b"unhexlify(\"",
        b"unhexlify('",
        b"fromhex(\"",
        b"fromhex('",
    ]
    .iter()
    .any(|call| between.ends_with(call))
}

/// A key of OpenPGP is named by forty digits in capitals.
fn is_fingerprint(token: &[u8]) -> bool {
    token.len() == 40
        && token
            .iter()
            .all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte))
}

/// `owner/action@3d3c42e5…`, `repository#3d3c42e5…`: which commit is meant.
fn is_pinned(between: &[u8], token: &[u8]) -> bool {
    matches!(between, [.., b'@' | b'#'])
        && token.len() >= 32
        && token.iter().all(u8::is_ascii_hexdigit)
}

/// Whether a mask stands right before these bytes, which end at `end`, or behind them.
pub(super) fn touches_mask(
    before: &[u8],
    ahead: TextAhead<'_>,
    end: usize,
) -> Result<bool, NeedMore> {
    Ok(before.ends_with(b"]") || ahead.is(end, &MASK[..4])?)
}

/// `OAEP_SHA256_MGF1SHA256`: a name in code.
fn is_constant(token: &[u8]) -> bool {
    token.contains(&b'_')
        && !token.iter().any(u8::is_ascii_lowercase)
        && token
            .split(|byte| *byte == b'_')
            .all(|part| part.len() < 16)
}

/// `NID_X9_62_prime256v1`: several short parts, none of which looks drawn.
fn is_constant_of_parts(token: &[u8]) -> bool {
    let mut parts = token.split(|byte| *byte == b'_');
    parts.clone().count() >= 3 && parts.all(|part| part.len() <= 12 && !is_random(part, 8))
}

/// One run of letters and digits, both of them there.
fn is_letters_and_digits(token: &[u8]) -> bool {
    token.iter().all(u8::is_ascii_alphanumeric)
        && token.iter().any(u8::is_ascii_digit)
        && token.iter().any(u8::is_ascii_alphabetic)
}

/// Checksums look drawn as well, and say what they are.
pub(super) fn is_of_a_hash(before: &[u8]) -> bool {
    // As Go's list of modules has it.
    before.ends_with(b"h1:")
        || mentions(
            before,
            &[
                "sha1",
                "sha2",
                "sha3",
                "sha5",
                "sha-",
                "md5",
                "checksum",
                "integrity",
                "digest",
                "commit",
                "hash",
                "revision",
                "fingerprint",
                "etag",
                "nonce",
                "uuid",
                "btih",
            ],
        )
}
