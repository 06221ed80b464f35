//! `API_KEY=…`, `"password": "…"`, `?token=…`, `--secret …`.
//!
//! The hard part is leaving prose and code alone: the name has to *end* in a telling word
//! (`max_tokens`, `password_field` and `tokenizer` do not), and the value has to look like one; see
//! [`super::value`].

use super::value::{Style, is_secret, quote, spaces};
use crate::class::Class;
use crate::window::{Ahead, Found, NeedMore, is_token};

/// What a telling name ends in.
pub(super) static WORDS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "credential",
    "credentials",
    "signature",
    "sig",
];

/// A longer string is a document, not a password.
const LONGEST: usize = 4096;

pub(super) fn look(word: &str, behind: &[u8], ahead: Ahead<'_>) -> Found {
    if !ahead.folds_to(0, word)? {
        return Ok(None);
    }
    let end = end_of_name(ahead, word.len())?;
    if ahead.at(end)?.is_some_and(is_token) {
        return Ok(None);
    }
    let name = Name::new(behind, ahead.slice(0..word.len()));
    if !name.tells(word) {
        return Ok(None);
    }
    let after = quote(ahead, end)?;
    let at = spaces(ahead, after)?;
    let (from, separator) = match ahead.at(at)? {
        Some(b'=') if ahead.at(at + 1)? == Some(b'>') => (at + 2, Separator::Equals),
        Some(b'=') => (at + 1, Separator::Equals),
        Some(b':') if ahead.at(at + 1)? == Some(b'=') => (at + 2, Separator::Equals),
        Some(b':') => (at + 1, Separator::Colon),
        // `--password value`
        Some(_) if at > end && name.is_flag() => (at, Separator::Space),
        _ => return Ok(None),
    };
    let tight = at == end;
    let start = spaces(ahead, from)?;
    let opened = quote(ahead, start)?;
    if opened > start {
        return quoted(ahead, opened);
    }
    let query = name.follows_query_mark();
    let style = match separator {
        Separator::Equals if tight && start == from && (name.is_upper() || query) => {
            Style::Environment
        }
        Separator::Colon if start > from && name.starts_line() => Style::Line,
        _ if is_password(word) && (name.is_flag() || name.starts_line()) => Style::Password,
        _ => Style::Bare,
    };
    let end = match style {
        Style::Environment if name.starts_line() && !query => ahead.run(start, Class::Line)?,
        Style::Line => ahead.run(start, Class::Line)?,
        _ => ahead.run(start, Class::Bare)?,
    };
    let bytes = ahead.slice(start..end).trim_ascii_end();
    if bytes.len() > LONGEST && style == Style::Bare {
        return Ok(None);
    }
    // More than one word after a colon is a sentence.
    if style == Style::Line && bytes.contains(&b' ') {
        return Ok(None);
    }
    Ok(is_secret(bytes, style).then_some(start..start + bytes.len()))
}

/// A key is long; a password need not be.
fn is_password(word: &str) -> bool {
    word.starts_with("pass") || word == "pwd"
}

enum Separator {
    Equals,
    Colon,
    Space,
}

/// `TOKEN_2`, `SECRET_KEY_BASE`.
fn end_of_name(ahead: Ahead<'_>, from: usize) -> Result<usize, NeedMore> {
    if ahead.folds_to(from, "_base64")? {
        return Ok(from + 7);
    }
    if ahead.folds_to(from, "_base")? {
        return Ok(from + 5);
    }
    let at = ahead.short_run(from, 1, |byte| byte == b'_')?;
    let end = ahead.short_run(at, 2, |byte| byte.is_ascii_digit())?;
    Ok(if end > at { end } else { from })
}

