//! The part of a page that its author calls the main one.

use std::ops::Range;

/// Where in the text a part of the page stands that says it is what the page is about.
#[derive(Default)]
pub(super) struct MainPart {
    depth: usize,
    from: usize,
    ranges: Vec<Range<usize>>,
}

impl MainPart {
    pub(super) fn begin(&mut self, at: usize) {
        if self.depth == 0 {
            self.from = at;
        }
        self.depth += 1;
    }

    pub(super) fn end(&mut self, at: usize) {
        if self.depth == 1 {
            self.ranges.push(self.from..at);
        }
        self.depth = self.depth.saturating_sub(1);
    }

    /// One that nobody ended goes to the end of the text.
    pub(super) fn into_ranges(mut self, length: usize) -> Vec<Range<usize>> {
        if self.depth > 0 {
            self.ranges.push(self.from..length);
        }
        self.ranges
    }
}
