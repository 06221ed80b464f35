//! What a rule may look at.

use std::ops::Range;

use crate::byte_class::{ByteClass, ClassRuns};

/// How far ahead of its place a rule sees. A stream holds back at most this much.
pub(crate) const AHEAD: usize = 16 << 10;

/// How far behind.
pub(crate) const BEHIND: usize = 64;

/// The text from a rule's place on.
#[derive(Clone, Copy)]
pub(crate) struct TextAhead<'a> {
    bytes: &'a [u8],
    /// Where `bytes` stand in the whole stream.
    place: usize,
    runs: &'a ClassRuns,
    /// Nothing comes after `bytes` that the rule is allowed to see.
    complete: bool,
}

/// All that is held of a stream, from one place on.
#[derive(Clone, Copy)]
pub(crate) struct StreamRest<'a> {
    pub(crate) bytes: &'a [u8],
    /// Nothing will follow.
    pub(crate) last: bool,
    pub(crate) place: usize,
    pub(crate) runs: &'a ClassRuns,
}

/// The answer depends on bytes that have not arrived.
#[derive(Debug)]
pub(crate) struct NeedMore;

/// What a rule found: the secret's place, counted from the rule's own.
pub(crate) type RuleMatch = Result<Option<Range<usize>>, NeedMore>;

impl<'a> TextAhead<'a> {
    /// Known values may be longer than the window, so they bring a `cap` of their own.
    pub(crate) fn new(rest: StreamRest<'a>, cap: usize) -> Self {
        let StreamRest {
            bytes,
            last,
            place,
            runs,
        } = rest;
        let (bytes, complete) = match bytes.get(..cap) {
            Some(bytes) => (bytes, true),
            None => (bytes, last),
        };
        Self {
            bytes,
            place,
            runs,
            complete,
        }
    }

    pub(crate) fn at(&self, index: usize) -> Result<Option<u8>, NeedMore> {
        match self.bytes.get(index) {
            Some(byte) => Ok(Some(*byte)),
            None if self.complete => Ok(None),
            None => Err(NeedMore),
        }
    }

    pub(crate) fn first_four(&self) -> Result<Option<[u8; 4]>, NeedMore> {
        match self.bytes.first_chunk() {
            Some(four) => Ok(Some(*four)),
            None if self.complete => Ok(None),
            None => Err(NeedMore),
        }
    }

    /// Where a run of bytes of one class ends.
    pub(crate) fn run(&self, from: usize, class: ByteClass) -> Result<usize, NeedMore> {
        let end = self.runs.end(class, self.bytes, from, self.place);
        if end >= self.bytes.len() && !self.complete {
            return Err(NeedMore);
        }
        Ok(end)
    }

    /// Where a run of at most `most` bytes that fit ends.
    pub(crate) fn short_run(
        &self,
        from: usize,
        most: usize,
        fits: impl Fn(u8) -> bool,
    ) -> Result<usize, NeedMore> {
        let mut at = from;
        while at - from < most {
            match self.at(at)? {
                Some(byte) if fits(byte) => at += 1,
                _ => break,
            }
        }
        Ok(at)
    }

    /// Whether `text`, given in lower case, stands here in any case.
    pub(crate) fn folds_to(&self, from: usize, text: &str) -> Result<bool, NeedMore> {
        self.all(from, text, |ours, wanted| {
            ours.eq_ignore_ascii_case(&wanted)
        })
    }

    pub(crate) fn is(&self, from: usize, text: &str) -> Result<bool, NeedMore> {
        self.all(from, text, |ours, wanted| ours == wanted)
    }

    /// Where `text` starts, at or after `from`.
    pub(crate) fn find(&self, from: usize, text: &str) -> Result<Option<usize>, NeedMore> {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let wanted = text.as_bytes();
        match rest.windows(wanted.len()).position(|part| part == wanted) {
            Some(offset) => Ok(Some(from + offset)),
            None if self.complete => Ok(None),
            None => Err(NeedMore),
        }
    }

    /// How much there is to see, once it is known that nothing more is.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn slice(&self, range: Range<usize>) -> &'a [u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    fn all(
        &self,
        from: usize,
        text: &str,
        same: impl Fn(u8, u8) -> bool,
    ) -> Result<bool, NeedMore> {
        for (offset, wanted) in text.bytes().enumerate() {
            match self.at(from + offset)? {
                Some(byte) if same(byte, wanted) => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

pub(crate) fn is_token(byte: u8) -> bool {
    ByteClass::Token.fits(byte)
}

/// Whether a word may start after these bytes. `\n` written as two characters counts as a break, as
/// in JSON within JSON, and so does a sequence that sets a colour.
pub(crate) fn starts_word(behind: &[u8]) -> bool {
    match behind {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [rest @ .., b'm'] => ends_in_colour(rest),
        [.., last] => !is_token(*last),
        [] => true,
    }
}

/// Whether these bytes end in a sequence that sets a colour, up to its final `m`: `ESC [ 1 ; 31`.
pub(crate) fn ends_in_colour(behind: &[u8]) -> bool {
    let numbers = behind
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
        .count();
    behind[..behind.len() - numbers].ends_with(b"\x1b[")
}
