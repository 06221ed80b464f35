//! The name in front of a value: whether it speaks of a secret.
//!
//! A telling word may stand anywhere in a name (`OPENAI_API_KEY_PROD`, `apiKeyProd`, `db.password.eu`),
//! as a word of its own. What follows it may take the meaning away again: `token_url`, `password_file`.

use std::ops::Range;

use super::random::{is_random, is_uuid};
use super::services::{is_named_in, is_service};
use crate::window::{NeedMore, TextAhead, is_token};

/// What tells that a name holds a secret.
pub(super) static WORDS: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pass",
    "pwd",
    "psk",
    "secret",
    "token",
    "apikey",
    "key",
    "credential",
    "credentials",
    "signature",
    "sig",
];

/// Words behind a telling one that make the name speak of something about the secret.
static ABOUT: [&str; 74] = [
    "age",
    "alg",
    "algorithm",
    "algo",
    "arn",
    "at",
    "attribute",
    "bits",
    "bytes",
    "cache",
    "chars",
    "class",
    "column",
    "count",
    "created",
    "dir",
    "directory",
    "enabled",
    "encoding",
    "endpoint",
    "env",
    "error",
    "exists",
    "expiration",
    "expires",
    "expiry",
    "field",
    "file",
    "filename",
    "fingerprint",
    "format",
    "generator",
    "handler",
    "hash",
    "header",
    "hint",
    "id",
    "ids",
    "index",
    "input",
    "issuer",
    "kind",
    "label",
    "len",
    "length",
    "lifetime",
    "limit",
    "list",
    "location",
    "manager",
    "max",
    "message",
    "min",
    "mode",
    "name",
    "names",
    "option",
    "parameter",
    "path",
    "pattern",
    "policy",
    "prefix",
    "prompt",
    "provider",
    "ref",
    "regex",
    "rotation",
    "scope",
    "selector",
    "size",
    "ttl",
    "type",
    "uri",
    "url",
];

/// Words before `token` and its like that make it a piece of text.
static PUBLIC: [&str; 14] = [
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
    "csrf_field",
    "max",
    "num",
];

/// Words before `key` that make it one to a door.
static KEYS: [&str; 40] = [
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
    "write",
    "server",
    "integration",
    "subscription",
    "jwt",
    "function",
    "host",
    "user",
    "preshared",
    "unseal",
    "recovery",
    "hmac",
    "fernet",
    "consumer",
    "provision",
    "bearer",
    "oauth",
    "gateway",
];

/// How much of a name stands behind its telling word.
const LONGEST_SUFFIX: usize = 48;

/// What a name says by the words behind its telling one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameSuffix {
    /// None, or a number: the name ends in the telling word.
    None,
    /// `_PROD`, `_CI`, `Staging`: which one it is.
    Which,
    /// `tokens`: some of them, or how many.
    Plural,
}

/// Where the name ends whose telling word ends at `from`, and what the rest of it says. `None` where
/// the word only goes on (`tokenizer`, `keyboard`), or where the name speaks of something else
/// (`password_file`).
pub(super) fn suffix(
    ahead: TextAhead<'_>,
    from: usize,
) -> Result<Option<(usize, NameSuffix)>, NeedMore> {
    let end = ahead.short_run(from, LONGEST_SUFFIX, |byte| is_token(byte) || byte == b'.')?;
    let rest = ahead.slice(from..end);
    // A dot at the end closes a sentence, or opens a call.
    let rest = match rest.iter().rposition(|byte| *byte != b'.' && *byte != b'-') {
        Some(last) => &rest[..=last],
        None => b"",
    };
    let end = from + rest.len();
    let last = ahead.slice(from.saturating_sub(1)..from);
    let opens = match rest {
        [] => return Ok(Some((end, NameSuffix::None))),
        [b's' | b'S'] => return Ok(Some((end, NameSuffix::Plural))),
        [b'_' | b'-' | b'.', ..] => true,
        [first, ..] if first.is_ascii_digit() => true,
        // `SECRETProd`: a word in capitals, and one that begins with a capital.
        [first, second, ..] if first.is_ascii_uppercase() && second.is_ascii_lowercase() => true,
        [first, ..] => first.is_ascii_uppercase() && last.iter().all(u8::is_ascii_lowercase),
    };
    if !opens {
        return Ok(None);
    }
    let mut says = NameSuffix::None;
    for word in words(rest) {
        if word.iter().all(u8::is_ascii_digit) && word.len() <= 3 {
            continue;
        }
        let is = |known: &&str| word.eq_ignore_ascii_case(known.as_bytes());
        if ABOUT.iter().any(is) {
            return Ok(None);
        }
        if !["base", "base64", "b64", "value"].iter().any(is) {
            says = NameSuffix::Which;
        }
    }
    Ok(Some((end, says)))
}