fn quoted(ahead: Ahead<'_>, from: usize) -> Found {
    let class = match ahead.slice(from - 1..from) {
        b"\"" => Class::InDouble,
        b"'" => Class::InSingle,
        _ => Class::InBacktick,
    };
    let escaped = ahead.slice(from.saturating_sub(2)..from - 1) == b"\\";
    let mut end = ahead.run(from, class)?;
    // Within an escaped string the backslash belongs to the closing quote.
    while !escaped && end - from < LONGEST && ahead.at(end)? == Some(b'\\') {
        end = ahead.run(end + 2, class)?;
    }
    let bytes = ahead.slice(from..end);
    Ok((bytes.len() <= LONGEST && is_secret(bytes, Style::Quoted))
        .then_some(from..from + bytes.len()))
}

/// The name in front of a value, as far as it can be seen.
struct Name<'a> {
    /// Up to the telling word.
    before: &'a [u8],
    word: &'a [u8],
    /// What stands in front of the name.
    behind: &'a [u8],
}

impl<'a> Name<'a> {
    fn new(behind: &'a [u8], word: &'a [u8]) -> Self {
        let length = behind
            .iter()
            .rev()
            .take_while(|byte| is_token(**byte))
            .count();
        let (behind, before) = behind.split_at(behind.len() - length);
        Self {
            before,
            word,
            behind,
        }
    }

    fn tells(&self, word: &str) -> bool {
        const PUBLIC: [&str; 11] = [
            "next",
            "page",
            "continuation",
            "pad",
            "eos",
            "bos",
            "unk",
            "mask",
            "sep",
            "cls",
            "public",
        ];
        const KEYS: [&str; 22] = [
            "api",
            "access",
            "secret",
            "private",
            "signing",
            "encryption",
            "master",
            "auth",
            "account",
            "shared",
            "service",
            "storage",
            "session",
            "admin",
            "deploy",
            "ssh",
            "license",
            "app",
            "client",
            "x-api",
            "sharedaccess",
            "webhook",
        ];
        let last = self.last_part();
        let is = |known: &&str| last.eq_ignore_ascii_case(known.as_bytes());
        if PUBLIC.iter().any(is) {
            return false;
        }
        match word {
            "key" => {
                KEYS.iter().any(is)
                    || self.follows_query_mark()
                    || self.is_upper() && !last.is_empty()
            }
            "pass" => self.starts_part(),
            "sig" | "signature" => self.follows_query_mark() || self.is_amz(),
            _ => true,
        }
    }

    /// `api` in `openai_api_key`, `openaiApiKey` and `apikey`.
    fn last_part(&self) -> &'a [u8] {
        let before = match self.before {
            [rest @ .., b'_' | b'-'] => rest,
            all => all,
        };
        let breaks = |index: &usize| {
            let index = *index;
            matches!(before[index - 1], b'_' | b'-')
                || before[index].is_ascii_uppercase() && before[index - 1].is_ascii_lowercase()
        };
        let start = (1..before.len()).rev().find(breaks).unwrap_or(0);
        &before[start..]
    }

    /// The telling word is a word of its own.
    fn starts_part(&self) -> bool {
        match self.before {
            [.., b'_' | b'-'] | [] => true,
            [.., last] => last.is_ascii_lowercase() && self.word[0].is_ascii_uppercase(),
        }
    }

    fn is_upper(&self) -> bool {
        !self
            .before
            .iter()
            .chain(self.word)
            .any(u8::is_ascii_lowercase)
    }

    fn is_flag(&self) -> bool {
        self.before.starts_with(b"--")
    }

    fn is_amz(&self) -> bool {
        self.before.len() >= 6 && self.before[..6].eq_ignore_ascii_case(b"x-amz-")
    }

    fn follows_query_mark(&self) -> bool {
        matches!(self.behind, [.., b'?' | b'&'])
    }

    /// Nothing but indentation, `- `, `export ` or a quote stands before the name.
    fn starts_line(&self) -> bool {
        let line = self
            .behind
            .rsplit(|byte| is_break(*byte))
            .next()
            .unwrap_or_default();
        let line = line.trim_ascii();
        line.is_empty()
            || [&b"-"[..], b"export", b"set", b"\"", b"'", b"declare -x"].contains(&line)
    }
}

fn is_break(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}
