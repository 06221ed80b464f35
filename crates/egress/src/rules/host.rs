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
pub struct Host(Box<str>);

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
const NAME_LIMIT: usize = 253;
const LABEL_LIMIT: usize = 63;

impl Host {
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

impl FromStr for Host {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        Self::parse(text)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for Host {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(text: &str) -> Result<String, InvalidHost> {
        Host::parse(text).map(|host| host.to_string())
    }

    #[test]
    fn spellings_of_one_name_become_one() {
        for text in [
            "example.com",
            "EXAMPLE.com",
            "example.com.",
            "Example.Com.",
            "ｅｘａｍｐｌｅ。com",
        ] {
            assert_eq!(host(text), Ok("example.com".to_owned()), "{text:?}");
        }
        assert_eq!(host("bücher.de"), Ok("xn--bcher-kva.de".to_owned()));
        assert_eq!(host("BÜCHER.de"), host("xn--bcher-kva.de"));
        assert_eq!(host("a_b.example"), Ok("a_b.example".to_owned()));
    }

    #[test]
    fn addresses_in_any_spelling_are_no_names() {
        for text in [
            "127.0.0.1",
            "127.1",
            "0x7f.1",
            "0x7f000001",
            "017700000001",
            "2130706433",
            "127.0.0.1.",
            "0x",
            "1.2.3.4.5",
            "[::1]",
            "::1",
            "fe80::1%eth0",
            "[fe80::1%25eth0]",
            "::ffff:127.0.0.1",
            "１２７.０.０.１",
            "127。0。0。1",
            "example.1",
            "0X7F.0x1",
            "①②⑦.1",
        ] {
            assert_eq!(host(text), Err(InvalidHost::Literal), "{text:?}");
        }
    }

    #[test]
    fn malformed_names_are_refused() {
        let long_label = format!("{}.com", "a".repeat(64));
        let long_name = format!("{}com", "abcdefg.".repeat(32));
        for text in [
            "",
            ".",
            "..",
            "a..b",
            ".a",
            "a.b..",
            " example.com",
            "example.com ",
            "a b",
            "a\0b",
            "a/b",
            "a@b",
            "a%2eb",
            "a\\b",
            "a\tb",
            "a\r\nb",
            "-a.com",
            "a-.com",
            "a?b",
            "a#b",
            "*",
            "*.a",
            "xn--",
            "xn--a",
            "xn--zzzzzz99999",
            "a,b",
            "\u{200d}",
            &long_label,
            &long_name,
        ] {
            assert!(
                host(text).is_err(),
                "{text:?} was accepted as {:?}",
                host(text)
            );
        }
    }

    #[test]
    fn parents_go_outwards() {
        let host = Host::parse("a.b.example.com").unwrap();
        assert_eq!(
            host.parents().collect::<Vec<_>>(),
            ["b.example.com", "example.com", "com"]
        );
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_a_fixed_point(text in "\\PC{0,80}") {
            if let Ok(first) = Host::parse(&text) {
                prop_assert_eq!(Host::parse(first.as_str()), Ok(first.clone()));
                prop_assert!(first.as_str().parse::<std::net::IpAddr>().is_err());
                prop_assert!(first.as_str().len() <= NAME_LIMIT);
            }
        }

        #[test]
        fn ordinary_names_are_accepted(text in "[a-z][a-z0-9]{0,20}(\\.[a-z][a-z0-9]{0,20}){0,5}") {
            prop_assert_eq!(Host::parse(&text.to_uppercase()).unwrap().to_string(), text);
        }
    }
}