/// A value that is joined to the name with a dash, within `suffix`: `acme-secret-5f4dcc3b5aa765d61d83`.
pub(super) fn joined_value(suffix: &[u8]) -> Option<Range<usize>> {
    const SHORTEST_NAMED: usize = 16;
    let (b'-' | b'_' | b'.', value) = suffix.split_first()? else {
        return None;
    };
    let made = value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    let drawn = is_uuid(value)
        || value.iter().all(u8::is_ascii_alphanumeric) && is_random(value, SHORTEST_NAMED);
    (made && drawn).then_some(1..suffix.len())
}

/// Whether the last word before a value names something else: `--client-id`, `"GroupId": "`.
pub(super) fn ends_in_another_name(between: &[u8]) -> bool {
    let end = between
        .iter()
        .rposition(u8::is_ascii_alphanumeric)
        .map_or(0, |last| last + 1);
    let length = between[..end]
        .iter()
        .rev()
        .take_while(|byte| is_token(**byte))
        .count();
    let last = words(&between[end - length..end]).last();
    last.is_some_and(|word| {
        ABOUT
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
    })
}

/// The words of a name: `_`, `-` and `.` divide, and so does a capital behind a small letter.
fn words(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.split(|byte| b"_-.".contains(byte))
        .flat_map(|part| {
            part.chunk_by(|one, two| !(one.is_ascii_lowercase() && two.is_ascii_uppercase()))
        })
        .filter(|word| !word.is_empty())
}

/// The name in front of a value, as far as it can be seen.
pub(super) struct ValueName<'a> {
    /// Up to the telling word.
    before: &'a [u8],
    word: &'a [u8],
    /// What stands in front of the name.
    behind: &'a [u8],
}

