//! What is formatted within a line.

/// How far ahead the end of a span is looked for. Bounds the work on hostile text.
const REACH: usize = 1024;
const DEPTH: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
    Bold,
    Italic,
    Strike,
    Spoiler,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InlineNode<'a> {
    Text(&'a str),
    Code(&'a str),
    Styled(TextStyle, Vec<InlineNode<'a>>),
    Link { label: &'a str, url: &'a str },
}

/// Reads one line, which must stand outside of a fence.
pub fn read(line: &str) -> Vec<InlineNode<'_>> {
    InlineReader {
        src: line,
        styles: Vec::new(),
    }
    .read()
    .into_iter()
    .map(|(inline, _)| inline)
    .collect()
}

/// The line in pieces that should not be cut: formatted spans, and words with the space after them.
pub(crate) fn unbroken(line: &str) -> Vec<&str> {
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    let reader = InlineReader {
        src: line,
        styles: Vec::new(),
    };
    for (inline, end) in reader.read() {
        if let InlineNode::Text(_) = inline {
            let mut start = at;
            for word in line[at..end].split_inclusive(char::is_whitespace) {
                // What could open a fence at the start of a message stays with what is before it.
                let sticks = word.starts_with(['`', '~']) || word.trim().is_empty();
                match pieces.last_mut() {
                    Some(last) if sticks => last.1 = start + word.len(),
                    _ => pieces.push((start, start + word.len())),
                }
                start += word.len();
            }
        } else {
            pieces.push((at, end));
        }
        at = end;
    }
    pieces
        .into_iter()
        .map(|(start, end)| &line[start..end])
        .collect()
}

struct InlineReader<'a> {
    src: &'a str,
    styles: Vec<TextStyle>,
}

impl<'a> InlineReader<'a> {
    /// Each piece with the byte it ends at.
    fn read(&self) -> Vec<(InlineNode<'a>, usize)> {
        let mut pieces = Vec::new();
        let (mut at, mut text_from) = (0, 0);
        while at < self.src.len() {
            if let Some((inline, end)) = self.span(at) {
                if text_from < at {
                    pieces.push((InlineNode::Text(&self.src[text_from..at]), at));
                }
                pieces.push((inline, end));
                (at, text_from) = (end, end);
            } else {
                at += step(self.src, at);
            }
        }
        if text_from < at {
            pieces.push((InlineNode::Text(&self.src[text_from..at]), at));
        }
        pieces
    }

    fn span(&self, at: usize) -> Option<(InlineNode<'a>, usize)> {
        match self.src.as_bytes()[at] {
            b'`' => self.code(at),
            b'[' => self.link(at),
            b'*' | b'_' | b'~' | b'|' => self.styled(at),
            _ => None,
        }
    }

    fn code(&self, at: usize) -> Option<(InlineNode<'a>, usize)> {
        let (start, end, after) = code_span(self.src, at)?;
        let mut inner = &self.src[start..end];
        if inner.trim().is_empty() {
            return None;
        }
        if let Some(padded) = inner
            .strip_prefix(' ')
            .and_then(|inner| inner.strip_suffix(' '))
        {
            inner = padded;
        }
        Some((InlineNode::Code(inner), after))
    }

