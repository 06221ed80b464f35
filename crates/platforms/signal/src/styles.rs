//! Common Markdown into plain text and the ranges of it that are styled.
//!
//! Signal has no markup: a style is a range beside the text, counted in UTF-16 units. What is read is
//! never longer than the source, so that a message that fits still does.

use hermetic_chat::markdown::{InlineNode, LineKind, TextStyle, read_inline};

/// A text as it is read, and how parts of it look.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StyledText {
    pub(crate) text: String,
    /// As the daemon takes them: `start:length:STYLE`.
    pub(crate) styles: Vec<String>,
}

impl StyledText {
    pub(crate) fn of(markdown: &str) -> Self {
        let mut writer = StyleWriter::default();
        let mut fence = None;
        let mut code: Vec<&str> = Vec::new();
        for line in markdown.lines() {
            let read = LineKind::read(line, fence.as_ref());
            match read {
                LineKind::Opens(_) => code.clear(),
                LineKind::Code => code.push(line),
                LineKind::Closes => writer.code_block(&code),
                LineKind::Prose => writer.prose(line),
            }
            fence = read.leaves_open(fence);
        }
        if fence.is_some() {
            writer.code_block(&code);
        }
        Self {
            text: writer.text,
            styles: writer.styles,
        }
    }
}

#[derive(Default)]
struct StyleWriter {
    text: String,
    /// The length of the text so far.
    units: usize,
    begun: bool,
    styles: Vec<String>,
}

const MONOSPACE: &str = "MONOSPACE";

impl StyleWriter {
    fn code_block(&mut self, lines: &[&str]) {
        let body = lines.join("\n");
        if body.trim().is_empty() {
            return;
        }
        self.next_line();
        self.styled(MONOSPACE, |writer| writer.push(&body));
    }

    fn prose(&mut self, line: &str) {
        self.next_line();
        match heading(line.trim_start()) {
            Some(heading) => {
                let inlines = read_inline(heading);
                self.styled(name(TextStyle::Bold), |writer| writer.inlines(&inlines));
            }
            None => self.inlines(&read_inline(line)),
        }
    }

    fn inlines(&mut self, inlines: &[InlineNode<'_>]) {
        for inline in inlines {
            match inline {
                InlineNode::Text(text) => self.push(&unescape(text)),
                InlineNode::Code(code) => self.styled(MONOSPACE, |writer| writer.push(code)),
                InlineNode::Link { label, url } => {
                    let label = unescape(label);
                    self.push(&label);
                    if label != *url {
                        self.push(" (");
                        self.push(url);
                        self.push(")");
                    }
                }
                InlineNode::Styled(style, inner) => {
                    self.styled(name(*style), |writer| writer.inlines(inner));
                }
            }
        }
    }

    fn styled(&mut self, style: &str, write: impl FnOnce(&mut Self)) {
        let start = self.units;
        write(self);
        let length = self.units - start;
        if length > 0 {
            self.styles.push(format!("{start}:{length}:{style}"));
        }
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.units += text.encode_utf16().count();
    }

    fn next_line(&mut self) {
        if self.begun {
            self.push("\n");
        }
        self.begun = true;
    }
}

fn name(style: TextStyle) -> &'static str {
    match style {
        TextStyle::Bold => "BOLD",
        TextStyle::Italic => "ITALIC",
        TextStyle::Strike => "STRIKETHROUGH",
        TextStyle::Spoiler => "SPOILER",
    }
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let text = text.strip_prefix(' ')?.trim();
    ((1..=6).contains(&level) && !text.is_empty()).then_some(text)
}

/// `\*` in the source means a plain asterisk.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let escapes = c == '\\' && chars.peek().is_some_and(char::is_ascii_punctuation);
        plain.push(match escapes {
            true => chars.next().unwrap_or(c),
            false => c,
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn styled(markdown: &str) -> (String, Vec<String>) {
        let StyledText { text, styles } = StyledText::of(markdown);
        (text, styles)
    }

    #[test]
    fn styles_are_ranges_of_utf16() {
        let (text, styles) = styled("😀 **bold *both*** `a b` ~~no~~ ||psst||");
        assert_eq!(text, "😀 bold both a b no psst");
        assert_eq!(
            styles,
            [
                "8:4:ITALIC",
                "3:9:BOLD",
                "13:3:MONOSPACE",
                "17:2:STRIKETHROUGH",
                "20:4:SPOILER"
            ]
        );
    }

    #[test]
    fn blocks_links_headings_and_what_is_none_of_them() {
        let (text, styles) =
            styled("# Head\n```rust\nlet a = `b`;\n\n```\n- [x](https://a.b) \\*c\\*");
        assert_eq!(text, "Head\nlet a = `b`;\n\n- x (https://a.b) *c*");
        assert_eq!(styles, ["0:4:BOLD", "5:13:MONOSPACE"]);
        let (text, styles) = styled("2 * 3 * 4 snake_case_name ```");
        assert_eq!(
            (text.as_str(), styles.len()),
            ("2 * 3 * 4 snake_case_name ```", 0)
        );
    }

    proptest! {
        #[test]
        fn what_is_read_is_not_longer_and_ranges_lie_within(
            markdown in "([a-c😀é \\n*_~|`#>\\[\\]()\\\\-]|https://a\\.b|```){0,60}",
        ) {
            let StyledText { text, styles } = StyledText::of(&markdown);
            prop_assert!(text.len() <= markdown.len());
            let units = text.encode_utf16().count();
            for style in styles {
                let mut parts = style.split(':').map(|part| part.parse::<usize>());
                let (start, length) = (parts.next().unwrap().unwrap(), parts.next().unwrap().unwrap());
                prop_assert!(length > 0 && start + length <= units);
            }
        }
    }
}
