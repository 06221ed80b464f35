//! Common Markdown into what WhatsApp shows formatted.
//!
//! WhatsApp refuses no text for its formatting, so there is no plain second try; what it does not know
//! (links with a label, headings, spoilers) is written so that it reads well as it stands.

use hermetic_chat::markdown::{InlineNode, LineKind, TextStyle, read_inline};

/// The same text as WhatsApp formats it. Never longer than the source.
pub fn to_whatsapp(text: &str) -> String {
    let mut lines = Vec::new();
    let mut fence = None;
    for line in text.lines() {
        let read = LineKind::read(line, fence.as_ref());
        match read {
            // The name of a language would be shown as code.
            LineKind::Opens(_) | LineKind::Closes => lines.push("```".to_owned()),
            LineKind::Code => lines.push(line.to_owned()),
            LineKind::Prose => lines.push(prose(line)),
        }
        fence = read.leaves_open(fence);
    }
    lines.join("\n")
}

fn prose(line: &str) -> String {
    let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
    let mut out = indent.to_owned();
    if let Some(heading) = heading(rest) {
        // In one style: bold within bold would end it.
        out.push('*');
        plain(&read_inline(heading), &mut out);
        out.push('*');
        return out;
    }
    let item = ["* ", "+ "].iter().find_map(|sign| rest.strip_prefix(sign));
    let rest = match item {
        Some(item) => {
            out.push_str("- ");
            item
        }
        None => rest,
    };
    styled(&read_inline(rest), &mut out);
    out
}

fn styled(inlines: &[InlineNode<'_>], out: &mut String) {
    for inline in inlines {
        match inline {
            InlineNode::Styled(style, inner) => {
                let sign = match style {
                    TextStyle::Bold => "*",
                    TextStyle::Italic => "_",
                    TextStyle::Strike => "~",
                    TextStyle::Spoiler => "",
                };
                out.push_str(sign);
                styled(inner, out);
                out.push_str(sign);
            }
            other => unstyled(other, out),
        }
    }
}

fn plain(inlines: &[InlineNode<'_>], out: &mut String) {
    for inline in inlines {
        match inline {
            InlineNode::Styled(_, inner) => plain(inner, out),
            other => unstyled(other, out),
        }
    }
}

fn unstyled(inline: &InlineNode<'_>, out: &mut String) {
    match inline {
        InlineNode::Text(text) => unescape(text, out),
        InlineNode::Code(code) => {
            out.push('`');
            out.push_str(code);
            out.push('`');
        }
        InlineNode::Link { label, url } if label == url => out.push_str(url),
        InlineNode::Link { label, url } => {
            unescape(label, out);
            out.push_str(" (");
            out.push_str(url);
            out.push(')');
        }
        InlineNode::Styled(..) => {}
    }
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let text = text.strip_prefix(' ')?.trim();
    ((1..=6).contains(&level) && !text.is_empty()).then_some(text)
}

/// `\*` in the source means a plain asterisk.
fn unescape(text: &str, out: &mut String) {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(next) if c == '\\' && next.is_ascii_punctuation() => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_dialect_is_that_of_whatsapp() {
        for (source, shown) in [
            (
                "**bold** and *italic* and ~~gone~~",
                "*bold* and _italic_ and ~gone~",
            ),
            ("# A **title**", "*A title*"),
            ("* one\n+ two\n- three", "- one\n- two\n- three"),
            ("[here](https://a.example)", "here (https://a.example)"),
            ("`a*b*c` and snake_case_name", "`a*b*c` and snake_case_name"),
            ("```rust\nlet a = 1;\n```", "```\nlet a = 1;\n```"),
            ("> quoted **words**", "> quoted *words*"),
            (r"2 \* 3", "2 * 3"),
        ] {
            assert_eq!(to_whatsapp(source), shown, "{source}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_never_longer(text in "[a*_~`|#> \\n\\\\\\[\\]()-]{0,80}") {
            let shown = to_whatsapp(&text).encode_utf16().count();
            prop_assert!(shown <= text.encode_utf16().count(), "{text:?}");
        }
    }
}
