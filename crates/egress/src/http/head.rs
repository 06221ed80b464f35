//! Request and response heads, parsed strictly.

use thiserror::Error;

use super::fields::HeaderFields;

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    pub method: String,
    pub target: String,
    pub version: HttpVersion,
    pub fields: HeaderFields,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    pub version: HttpVersion,
    pub status: u16,
    pub reason: Vec<u8>,
    pub fields: HeaderFields,
}

/// The versions of HTTP that are spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    Http10,
    Http11,
}

/// The reason why a head is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum HeadError {
    #[error("a line does not end with CR LF")]
    BareLineEnd,
    #[error("the head holds a control character")]
    ControlCharacter,
    #[error("the first line is malformed")]
    StartLine,
    #[error("only HTTP/1.0 and HTTP/1.1 are spoken here")]
    Version,
    #[error("a header line is folded")]
    FoldedLine,
    #[error("a header name is malformed or followed by a space")]
    FieldName,
    #[error("there are more than {MOST_FIELDS} header lines")]
    TooManyFields,
}

/// More than programs send. They are searched one after the other, and more than once.
const MOST_FIELDS: usize = 128;

/// Finds where a head ends while it comes in, looking at each byte once.
///
/// Any line feed ends a line, also one that is not part of CR LF: the parser then refuses it, and a head
/// that a lenient server would see as finished never waits for more.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndSearch {
    searched: usize,
    line_start: usize,
}

impl EndSearch {
    /// The length of the head at the front of `bytes`, its empty line included, once that has arrived.
    /// `bytes` only ever grows between two calls.
    pub fn go_on(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, &byte) in bytes.iter().enumerate().skip(self.searched) {
            if byte == b'\n' {
                if matches!(&bytes[self.line_start..at], b"" | b"\r") {
                    return Some(at + 1);
                }
                self.line_start = at + 1;
            }
        }
        self.searched = bytes.len();
        None
    }
}

impl RequestHead {
    /// `bytes` is a whole head as [`EndSearch`] delimits it.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeadError> {
        let (start, fields) = lines(bytes)?;
        let text = std::str::from_utf8(start).map_err(|_| HeadError::StartLine)?;
        let mut parts = text.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(HeadError::StartLine);
        };
        let visible = !target.is_empty() && target.bytes().all(|b| b.is_ascii_graphic());
        if !is_token(method.as_bytes()) || !visible {
            return Err(HeadError::StartLine);
        }
        Ok(Self {
            method: method.to_owned(),
            target: target.to_owned(),
            version: HttpVersion::parse(version)?,
            fields,
        })
    }
}

impl ResponseHead {
    pub fn parse(bytes: &[u8]) -> Result<Self, HeadError> {
        let (start, fields) = lines(bytes)?;
        let (version, rest) = start.split_at_checked(8).ok_or(HeadError::StartLine)?;
        let version = std::str::from_utf8(version).map_err(|_| HeadError::StartLine)?;
        let version = HttpVersion::parse(version)?;
        let [
            b' ',
            a @ b'1'..=b'9',
            b @ b'0'..=b'9',
            c @ b'0'..=b'9',
            reason @ ..,
        ] = rest
        else {
            return Err(HeadError::StartLine);
        };
        let reason = match reason {
            [] => &[],
            [b' ', reason @ ..] => reason,
            _ => return Err(HeadError::StartLine),
        };
        let digit = |byte: &u8| u16::from(byte - b'0');
        Ok(Self {
            version,
            status: digit(a) * 100 + digit(b) * 10 + digit(c),
            reason: reason.to_vec(),
            fields,
        })
    }
}

impl HttpVersion {
    fn parse(text: &str) -> Result<Self, HeadError> {
        match text {
            "HTTP/1.0" => Ok(Self::Http10),
            "HTTP/1.1" => Ok(Self::Http11),
            _ => Err(HeadError::Version),
        }
    }
}

fn lines(bytes: &[u8]) -> Result<(&[u8], HeaderFields), HeadError> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest
            .iter()
            .position(|&b| b == b'\n')
            .ok_or(HeadError::BareLineEnd)?;
        let line = rest[..end]
            .strip_suffix(b"\r")
            .ok_or(HeadError::BareLineEnd)?;
        check_characters(line)?;
        lines.push(line);
        rest = &rest[end + 1..];
    }
    // The last line is the empty one that ends the head.
    let (Some(&[]), Some((start, fields))) = (lines.pop(), lines.split_first()) else {
        return Err(HeadError::StartLine);
    };
    if fields.len() > MOST_FIELDS {
        return Err(HeadError::TooManyFields);
    }
    let mut parsed = HeaderFields::default();
    for line in fields {
        let (name, value) = field(line)?;
        parsed.push(name, value);
    }
    Ok((start, parsed))
}

fn check_characters(line: &[u8]) -> Result<(), HeadError> {
    let fine = |&b: &u8| b == b'\t' || (b >= 0x20 && b != 0x7f);
    if line.contains(&b'\r') {
        return Err(HeadError::BareLineEnd);
    }
    if line.iter().all(fine) {
        Ok(())
    } else {
        Err(HeadError::ControlCharacter)
    }
}

fn field(line: &[u8]) -> Result<(&str, &[u8]), HeadError> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(HeadError::FoldedLine);
    }
    let colon = line
        .iter()
        .position(|&b| b == b':')
        .ok_or(HeadError::FieldName)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if !is_token(name) {
        return Err(HeadError::FieldName);
    }
    let name = std::str::from_utf8(name).map_err(|_| HeadError::FieldName)?;
    Ok((name, trim(value)))
}

pub(crate) fn is_token(bytes: &[u8]) -> bool {
    let allowed = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    !bytes.is_empty() && bytes.iter().all(allowed)
}

fn trim(bytes: &[u8]) -> &[u8] {
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let start = bytes.iter().position(|b| !blank(b)).unwrap_or(bytes.len());
    let end = bytes
        .iter()
        .rposition(|b| !blank(b))
        .map_or(start, |last| last + 1);
    &bytes[start..end]
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
