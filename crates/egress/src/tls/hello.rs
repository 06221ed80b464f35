//! The server name a ClientHello asks for, read strictly.
//!
//! A tunnel to an allowed host could still ask a shared front end for another one. So the name in the
//! hello must be the name of the tunnel, and a hello that we cannot read completely is no hello. That
//! goes for an encrypted ClientHello too: its outer name is what we see, the inner one is where it leads.

use thiserror::Error;

use super::cursor::ByteCursor;
use crate::rules::HostName;

/// What the bytes so far tell of a ClientHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientHello {
    /// Nothing wrong yet, but not all of it.
    Partial,
    Complete {
        server_name: HostName,
        /// Of the records it came in.
        length: usize,
    },
}

/// The reason why a ClientHello is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ClientHelloError {
    #[error("the first bytes are not TLS")]
    NotTls,
    #[error("the first TLS message is not a ClientHello")]
    NotClientHello,
    #[error("the ClientHello is malformed")]
    Malformed,
    #[error("the ClientHello is larger than {LARGEST} bytes")]
    TooLarge,
    #[error("the ClientHello names no server (SNI)")]
    NoServerName,
    #[error("the ClientHello names more than one server")]
    SeveralNames,
    #[error("the server name in the ClientHello is not a host name")]
    BadServerName,
    #[error("the ClientHello hides another one (ECH), so the name in it means nothing")]
    Encrypted,
}

/// Post-quantum hellos take about two kilobytes.
const LARGEST: usize = 16 * 1024;
/// As TLS has it (RFC 8446, 5.1).
const LARGEST_RECORD: usize = 1 << 14;
/// A record with a byte or two of a hello in it is legal and never honest in such numbers.
const MOST_RECORDS: usize = 64;

const RECORD_HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const EXTENSION_SERVER_NAME: u16 = 0;
const EXTENSION_ENCRYPTED_HELLO: u16 = 0xfe0d;
const NAME_HOST: u8 = 0;

/// Reads the hello at the front of `bytes`; what follows it is not looked at.
pub fn read(bytes: &[u8]) -> Result<ClientHello, ClientHelloError> {
    let (message, length) = match handshake(bytes)? {
        Some(found) => found,
        None if bytes.len() > LARGEST => return Err(ClientHelloError::TooLarge),
        None => return Ok(ClientHello::Partial),
    };
    let server_name = server_name(&message)?;
    Ok(ClientHello::Complete {
        server_name,
        length,
    })
}

/// The body of the first handshake message, put together from its records, and their length.
fn handshake(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, ClientHelloError> {
    let mut message = Vec::new();
    let mut rest = bytes;
    for _ in 0..MOST_RECORDS {
        let (fragment, after) = match record(rest)? {
            Some(record) => record,
            None => return Ok(None),
        };
        message.extend_from_slice(fragment);
        rest = after;
        match message.as_slice() {
            [kind, ..] if *kind != CLIENT_HELLO => return Err(ClientHelloError::NotClientHello),
            [_, a, b, c, body @ ..] => {
                let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
                if length > LARGEST {
                    return Err(ClientHelloError::TooLarge);
                }
                // What follows it in its record would be another message, which nobody here has
                // looked at.
                if body.len() > length {
                    return Err(ClientHelloError::Malformed);
                }
                if body.len() == length {
                    return Ok(Some((body.to_vec(), bytes.len() - rest.len())));
                }
            }
            _ => {}
        }
    }
    Err(ClientHelloError::Malformed)
}

/// A record's content, and what follows it.
type RecordSplit<'a> = (&'a [u8], &'a [u8]);

/// One record and what follows it. Bytes that cannot begin one are refused as soon as they show.
fn record(bytes: &[u8]) -> Result<Option<RecordSplit<'_>>, ClientHelloError> {
    if bytes.first().is_some_and(|&kind| kind != RECORD_HANDSHAKE)
        || bytes.get(1).is_some_and(|&major| major != 3)
        || bytes.get(2).is_some_and(|&minor| minor > 4)
    {
        return Err(ClientHelloError::NotTls);
    }
    let [_, _, _, high, low, rest @ ..] = bytes else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    if length == 0 || length > LARGEST_RECORD {
        return Err(ClientHelloError::Malformed);
    }
    Ok(rest.split_at_checked(length))
}

fn server_name(body: &[u8]) -> Result<HostName, ClientHelloError> {
    let extensions = extensions(body).ok_or(ClientHelloError::Malformed)?;
    let mut seen = Vec::new();
    let mut name = None;
    let mut rest = extensions;
    while !rest.is_empty() {
        let kind = rest.u16().ok_or(ClientHelloError::Malformed)?;
        let data = rest.part16().ok_or(ClientHelloError::Malformed)?;
        // Of two of one kind we might read one and the server the other.
        if seen.contains(&kind) {
            return Err(ClientHelloError::Malformed);
        }
        seen.push(kind);
        match kind {
            EXTENSION_SERVER_NAME => name = Some(only_name(data)?),
            EXTENSION_ENCRYPTED_HELLO => return Err(ClientHelloError::Encrypted),
            _ => {}
        }
    }
    name.ok_or(ClientHelloError::NoServerName)
}

/// Everything before the extensions, checked for shape and skipped.
fn extensions(body: &[u8]) -> Option<ByteCursor<'_>> {
    let mut cursor = ByteCursor::new(body);
    let version = cursor.u16()?;
    let _random = cursor.take(32)?;
    let session = cursor.part8()?;
    let suites = cursor.part16()?;
    let compression = cursor.part8()?;
    let fine = version >> 8 == 3
        && session.rest().len() <= 32
        && !suites.is_empty()
        && suites.rest().len().is_multiple_of(2)
        && !compression.is_empty();
    if !fine {
        return None;
    }
    if cursor.is_empty() {
        return Some(ByteCursor::new(&[]));
    }
    let extensions = cursor.part16()?;
    cursor.is_empty().then_some(extensions)
}

fn only_name(data: ByteCursor<'_>) -> Result<HostName, ClientHelloError> {
    let mut data = data;
    let mut list = data.part16().ok_or(ClientHelloError::Malformed)?;
    let kind = list.u8().ok_or(ClientHelloError::Malformed)?;
    let name = list.part16().ok_or(ClientHelloError::Malformed)?.rest();
    if kind != NAME_HOST || !data.is_empty() {
        return Err(ClientHelloError::Malformed);
    }
    if !list.is_empty() {
        return Err(ClientHelloError::SeveralNames);
    }
    let text = std::str::from_utf8(name).map_err(|_| ClientHelloError::BadServerName)?;
    // No trailing dot and ASCII only, as the standard has it.
    if !text.is_ascii() || text.ends_with('.') {
        return Err(ClientHelloError::BadServerName);
    }
    HostName::parse(text).map_err(|_| ClientHelloError::BadServerName)
}

#[cfg(test)]
#[path = "hello_tests.rs"]
mod tests;
