//! One long text as several messages.
//!
//! Lengths are counted in the platform's own unit. Cuts fall between paragraphs where
//! they can, then between lines, then between words, and inside a formatted span or a word only if
//! that alone is longer than a message. A code block that fits one message is not cut; one that
//! does not is closed at the cut and opened again after it.

use crate::markdown::{self, CodeFence, LineKind};
use crate::{TextLimit, TextUnit};

/// The smallest limit that leaves room for text next to what is added around it.
const SMALLEST_LIMIT: usize = 128;
/// For `\n(12345/12345)`.
const NUMBERING: usize = 14;
/// Put before the piece of a line that only looks like a fence because the line was cut. It has no
/// width and is no space.
const GUARD: char = '\u{2060}';

/// The messages a text becomes, each within `limit`, numbered if there are several.
pub(crate) fn split(text: &str, limit: TextLimit) -> Vec<String> {
    if limit.fits(text) {
        let blank = text.trim().is_empty();
        return if blank {
            Vec::new()
        } else {
            vec![text.to_owned()]
        };
    }
    let parts: Vec<TextPart<'_>> = cut(text, limit)
        .into_iter()
        .filter(|part| !part.raw.trim().is_empty())
        .collect();
    let of = parts.len();
    if of == 1 {
        return vec![parts[0].dressed()];
    }
    parts
        .iter()
        .enumerate()
        .map(|(index, part)| part.numbered(index + 1, of))
        .collect()
}

/// A stretch of the text, and the fences open at its two ends.
#[derive(Debug)]
struct TextPart<'a> {
    raw: &'a str,
    opened: Option<CodeFence<'a>>,
    left_open: Option<CodeFence<'a>>,
    /// Whether it begins, and ends, within a line.
    cut_before: bool,
    cut_after: bool,
}

impl TextPart<'_> {
    fn dressed(&self) -> String {
        let mut text = String::with_capacity(self.raw.len() + 64);
        if let Some(fence) = &self.opened {
            text.push_str(fence.marker);
            text.push_str(fence.language);
            text.push('\n');
        }
        let (lines, last) = match self.raw.rfind('\n') {
            Some(at) if at + 1 < self.raw.len() => self.raw.split_at(at + 1),
            _ => ("", self.raw),
        };
        let first = if lines.is_empty() { last } else { lines };
        let first = first.split_inclusive('\n').next().unwrap_or_default();
        if self.cut_before && acts(first, self.opened) {
            text.push(GUARD);
        }
        text.push_str(lines);
        let before = if lines.is_empty() {
            self.opened
        } else {
            self.left_open
        };
        let guarded = lines.is_empty() && text.ends_with(GUARD);
        if self.cut_after && !guarded && acts(last, before) {
            text.push(GUARD);
        }
        text.push_str(last);
        if let Some(fence) = &self.left_open {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(fence.marker);
        }
        text
    }

    fn numbered(&self, index: usize, of: usize) -> String {
        let mut text = self.dressed();
        text.truncate(text.trim_end().len());
        let ends_in_fence = text
            .lines()
            .last()
            .map(str::trim_start)
            .is_some_and(|line| line.starts_with("```") || line.starts_with("~~~"));
        text.push(if ends_in_fence { '\n' } else { ' ' });
        text.push_str(&format!("({index}/{of})"));
        text
    }
}

/// Whether a line would open or close a fence.
fn acts(line: &str, within: Option<CodeFence<'_>>) -> bool {
    matches!(
        LineKind::read(line, within.as_ref()),
        LineKind::Opens(_) | LineKind::Closes
    )
}

fn cut(text: &str, limit: TextLimit) -> Vec<TextPart<'_>> {
    let mut packer = PartPacker::new(text, limit);
    for block in blocks(text) {
        packer.take_block(&block);
    }
    packer.finish()
}

/// A paragraph with the blank lines after it, or a code block with its fences.
struct UnsplitBlock<'a> {
    lines: Vec<(&'a str, Option<CodeFence<'a>>)>,
}

fn blocks(text: &str) -> Vec<UnsplitBlock<'_>> {
    let mut blocks: Vec<UnsplitBlock<'_>> = Vec::new();
    let mut fence = None;
    let mut fresh = true;
    for line in text.split_inclusive('\n') {
        let read = LineKind::read(line, fence.as_ref());
        let after = read.leaves_open(fence);
        let starts = fresh || matches!(read, LineKind::Opens(_));
        match blocks.last_mut() {
            Some(block) if !starts => block.lines.push((line, after)),
            _ => blocks.push(UnsplitBlock {
                lines: vec![(line, after)],
            }),
        }
        fresh = match read {
            LineKind::Closes => true,
            LineKind::Prose => line.trim().is_empty(),
            LineKind::Opens(_) | LineKind::Code => false,
        };
        fence = after;
    }
    blocks
}

