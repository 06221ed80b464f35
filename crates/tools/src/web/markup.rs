//! Text with a little structure, as it is written while a page is read.

/// What is written at most, in bytes.
pub(super) const MOST_TEXT: usize = 1 << 20;
/// Blank lines between two blocks are one.
const MOST_BREAKS: u8 = 2;

/// Writes words, lines and blocks. Spaces and breaks wait for the next word, so that none stand at an end.
#[derive(Debug, Default)]
pub(super) struct MarkupWriter {
    text: String,
    breaks: u8,
    space: bool,
    /// Written before the next word, after its breaks.
    prefix: String,
    is_full: bool,
}

impl MarkupWriter {
    pub(super) fn length(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Running text: any run of blanks is one space.
    pub(super) fn words(&mut self, words: &str) {
        for (at, word) in words.split(is_blank).enumerate() {
            self.space |= at > 0;
            if !word.is_empty() {
                self.begin();
                self.push_visible(word);
            }
        }
    }

    /// Text whose lines and blanks count.
    pub(super) fn lines(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.begin();
        self.push_visible(text);
    }

    /// Marks of ours around a word that is already there.
    pub(super) fn mark(&mut self, mark: &str) {
        self.push(mark);
    }

    /// Marks of ours before the next word.
    pub(super) fn prefix(&mut self, prefix: &str) {
        if self.prefix.len() < 64 {
            self.prefix.push_str(prefix);
        }
    }

    /// A mark that stands where the next word would.
    pub(super) fn word(&mut self, word: &str) {
        self.begin();
        self.push(word);
    }

    pub(super) fn space(&mut self) {
        self.space = true;
    }

    pub(super) fn line_break(&mut self) {
        self.breaks = self.breaks.max(1);
    }

    pub(super) fn block(&mut self) {
        self.breaks = MOST_BREAKS;
        // A heading or an entry of a list without a word.
        self.prefix.clear();
    }

    fn begin(&mut self) {
        if self.breaks > 0 && !self.text.is_empty() {
            for _ in 0..self.breaks {
                self.push("\n");
            }
        } else if self.space && !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.push(" ");
        }
        (self.breaks, self.space) = (0, false);
        let prefix = std::mem::take(&mut self.prefix);
        self.push(&prefix);
    }

    /// Without what nobody sees: words that hide from a reader are written for the model alone.
    fn push_visible(&mut self, text: &str) {
        let is_hidden =
            |c: char| crate::shown::is_unseen(c) || (c.is_control() && !"\n\t".contains(c));
        match text.contains(is_hidden) {
            true => self.push(&text.replace(is_hidden, "")),
            false => self.push(text),
        }
    }

    fn push(&mut self, text: &str) {
        match self.text.len() + text.len() > MOST_TEXT {
            true => self.is_full = true,
            false if !self.is_full => self.text.push_str(text),
            false => {}
        }
    }
}

/// What HTML calls a blank, and the one that does not break.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}')
}