    fn link(&self, at: usize) -> Option<(InlineNode<'a>, usize)> {
        let window = reach(self.src, at);
        let close = window.find("](")?;
        let label = &window[1..close];
        let target = &window[close + 2..];
        let end = target.find(')')?;
        let url = &target[..end];
        // A short list instead of whatever has a colon: a link whose label says one thing may not
        // run something on a click.
        let honest = ["http://", "https://", "tg://", "mailto:"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
            && !url.contains(char::is_whitespace);
        let plain = !label.trim().is_empty() && !label.contains(['[', ']', '`']);
        (honest && plain).then_some((InlineNode::Link { label, url }, at + close + 2 + end + 1))
    }

    fn styled(&self, at: usize) -> Option<(InlineNode<'a>, usize)> {
        let (delimiter, style) = [
            ("**", TextStyle::Bold),
            ("__", TextStyle::Bold),
            ("~~", TextStyle::Strike),
            ("||", TextStyle::Spoiler),
            ("*", TextStyle::Italic),
            ("_", TextStyle::Italic),
        ]
        .into_iter()
        .find(|(delimiter, _)| self.src[at..].starts_with(delimiter))?;
        // Both bounds keep hostile text from making the reader call itself without end; a style
        // within itself would change nothing that is seen.
        if self.styles.contains(&style) || self.styles.len() >= DEPTH {
            return None;
        }
        let start = at + delimiter.len();
        let end = self.closer(at, start, delimiter)?;
        let mut styles = self.styles.clone();
        styles.push(style);
        let inner = InlineReader {
            src: &self.src[start..end],
            styles,
        };
        let inner = inner.read().into_iter().map(|(inline, _)| inline).collect();
        Some((InlineNode::Styled(style, inner), end + delimiter.len()))
    }

    /// Where the delimiter that was opened at `at` is closed.
    fn closer(&self, at: usize, start: usize, delimiter: &str) -> Option<usize> {
        let sign = delimiter.chars().next()?;
        let word_bound = sign == '_';
        let before = self.src[..at].chars().next_back();
        let first = self.src[start..].chars().next()?;
        // Three of them are bold around italic; four or more are decoration.
        let run = self.src[at..].len() - self.src[at..].trim_start_matches(sign).len();
        if first.is_whitespace()
            || (run != delimiter.len() && run != 3)
            || (word_bound && before.is_some_and(char::is_alphanumeric))
        {
            return None;
        }
        let window = reach(self.src, start);
        let mut offset = 0;
        while offset < window.len() {
            let here = start + offset;
            if window.as_bytes()[offset] == b'`'
                && let Some((_, _, after)) = code_span(self.src, here)
            {
                offset = after - start;
                continue;
            }
            let run = window[offset..].len() - window[offset..].trim_start_matches(sign).len();
            if run == 0 {
                offset += step(self.src, here);
                continue;
            }
            let last = self.src[..here].chars().next_back();
            let next = self.src[here + run..].chars().next();
            let closes = (run == delimiter.len() || run == 3)
                && offset > 0
                && last.is_some_and(|c| !c.is_whitespace())
                && !(word_bound && next.is_some_and(char::is_alphanumeric));
            if closes {
                return Some(here + run - delimiter.len());
            }
            offset += run;
        }
        None
    }
}

/// Start and end of what stands between the backticks, and where the span is over.
fn code_span(src: &str, at: usize) -> Option<(usize, usize, usize)> {
    let ticks = run_of_ticks(&src[at..]);
    let start = at + ticks;
    let window = reach(src, start);
    let mut offset = 0;
    while let Some(found) = window[offset..].find('`') {
        let here = offset + found;
        let run = run_of_ticks(&window[here..]);
        if run == ticks {
            return Some((start, start + here, start + here + run));
        }
        offset = here + run;
    }
    None
}

fn run_of_ticks(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

/// A backslash takes what it escapes along; a run of one delimiter is one step, so that what did
/// not open is not tried again from its middle.
fn step(src: &str, at: usize) -> usize {
    let mut chars = src[at..].chars();
    let Some(first) = chars.next() else { return 1 };
    let second = chars.next();
    match (first, second) {
        ('\\', Some(next)) if next.is_ascii_punctuation() => 2,
        ('*' | '_' | '~' | '|' | '`', _) => {
            src[at..].len() - src[at..].trim_start_matches(first).len()
        }
        _ => first.len_utf8(),
    }
}

fn reach(src: &str, from: usize) -> &str {
    let mut to = (from + REACH).min(src.len());
    while !src.is_char_boundary(to) {
        to -= 1;
    }
    &src[from..to]
}
