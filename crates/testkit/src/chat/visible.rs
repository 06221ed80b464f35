//! Common Markdown as a person reads it, once a platform has shown it.

use hermetic_chat::markdown::{InlineNode, LineKind, read_inline};

/// The text without its marks: fences go, code and prose stay, a link shows its label.
pub(super) fn visible_markdown(text: &str) -> String {
    let mut lines = Vec::new();
    let mut fence = None;
    for line in text.lines() {
        let kind = LineKind::read(line, fence.as_ref());
        match kind {
            LineKind::Opens(_) | LineKind::Closes => {}
            LineKind::Code => lines.push(line.to_owned()),
            LineKind::Prose => lines.push(visible_line(line)),
        }
        fence = kind.leaves_open(fence);
    }
    lines.join("\n")
}

fn visible_line(line: &str) -> String {
    let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
    let item = ["- ", "* ", "+ "]
        .iter()
        .find_map(|sign| rest.strip_prefix(sign));
    let (sign, rest) = item.map_or(("", rest), |item| ("• ", item));
    format!("{indent}{sign}{}", visible(&read_inline(rest)))
}

fn visible(inlines: &[InlineNode<'_>]) -> String {
    let shown = inlines.iter().map(|inline| match inline {
        InlineNode::Text(text) => unescaped(text),
        InlineNode::Code(text) | InlineNode::Link { label: text, .. } => (*text).to_owned(),
        InlineNode::Styled(_, inner) => visible(inner),
    });
    shown.collect()
}

/// A mark that was escaped is shown without its backslash.
fn unescaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let escapes = c == '\\' && rest.peek().is_some_and(char::is_ascii_punctuation);
        shown.push(if escapes { rest.next().unwrap_or(c) } else { c });
    }
    shown
}
