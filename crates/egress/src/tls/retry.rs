//! Does a server's first message ask for another ClientHello?

use super::cursor::ByteCursor;

/// Tells whether the server's first bytes ask for another ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelloRetry {
    Partial,
    /// No further hello in the open.
    Settled,
    Retry,
}

/// The header of one TLS record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) is_handshake: bool,
    pub(crate) length: usize,
}

pub(crate) const RECORD_HEAD: usize = 5;

const HANDSHAKE: u8 = 22;
const SERVER_HELLO: u8 = 2;

/// The random value that turns a ServerHello into a HelloRetryRequest (RFC 8446, section 4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

pub(crate) fn answer(bytes: &[u8]) -> HelloRetry {
    let mut cursor = ByteCursor::new(bytes);
    let Some(record) = next_record(bytes) else {
        return HelloRetry::Partial;
    };
    if !record.is_handshake {
        return HelloRetry::Settled;
    }
    let _ = cursor.take(RECORD_HEAD);
    match cursor.u8() {
        None => return HelloRetry::Partial,
        Some(SERVER_HELLO) => {}
        Some(_) => return HelloRetry::Settled,
    }
    // Length of the message, legacy version, then the random value.
    let _ = cursor.take(3 + 2);
    match cursor.take(RETRY_RANDOM.len()) {
        Some(random) if random == RETRY_RANDOM => HelloRetry::Retry,
        Some(_) => HelloRetry::Settled,
        None if bytes.len() >= RECORD_HEAD + record.length => HelloRetry::Settled,
        None => HelloRetry::Partial,
    }
}

pub(crate) fn next_record(bytes: &[u8]) -> Option<RecordHeader> {
    let [kind, _, _, high, low, ..] = bytes else {
        return None;
    };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    Some(RecordHeader {
        is_handshake: *kind == HANDSHAKE,
        length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_hello(random: [u8; 32]) -> Vec<u8> {
        let mut bytes = vec![22, 3, 3, 0, 42, 2, 0, 0, 38, 3, 3];
        bytes.extend(random);
        bytes.extend([0, 0x13, 0x01, 0]);
        bytes
    }

    #[test]
    fn only_the_fixed_random_asks_again() {
        assert_eq!(answer(&server_hello(RETRY_RANDOM)), HelloRetry::Retry);
        assert_eq!(answer(&server_hello([7; 32])), HelloRetry::Settled);
        assert_eq!(answer(&[21, 3, 3, 0, 2, 2, 40]), HelloRetry::Settled);
        assert_eq!(answer(b"HTTP/1.1 400 "), HelloRetry::Settled);
        assert_eq!(answer(&[22, 3, 3, 0, 4, 2, 0, 0, 0]), HelloRetry::Settled);
    }

    #[test]
    fn a_cut_answer_is_waited_for() {
        let bytes = server_hello(RETRY_RANDOM);
        for end in 0..43 {
            assert_eq!(answer(&bytes[..end]), HelloRetry::Partial, "{end}");
        }
    }
}
