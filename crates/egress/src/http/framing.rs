//! Where a body ends. Two ways to read it is one too many.

use thiserror::Error;

use super::fields::HeaderFields;
use super::head::{HttpVersion, RequestHead, ResponseHead};

/// The way in which the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    Empty,
    Length(u64),
    Chunked,
    /// Responses only: the body ends when the connection does.
    UntilClose,
}

/// The error of a head that tells the end of its body in two ways, or in none we take.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum FramingError {
    #[error("both Content-Length and Transfer-Encoding are given")]
    Both,
    #[error("Content-Length is given more than once or is not a plain number")]
    Length,
    #[error("Transfer-Encoding is something other than a single \"chunked\"")]
    Encoding,
}

/// More than any honest body; keeps sums far from overflow.
const LARGEST: u64 = 1 << 53;

impl BodyFraming {
    pub(crate) fn of_request(head: &RequestHead) -> Result<Self, FramingError> {
        let declared = declared(&head.fields)?;
        if head.version == HttpVersion::Http10 && declared == Some(Self::Chunked) {
            return Err(FramingError::Encoding);
        }
        Ok(match declared {
            None | Some(Self::Length(0)) => Self::Empty,
            Some(framing) => framing,
        })
    }

    pub(crate) fn of_response(head: &ResponseHead, method: &str) -> Result<Self, FramingError> {
        // The fields are checked also where no body follows: a doubtful answer is not passed on.
        let declared = declared(&head.fields)?;
        if method == "HEAD" || head.status < 200 || matches!(head.status, 204 | 304) {
            return Ok(Self::Empty);
        }
        if head.version == HttpVersion::Http10 && declared == Some(Self::Chunked) {
            return Err(FramingError::Encoding);
        }
        Ok(declared.unwrap_or(Self::UntilClose))
    }
}

fn declared(fields: &HeaderFields) -> Result<Option<BodyFraming>, FramingError> {
    match (
        fields.has("content-length"),
        fields.has("transfer-encoding"),
    ) {
        (true, true) => Err(FramingError::Both),
        (false, false) => Ok(None),
        (true, false) => length(fields).map(Some),
        (false, true) => {
            let chunked = |value: &[u8]| value.eq_ignore_ascii_case(b"chunked");
            let single = fields.only("transfer-encoding").is_some_and(chunked);
            if single {
                Ok(Some(BodyFraming::Chunked))
            } else {
                Err(FramingError::Encoding)
            }
        }
    }
}

fn length(fields: &HeaderFields) -> Result<BodyFraming, FramingError> {
    let value = fields.only("content-length").ok_or(FramingError::Length)?;
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).map_err(|_| FramingError::Length)?;
    match text.parse() {
        Ok(length) if digits && length <= LARGEST => Ok(BodyFraming::Length(length)),
        _ => Err(FramingError::Length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(fields: &str) -> Result<BodyFraming, FramingError> {
        let text = format!("POST / HTTP/1.1\r\n{fields}\r\n");
        BodyFraming::of_request(&RequestHead::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn only_one_reading_is_accepted() {
        assert_eq!(framing(""), Ok(BodyFraming::Empty));
        assert_eq!(framing("Content-Length: 5\r\n"), Ok(BodyFraming::Length(5)));
        assert_eq!(
            framing("Transfer-Encoding: Chunked\r\n"),
            Ok(BodyFraming::Chunked)
        );
        for (fields, error) in [
            (
                "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                FramingError::Both,
            ),
            (
                "Content-Length: 5\r\nContent-Length: 5\r\n",
                FramingError::Length,
            ),
            ("Content-Length: 5, 5\r\n", FramingError::Length),
            ("Content-Length: +5\r\n", FramingError::Length),
            ("Content-Length: -5\r\n", FramingError::Length),
            ("Content-Length: 0x5\r\n", FramingError::Length),
            ("Content-Length:\r\n", FramingError::Length),
            (
                "Content-Length: 99999999999999999999\r\n",
                FramingError::Length,
            ),
            (
                "Transfer-Encoding: gzip, chunked\r\n",
                FramingError::Encoding,
            ),
            (
                "Transfer-Encoding: chunked, chunked\r\n",
                FramingError::Encoding,
            ),
            ("Transfer-Encoding: identity\r\n", FramingError::Encoding),
            ("Transfer-Encoding: xchunked\r\n", FramingError::Encoding),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
                FramingError::Encoding,
            ),
        ] {
            assert_eq!(framing(fields), Err(error), "{fields:?}");
        }
    }

    #[test]
    fn responses_without_a_body_have_none() {
        let head = ResponseHead::parse(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").unwrap();
        assert_eq!(
            BodyFraming::of_response(&head, "HEAD"),
            Ok(BodyFraming::Empty)
        );
        assert_eq!(
            BodyFraming::of_response(&head, "GET"),
            Ok(BodyFraming::Length(5))
        );
        let head = ResponseHead::parse(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        assert_eq!(
            BodyFraming::of_response(&head, "GET"),
            Ok(BodyFraming::UntilClose)
        );
    }
}
