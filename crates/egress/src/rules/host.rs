//! A host name in the one form everything else compares.
//!
//! Two spellings of the same name must never meet two different rules, and nothing that a resolver
//! would read as an address may pass as a name. So a name is parsed once, here: mapped by IDNA,
//! lower-cased, without its trailing dot, made of well-formed labels.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A DNS name: lower-case ASCII, no trailing dot, labels of 1 to 63 bytes, 253 in all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(Box<str>);

/// The reason why a text is no host name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InvalidHost {
    #[error("the host is empty")]
    Empty,
    #[error("literal addresses are refused: name the host instead")]
    Literal,
    #[error("the host has an empty label")]
    EmptyLabel,
    #[error("the host or one of its labels is too long")]
    TooLong,
    #[error("the host holds a character no host name has")]
    BadCharacter,
    #[error("a label of the host starts or ends with a dash")]
    BadDash,
    #[error("the host is not a valid internationalised name")]
    Idna,
}

/// Longer than any name in any encoding; what comes in above it is not even looked at.
const RAW_LIMIT: usize = 1024;
/// As DNS has them.
const NAME_LIMIT: usize = 253;
const LABEL_LIMIT: usize = 63;

impl HostName {
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        if text.is_empty() {
            return Err(InvalidHost::Empty);
        }
        if text.len() > RAW_LIMIT {
            return Err(InvalidHost::TooLong);
        }
        if text.contains([':', '[', ']']) {
            return Err(InvalidHost::Literal);
        }
        let ascii = to_ascii(text)?;
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        check(name)?;
        Ok(Self(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name's parents, nearest first: `a.b.c` has `b.c` and `c`.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('.').map(|(dot, _)| &self.0[dot + 1..])
    }
}

fn to_ascii(text: &str) -> Result<String, InvalidHost> {
    let lower = text.to_ascii_lowercase();
    let plain = lower.is_ascii() && !lower.contains("xn--");
    if plain {
        return Ok(lower);
    }
    // Mapping first, our own character check after: whatever IDNA turns the text into is what the
    // resolver would see, so that is what has to be well-formed.
    idna::domain_to_ascii_cow(text.as_bytes(), idna::AsciiDenyList::EMPTY)
        .map(|name| name.to_ascii_lowercase())
        .map_err(|_| InvalidHost::Idna)
}

fn check(name: &str) -> Result<(), InvalidHost> {
    if name.is_empty() {
        return Err(InvalidHost::EmptyLabel);
    }
    if name.len() > NAME_LIMIT {
        return Err(InvalidHost::TooLong);
    }
    for label in name.split('.') {
        check_label(label)?;
    }
    if name.rsplit('.').next().is_some_and(reads_as_number) {
        return Err(InvalidHost::Literal);
    }
    Ok(())
}

fn check_label(label: &str) -> Result<(), InvalidHost> {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    if label.is_empty() {
        Err(InvalidHost::EmptyLabel)
    } else if label.len() > LABEL_LIMIT {
        Err(InvalidHost::TooLong)
    } else if !label.bytes().all(allowed) {
        Err(InvalidHost::BadCharacter)
    } else if label.starts_with('-') || label.ends_with('-') {
        Err(InvalidHost::BadDash)
    } else {
        Ok(())
    }
}

/// Whether resolvers would take a name with this last label for an IPv4 address in one of its
/// old spellings (`127.1`, `0x7f.1`, `017700000001`, `2130706433`).
fn reads_as_number(label: &str) -> bool {
    let hex = label
        .strip_prefix("0x")
        .map(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    hex.unwrap_or_else(|| label.bytes().all(|b| b.is_ascii_digit()))
}

impl FromStr for HostName {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        Self::parse(text)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for HostName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
