//! Reading big-endian numbers and length-prefixed parts, never past the end.

/// Reads from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteCursor<'a>(&'a [u8]);

impl<'a> ByteCursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(front)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take(2)
            .map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A part whose length stands in one byte before it.
    pub(crate) fn part8(&mut self) -> Option<Self> {
        let length = self.u8()?;
        self.take(length.into()).map(Self)
    }

    /// A part whose length stands in two bytes before it.
    pub(crate) fn part16(&mut self) -> Option<Self> {
        let length = self.u16()?;
        self.take(length.into()).map(Self)
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}
