//! Code fences: where they open, where they close.

/// The line that opened a fence, as far as it is worth repeating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeFence<'a> {
    pub marker: &'a str,
    /// The language, if it looks like one.
    pub language: &'a str,
}

/// What a line does to the fence it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind<'a> {
    Prose,
    Opens(CodeFence<'a>),
    Code,
    Closes,
}

impl<'a> CodeFence<'a> {
    /// A marker longer than this is decoration.
    const MARKER: usize = 16;
    const LANGUAGE: usize = 32;
    /// A fence is a short line; one that would have to be cut itself is none.
    const LINE: usize = 80;

    fn opened_by(line: &'a str) -> Option<Self> {
        if line.len() > Self::LINE {
            return None;
        }
        let line = line.trim();
        let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = line.len() - line.trim_start_matches(sign).len();
        let (marker, info) = line.split_at(length);
        if !(3..=Self::MARKER).contains(&length) || info.contains('`') {
            return None;
        }
        let word = info.split_whitespace().next().unwrap_or_default();
        let fits = word.len() <= Self::LANGUAGE
            && word
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_+#.-".contains(&b));
        Some(Self {
            marker,
            language: if fits { word } else { "" },
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        if line.len() > Self::LINE {
            return false;
        }
        let line = line.trim();
        line.len() >= self.marker.len()
            && line.len() <= Self::MARKER
            && self
                .marker
                .chars()
                .next()
                .is_some_and(|sign| line.chars().all(|c| c == sign))
    }
}

impl<'a> LineKind<'a> {
    /// What `line` does, standing within that fence.
    pub fn read(line: &'a str, within: Option<&CodeFence<'a>>) -> Self {
        match within {
            Some(fence) if fence.is_closed_by(line) => Self::Closes,
            Some(_) => Self::Code,
            None => CodeFence::opened_by(line).map_or(Self::Prose, Self::Opens),
        }
    }

    /// The fence that is open after this line.
    pub fn leaves_open(self, within: Option<CodeFence<'a>>) -> Option<CodeFence<'a>> {
        match self {
            Self::Opens(fence) => Some(fence),
            Self::Code => within,
            Self::Prose | Self::Closes => None,
        }
    }
}