/// Fills parts with stretches of the text, which come in order and without gaps.
struct PartPacker<'a> {
    text: &'a str,
    limit: usize,
    unit: TextUnit,
    /// For what is added to a part: its number, and a [`GUARD`] at each end.
    around: usize,
    parts: Vec<TextPart<'a>>,
    start: usize,
    end: usize,
    filled: usize,
    opened: Option<CodeFence<'a>>,
    open_now: Option<CodeFence<'a>>,
}

impl<'a> PartPacker<'a> {
    fn new(text: &'a str, limit: TextLimit) -> Self {
        Self {
            text,
            // Below this a part might have no room for a single character, which would then be
            // lost.
            limit: limit.length.max(SMALLEST_LIMIT),
            unit: limit.unit,
            around: NUMBERING + 2 * limit.unit.of(GUARD),
            parts: Vec::new(),
            start: 0,
            end: 0,
            filled: 0,
            opened: None,
            open_now: None,
        }
    }

    fn take_block(&mut self, block: &UnsplitBlock<'a>) {
        let length = block
            .lines
            .iter()
            .map(|(line, _)| self.unit.count(line))
            .sum();
        let bytes = block.lines.iter().map(|(line, _)| line.len()).sum();
        let after = block.lines.last().and_then(|(_, after)| *after);
        if self.take(bytes, length, after) {
            return;
        }
        // A block that fits a message of its own gets one; a longer one starts here if there is
        // still room worth using.
        if self.fits_alone(length, after) || self.filled > self.limit / 2 {
            self.flush();
            if self.take(bytes, length, after) {
                return;
            }
        }
        for (line, after) in &block.lines {
            self.take_line(line, *after);
        }
    }

    fn take_line(&mut self, line: &'a str, after: Option<CodeFence<'a>>) {
        let length = self.unit.count(line);
        if self.take(line.len(), length, after) {
            return;
        }
        if self.fits_alone(length, after) {
            self.flush();
            let taken = self.take(line.len(), length, after);
            debug_assert!(taken, "a line that fits alone fits an empty part");
            return;
        }
        let within = self.open_now;
        let words = if within.is_some() {
            code_stretches(line)
        } else {
            markdown::unbroken(line)
        };
        for word in words {
            self.take_word(word, within.or(after));
        }
        self.open_now = after;
    }

    fn take_word(&mut self, word: &'a str, within: Option<CodeFence<'a>>) {
        let length = self.unit.count(word);
        if self.take(word.len(), length, within) {
            return;
        }
        if !self.fits_alone(length, within) {
            for c in word.chars() {
                let length = self.unit.of(c);
                if !self.take(c.len_utf8(), length, within) {
                    self.flush();
                    let taken = self.take(c.len_utf8(), length, within);
                    debug_assert!(taken, "a part holds at least one character");
                }
            }
            return;
        }
        self.flush();
        let taken = self.take(word.len(), length, within);
        debug_assert!(taken, "a word that fits alone fits an empty part");
    }

    /// Adds the next stretch if it fits.
    fn take(&mut self, bytes: usize, length: usize, after: Option<CodeFence<'a>>) -> bool {
        let needed = opening(self.opened) + self.filled + length + closing(after) + self.around;
        if needed > self.limit {
            return false;
        }
        self.end += bytes;
        self.filled += length;
        self.open_now = after;
        true
    }

    fn fits_alone(&self, length: usize, after: Option<CodeFence<'a>>) -> bool {
        opening(self.open_now) + length + closing(after) + self.around <= self.limit
    }

    fn flush(&mut self) {
        if self.start < self.end {
            self.parts.push(TextPart {
                raw: &self.text[self.start..self.end],
                opened: self.opened,
                left_open: self.open_now,
                cut_before: !at_line_start(self.text, self.start),
                cut_after: self.end < self.text.len() && !at_line_start(self.text, self.end),
            });
        }
        self.start = self.end;
        self.filled = 0;
        self.opened = self.open_now;
    }

    fn finish(mut self) -> Vec<TextPart<'a>> {
        self.flush();
        self.parts
    }
}

fn at_line_start(text: &str, at: usize) -> bool {
    at == 0 || text[..at].ends_with('\n')
}

/// Pieces of a line of code. None of them starts with what could be a fence, so no cut makes one.
fn code_stretches(line: &str) -> Vec<&str> {
    let mut stretches = Vec::new();
    let mut start = 0;
    for (at, c) in line.char_indices() {
        let could_start_a_fence = matches!(c, '`' | '~') || c.is_whitespace();
        if at > start && !could_start_a_fence {
            stretches.push(&line[start..at]);
            start = at;
        }
    }
    stretches.push(&line[start..]);
    stretches
}

fn opening(fence: Option<CodeFence<'_>>) -> usize {
    fence.map_or(0, |fence| fence.marker.len() + fence.language.len() + 1)
}

fn closing(fence: Option<CodeFence<'_>>) -> usize {
    fence.map_or(0, |fence| fence.marker.len() + 1)
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
