//! A few lines out of a file of any size, in bounded memory.

use memchr::memchr;

/// Lines kept on both sides of the window, so that a secret of many lines is seen whole.
const MARGIN: usize = 80;

/// Takes a file in pieces, counts its lines and keeps those of the window.
#[derive(Debug)]
pub(super) struct LineCollector {
    first: usize,
    last: usize,
    /// Of each line no more bytes than this are kept.
    line_bytes: usize,
    kept: Vec<(usize, Vec<u8>)>,
    line: Vec<u8>,
    number: usize,
    begun: bool,
}

impl LineCollector {
    /// `first` counts from 1.
    pub(super) fn new(first: usize, count: usize, line_chars: usize) -> Self {
        Self {
            first,
            last: first.saturating_add(count - 1),
            // The longest character is four bytes; the rest is for an escape that is cut off.
            line_bytes: line_chars.saturating_mul(4) + 64,
            kept: Vec::new(),
            line: Vec::new(),
            number: 1,
            begun: false,
        }
    }

    pub(super) fn push(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let end = memchr(b'\n', piece);
            let (part, rest) = match end {
                Some(end) => (&piece[..end], &piece[end + 1..]),
                None => (piece, &[][..]),
            };
            if self.is_near() {
                let room = self.line_bytes.saturating_sub(self.line.len());
                self.line.extend_from_slice(&part[..part.len().min(room)]);
            }
            self.begun = true;
            if end.is_some() {
                self.end_line();
            }
            piece = rest;
        }
    }

    /// The lines of the window and its margins, and how many lines there are in all.
    pub(super) fn finish(mut self) -> (Vec<(usize, Vec<u8>)>, usize) {
        if self.begun {
            self.end_line();
        }
        (self.kept, self.number - 1)
    }

    fn is_near(&self) -> bool {
        (self.first.saturating_sub(MARGIN)..=self.last.saturating_add(MARGIN))
            .contains(&self.number)
    }

    fn end_line(&mut self) {
        if self.is_near() {
            let mut line = std::mem::take(&mut self.line);
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            self.kept.push((self.number, line));
        }
        self.number += 1;
        self.begun = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(
        text: &[u8],
        first: usize,
        count: usize,
        piece: usize,
    ) -> (Vec<(usize, String)>, usize) {
        let mut lines = LineCollector::new(first, count, 10);
        for piece in text.chunks(piece) {
            lines.push(piece);
        }
        let (kept, total) = lines.finish();
        let text = |line: Vec<u8>| String::from_utf8_lossy(&line).into_owned();
        (
            kept.into_iter().map(|(n, line)| (n, text(line))).collect(),
            total,
        )
    }

    #[test]
    fn however_it_is_cut_the_lines_are_the_same() {
        let text = b"one\r\ntwo\n\nfour";
        for piece in 1..=text.len() {
            let (kept, total) = window(text, 1, 10, piece);
            let lines: Vec<_> = kept.iter().map(|(_, line)| line.as_str()).collect();
            assert_eq!(
                (lines, total),
                (vec!["one", "two", "", "four"], 4),
                "{piece}"
            );
        }
        assert_eq!(window(b"", 1, 10, 1), (vec![], 0));
        assert_eq!(window(b"a\n", 1, 10, 1).1, 1);
    }

    #[test]
    fn a_long_file_and_a_long_line_cost_little() {
        let many = "x\n".repeat(100_000);
        let (kept, total) = window(many.as_bytes(), 50_000, 5, 4096);
        assert_eq!((kept.len(), total), (5 + 2 * MARGIN, 100_000));
        let wide = vec![b'y'; 1 << 20];
        let (kept, total) = window(&wide, 1, 5, 4096);
        assert_eq!((kept[0].1.len(), total), (10 * 4 + 64, 1));
    }
}
