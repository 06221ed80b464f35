//! Lines out of a stream of bytes, none longer than a bound.

/// Collects bytes and hands out whole lines. One that is too long is dropped to its end, so that it costs
/// neither memory nor the lines behind it.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    pending: Vec<u8>,
    /// Everything before holds no end of a line.
    scanned: usize,
    longest: usize,
    skips: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BoundedLine {
    /// Without its end.
    Whole(Vec<u8>),
    TooLong,
}

impl LineBuffer {
    pub(crate) fn new(longest: usize) -> Self {
        Self {
            pending: Vec::new(),
            scanned: 0,
            longest,
            skips: false,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next line that is there whole.
    pub(crate) fn next_line(&mut self) -> Option<BoundedLine> {
        let ends = |byte: &u8| *byte == b'\n';
        let Some(found) = self.pending[self.scanned..].iter().position(ends) else {
            self.scanned = self.pending.len();
            if self.scanned > self.longest {
                self.pending.clear();
                self.scanned = 0;
                self.skips = true;
            }
            return None;
        };
        let mut line: Vec<u8> = self.pending.drain(..=self.scanned + found).collect();
        self.scanned = 0;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        // What is left of one whose beginning was dropped is no line either.
        let cut = std::mem::take(&mut self.skips);
        Some(match cut || line.len() > self.longest {
            true => BoundedLine::TooLong,
            false => BoundedLine::Whole(line),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_whole_however_it_was_cut_and_a_long_one_costs_only_itself() {
        let text = b"one\r\n\na line that is too long\nlast\n";
        for piece in 1..text.len() {
            let mut buffer = LineBuffer::new(10);
            let mut lines = Vec::new();
            for bytes in text.chunks(piece) {
                buffer.push(bytes);
                while let Some(line) = buffer.next_line() {
                    lines.push(line);
                }
            }
            let whole = |text: &str| BoundedLine::Whole(text.as_bytes().to_vec());
            let expected = [whole("one"), whole(""), BoundedLine::TooLong, whole("last")];
            assert_eq!(lines, expected, "in pieces of {piece}");
            assert!(buffer.pending.is_empty());
        }
    }
}