impl<'a> ValueName<'a> {
    pub(super) fn new(behind: &'a [u8], word: &'a [u8]) -> Self {
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

    pub(super) fn tells(&self, word: &str) -> bool {
        // `Access-Control-Allow-Credentials` says whether, and not which.
        let allows = self.before.get(..15);
        if allows.is_some_and(|start| start.eq_ignore_ascii_case(b"access-control-")) {
            return false;
        }
        // `CharacterKind::Secret => …` is a case of something.
        if self.behind.ends_with(b"::") {
            return false;
        }
        let last = match self.last_part() {
            [] => self.part_before_dot(),
            last => last,
        };
        let is = |known: &&str| last.eq_ignore_ascii_case(known.as_bytes());
        if PUBLIC.iter().any(is) {
            return false;
        }
        match word {
            "key" => {
                KEYS.iter().any(is)
                    || self.follows_query_mark()
                    || self.is_upper() && !last.is_empty()
                    || !last.is_empty() && is_named_in(self.before)
                    || self.before.is_empty() && self.follows_word()
            }
            "pass" | "psk" | "pwd" | "pw" => self.starts_part(),
            "sig" | "signature" => self.follows_query_mark() || self.is_amz(),
            "pat" => false,
            _ => true,
        }
    }

    /// The words before `key` say that it opens something.
    pub(super) fn is_of_a_door(&self) -> bool {
        let last = self.last_part();
        KEYS.iter()
            .any(|known| last.eq_ignore_ascii_case(known.as_bytes()))
            || is_named_in(self.before)
    }

    /// Only `key` or `pat`: many things are called so, and few of them are secret.
    pub(super) fn is_mere_key(&self, word: &str) -> bool {
        matches!(word, "key" | "pat") && self.starts_part() && !self.tells(word)
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

    /// `api` in `openai.api.key`, as files of properties have it.
    fn part_before_dot(&self) -> &'a [u8] {
        let Some(before) = self
            .behind
            .strip_suffix(b".")
            .filter(|_| self.before.is_empty())
        else {
            return b"";
        };
        let length = before
            .iter()
            .rev()
            .take_while(|byte| is_token(**byte))
            .count();
        &before[before.len() - length..]
    }

    /// The telling word is a word of its own.
    pub(super) fn starts_part(&self) -> bool {
        match self.before {
            [.., b'_' | b'-'] | [] => true,
            [.., last] => last.is_ascii_lowercase() && self.word[0].is_ascii_uppercase(),
        }
    }

    /// `api key`, as people write it.
    fn follows_word(&self) -> bool {
        let Some(rest) = self.behind.strip_suffix(b" ") else {
            return false;
        };
        let length = rest
            .iter()
            .rev()
            .take_while(|byte| is_token(**byte))
            .count();
        let word = &rest[rest.len() - length..];
        let is_of_a_door = KEYS
            .iter()
            .filter(|known| !["user", "host", "app"].contains(known))
            .any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
        is_of_a_door || is_service(word)
    }

    pub(super) fn is_upper(&self) -> bool {
        !self
            .before
            .iter()
            .chain(self.word)
            .any(u8::is_ascii_lowercase)
    }

    pub(super) fn is_flag(&self) -> bool {
        self.before.starts_with(b"--")
    }

    fn is_amz(&self) -> bool {
        self.before.len() >= 6 && self.before[..6].eq_ignore_ascii_case(b"x-amz-")
    }

    pub(super) fn follows_query_mark(&self) -> bool {
        matches!(self.behind, [.., b'?' | b'&'])
    }

    /// `<name>`.
    pub(super) fn is_tag(&self) -> bool {
        matches!(self.behind, [.., b'<'])
    }

    /// Nothing but indentation, `- `, `export ` or a quote stands before the name.
    pub(super) fn starts_line(&self) -> bool {
        const OPENINGS: [&[u8]; 8] = [
            b"-",
            b"export",
            b"set",
            b"\"",
            b"'",
            b"declare -x",
            b"ENV",
            b"setenv",
        ];
        let line = self
            .behind
            .rsplit(|byte| is_break(*byte))
            .next()
            .unwrap_or_default();
        // A name with dots in it begins earlier.
        let line = match line
            .iter()
            .rposition(|byte| !is_token(*byte) && *byte != b'.')
        {
            Some(_) if !line.ends_with(b".") => line,
            Some(last) => &line[..=last],
            None => b"",
        };
        let line = line.trim_ascii();
        line.is_empty() || OPENINGS.contains(&line)
    }

    /// The line so far, up to what was taken out of it.
    pub(super) fn line_before(&self) -> &'a [u8] {
        line_of(self.behind)
    }

    pub(super) fn behind(&self) -> &'a [u8] {
        self.behind
    }
}

/// The end of these bytes that is on one line and behind the last mask. A mask is shorter than what it
/// stands for, so looking past one would see something else the second time.
pub(super) fn line_of(behind: &[u8]) -> &[u8] {
    behind
        .rsplit(|byte| is_break(*byte) || *byte == b']')
        .next()
        .unwrap_or_default()
}

/// Whether these words, in lower case, stand somewhere in it.
pub(super) fn mentions(text: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| {
        let first = word.as_bytes().first().copied();
        text.windows(word.len()).any(|part| {
            // Most places end here.
            part.first().map(u8::to_ascii_lowercase) == first
                && part.eq_ignore_ascii_case(word.as_bytes())
        })
    })
}

fn is_break(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}
