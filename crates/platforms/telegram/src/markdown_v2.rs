//! Common Markdown into Telegram's MarkdownV2.
//!
//! Whatever is not understood stays visible as text, escaped to the letter, because Telegram refuses a
//! message for a single stray dot.

use hermetic_chat::markdown::{InlineNode, LineKind, TextStyle, read_inline};

/// The same text in Telegram's MarkdownV2. What the reader sees is never longer than the source.
pub fn to_markdown_v2(text: &str) -> String {
    let mut writer = MarkdownWriter::default();
    let mut fence = None;
    let mut code: Vec<&str> = Vec::new();
    for line in text.lines() {
        let read = LineKind::read(line, fence.as_ref());
        match read {
            LineKind::Opens(_) => code.clear(),
            LineKind::Code => code.push(line),
            LineKind::Closes => writer.code_block(fence.map_or("", |fence| fence.language), &code),
            LineKind::Prose => writer.prose(line),
        }
        fence = read.leaves_open(fence);
    }
    if let Some(fence) = fence {
        writer.code_block(fence.language, &code);
    }
    writer.out
}

#[derive(Default)]
struct MarkdownWriter {
    out: String,
    begun: bool,
    open: Vec<TextStyle>,
}

impl MarkdownWriter {
    fn code_block(&mut self, language: &str, lines: &[&str]) {
        let body = lines.join("\n");
        if body.trim().is_empty() {
            return;
        }
        self.next_line();
        self.out.push_str("```");
        self.out.push_str(language);
        self.out.push('\n');
        escape(&body, is_special_in_code, &mut self.out);
        self.out.push_str("\n```");
    }

    fn prose(&mut self, line: &str) {
        self.next_line();
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        self.out.push_str(indent);
        if let Some(heading) = heading(rest) {
            self.inlines(
                &[InlineNode::Styled(TextStyle::Bold, read_inline(heading))],
                &[],
            );
        } else if let Some(quoted) = rest.strip_prefix('>').filter(|_| indent.is_empty()) {
            self.out.push('>');
            self.inlines(
                &read_inline(quoted.strip_prefix(' ').unwrap_or(quoted)),
                &[],
            );
        } else if let Some(item) = ["- ", "* ", "+ "]
            .iter()
            .find_map(|sign| rest.strip_prefix(sign))
        {
            self.out.push_str("• ");
            self.inlines(&read_inline(item), &[]);
        } else {
            self.inlines(&read_inline(rest), &[]);
        }
        self.switch(&[]);
    }

    fn inlines(&mut self, inlines: &[InlineNode<'_>], styles: &[TextStyle]) {
        for inline in inlines {
            match inline {
                InlineNode::Text(text) => {
                    self.switch(styles);
                    escape(&unescape(text), is_special, &mut self.out);
                }
                // Telegram lets code stand inside nothing: styles end before it.
                InlineNode::Code(code) => {
                    self.switch(&[]);
                    self.out.push('`');
                    escape(code, is_special_in_code, &mut self.out);
                    self.out.push('`');
                }
                InlineNode::Link { label, url } => {
                    self.switch(styles);
                    self.out.push('[');
                    escape(&unescape(label), is_special, &mut self.out);
                    self.out.push_str("](");
                    escape(url, |c| matches!(c, ')' | '\\'), &mut self.out);
                    self.out.push(')');
                }
                InlineNode::Styled(style, inner) => {
                    let mut styles = styles.to_vec();
                    if !styles.contains(style) {
                        styles.push(*style);
                    }
                    self.inlines(inner, &styles);
                }
            }
        }
    }

    /// Ends and begins styles until exactly these are open. Done only where something follows, so
    /// that no span is empty and two of the same kind never touch: `__` would be an underline.
    fn switch(&mut self, wanted: &[TextStyle]) {
        let shared = self
            .open
            .iter()
            .zip(wanted)
            .take_while(|(a, b)| a == b)
            .count();
        while self.open.len() > shared {
            if let Some(style) = self.open.pop() {
                self.out.push_str(sign(style));
            }
        }
        for style in &wanted[shared..] {
            self.out.push_str(sign(*style));
            self.open.push(*style);
        }
    }

    fn next_line(&mut self) {
        if self.begun {
            self.out.push('\n');
        }
        self.begun = true;
    }
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let text = text.strip_prefix(' ')?.trim();
    ((1..=6).contains(&level) && !text.is_empty()).then_some(text)
}

fn sign(style: TextStyle) -> &'static str {
    match style {
        TextStyle::Bold => "*",
        TextStyle::Italic => "_",
        TextStyle::Strike => "~",
        TextStyle::Spoiler => "||",
    }
}

fn is_special(c: char) -> bool {
    "_*[]()~`>#+-=|{}.!\\".contains(c)
}

fn is_special_in_code(c: char) -> bool {
    matches!(c, '`' | '\\')
}

fn escape(text: &str, special: fn(char) -> bool, out: &mut String) {
    for c in text.chars() {
        if special(c) {
            out.push('\\');
        }
        out.push(c);
    }
}

/// `\*` in the source means a plain asterisk.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(next) if c == '\\' && next.is_ascii_punctuation() => {}
            _ => {
                plain.push(c);
                continue;
            }
        }
        plain.extend(chars.next());
    }
    plain
}

#[cfg(test)]
#[path = "markdown_v2_tests.rs"]
mod tests;
