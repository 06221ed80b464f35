//! Common Markdown into Discord's dialect of it.
//!
//! Most is the same. Where it is not: `__` underlines instead of making bold, headings go down to the
//! third level, only backticks fence code, and a sign that means nothing in the source may mean something
//! to Discord, so it is escaped.

use hermetic_chat::markdown::{InlineNode, LineKind, TextStyle, read_inline};

/// A space without width, which keeps backticks inside a block from ending it.
const APART: &str = "`\u{200b}`\u{200b}`";

/// The same text in Discord's dialect. It may be longer than the source.
pub(crate) fn to_dialect(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut fence = None;
    for line in text.lines() {
        let read = LineKind::read(line, fence.as_ref());
        lines.push(match read {
            LineKind::Opens(fence) => format!("```{}", fence.language),
            LineKind::Code => line.replace("```", APART),
            LineKind::Closes => "```".to_owned(),
            LineKind::Prose => prose(line),
        });
        fence = read.leaves_open(fence);
    }
    if fence.is_some() {
        lines.push("```".to_owned());
    }
    lines.join("\n")
}

fn prose(line: &str) -> String {
    let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
    let mut out = indent.to_owned();
    let level = rest.len() - rest.trim_start_matches('#').len();
    let (before, rest) = match level {
        1..=3 if rest[level..].starts_with(' ') => rest.split_at(level + 1),
        4..=6 if rest[level..].starts_with(' ') => {
            out.push_str("**");
            inlines(&read_inline(rest[level..].trim()), &mut out);
            out.push_str("**");
            return out;
        }
        _ => rest.split_at(mark(rest)),
    };
    out.push_str(before);
    inlines(&read_inline(rest), &mut out);
    out
}

/// The length of what begins a quoted line or an item of a list.
fn mark(line: &str) -> usize {
    let marks = ["> ", "- ", "* "];
    let found = marks.iter().find(|mark| line.starts_with(**mark));
    found.map_or(0, |mark| mark.len())
}

fn inlines(inlines_read: &[InlineNode<'_>], out: &mut String) {
    for inline in inlines_read {
        match inline {
            InlineNode::Text(text) => escape(text, out),
            InlineNode::Code(code) => {
                // Two signs around code that holds one.
                let sign = if code.contains('`') { "``" } else { "`" };
                out.push_str(sign);
                out.push_str(code);
                out.push_str(sign);
            }
            InlineNode::Link { label, url } => {
                out.push('[');
                escape(label, out);
                out.push_str("](");
                out.push_str(url);
                out.push(')');
            }
            InlineNode::Styled(style, inner) => {
                let sign = sign(*style);
                out.push_str(sign);
                inlines(inner, out);
                out.push_str(sign);
            }
        }
    }
}

fn sign(style: TextStyle) -> &'static str {
    match style {
        TextStyle::Bold => "**",
        TextStyle::Italic => "*",
        TextStyle::Strike => "~~",
        TextStyle::Spoiler => "||",
    }
}

/// What stands in a text as itself. An address stays whole, and what the source escaped stays escaped.
fn escape(text: &str, out: &mut String) {
    for word in text.split_inclusive(char::is_whitespace) {
        if word.contains("://") {
            out.push_str(word);
            continue;
        }
        let mut chars = word.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if chars.peek().is_some_and(char::is_ascii_punctuation) => {
                    out.push(c);
                    out.extend(chars.next());
                }
                '*' | '_' | '`' | '~' | '|' => {
                    out.push('\\');
                    out.push(c);
                }
                c => out.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_means_the_same_stays_and_the_rest_is_written_in_the_dialect() {
        for (source, dialect) in [
            ("plain", "plain"),
            ("**bold** and *italic*", "**bold** and *italic*"),
            ("__bold__", "**bold**"),
            ("# One\n### Three\n#### Four", "# One\n### Three\n**Four**"),
            ("~~gone~~ ||hidden||", "~~gone~~ ||hidden||"),
            ("- item\n> quoted", "- item\n> quoted"),
            ("[a](https://b.c/d_e_f)", "[a](https://b.c/d_e_f)"),
            ("see https://b.c/d_e_f now", "see https://b.c/d_e_f now"),
            ("2 * 3", "2 \\* 3"),
            ("~~~py\nx = 1\n~~~", "```py\nx = 1\n```"),
            ("```\nopen", "```\nopen\n```"),
            ("`code`", "`code`"),
            (r"\*no\*", r"\*no\*"),
        ] {
            assert_eq!(to_dialect(source), dialect, "{source:?}");
        }
    }

    #[test]
    fn code_cannot_end_its_block_early() {
        let dialect = to_dialect("~~~\n```\n@everyone\n~~~");
        assert_eq!(dialect.matches("```").count(), 2, "{dialect}");
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[ \\n*_~`|#>\\\\a:/-]{0,80}") {
            to_dialect(&text);
        }
    }
}
