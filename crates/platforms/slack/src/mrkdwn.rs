//! Common Markdown into Slack's mrkdwn.
//!
//! mrkdwn has no escapes but for three characters, and Slack never refuses it: what it does not
//! understand it shows as it is. Those three are always escaped, so nothing in a text becomes a mention,
//! a link or a call to a whole channel but what we write as one.

use hermetic_chat::markdown::{InlineNode, LineKind, TextStyle, read_inline};

/// The same text in mrkdwn.
pub fn to_mrkdwn(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut fence = None;
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let read = LineKind::read(line, fence.as_ref());
        match read {
            // A language would be shown as the first line of the code.
            LineKind::Opens(_) | LineKind::Closes => out.push_str("```"),
            LineKind::Code => code_line(line, &mut out),
            LineKind::Prose => prose(line, &mut out),
        }
        fence = read.leaves_open(fence);
    }
    if fence.is_some() {
        out.push_str("\n```");
    }
    out
}

/// Escapes the characters that mean something in mrkdwn.
pub(crate) fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(c),
        }
    }
}

fn code_line(line: &str, out: &mut String) {
    // Three ticks would end the block: a character without width keeps them apart.
    escape(&line.replace("```", "``\u{200b}`"), out);
}

fn prose(line: &str, out: &mut String) {
    let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
    out.push_str(indent);
    if let Some(heading) = heading(rest) {
        inlines(
            &[InlineNode::Styled(TextStyle::Bold, read_inline(heading))],
            &[],
            out,
        );
    } else if let Some(quoted) = rest.strip_prefix('>').filter(|_| indent.is_empty()) {
        out.push('>');
        inlines(&read_inline(quoted), &[], out);
    } else if let Some(item) = ["- ", "* ", "+ "]
        .iter()
        .find_map(|sign| rest.strip_prefix(sign))
    {
        out.push_str("• ");
        inlines(&read_inline(item), &[], out);
    } else {
        inlines(&read_inline(rest), &[], out);
    }
}

fn inlines(parts: &[InlineNode<'_>], within: &[TextStyle], out: &mut String) {
    for part in parts {
        match part {
            InlineNode::Text(text) => escape(&unescape(text), out),
            InlineNode::Code(code) => inline_code(code, out),
            InlineNode::Link { label, url } => link(label, url, out),
            InlineNode::Styled(style, inner) => {
                let sign = sign(*style).filter(|_| !within.contains(style));
                let within: Vec<_> = within.iter().chain([style]).copied().collect();
                out.extend(sign);
                inlines(inner, &within, out);
                out.extend(sign);
            }
        }
    }
}

/// Code that holds a tick cannot be written as code.
fn inline_code(code: &str, out: &mut String) {
    let ticks = if code.contains('`') { "" } else { "`" };
    out.push_str(ticks);
    escape(code, out);
    out.push_str(ticks);
}

fn link(label: &str, url: &str, out: &mut String) {
    out.push('<');
    // A bar would begin the label.
    escape(&url.replace('|', "%7C"), out);
    out.push('|');
    escape(&unescape(label), out);
    out.push('>');
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let text = text.strip_prefix(' ')?.trim();
    ((1..=6).contains(&level) && !text.is_empty()).then_some(text)
}

/// Slack hides nothing, so a spoiler is plain text.
fn sign(style: TextStyle) -> Option<char> {
    match style {
        TextStyle::Bold => Some('*'),
        TextStyle::Italic => Some('_'),
        TextStyle::Strike => Some('~'),
        TextStyle::Spoiler => None,
    }
}

/// `\*` in the source means a plain asterisk.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(next) if c == '\\' && next.is_ascii_punctuation() => plain.extend(chars.next()),
            _ => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markdown_becomes_mrkdwn() {
        for (source, written) in [
            ("plain", "plain"),
            ("**bold** *it* ~~no~~ ||psst||", "*bold* _it_ ~no~ psst"),
            ("***both***", "*_both_*"),
            ("# Title", "*Title*"),
            ("- one\n  * two", "• one\n  • two"),
            ("> quoted", "> quoted"),
            (
                "[a page](https://a.example/?x=1&y=2)",
                "<https://a.example/?x=1&amp;y=2|a page>",
            ),
            ("[x](https://a.example/a|b)", "<https://a.example/a%7Cb|x>"),
            ("`a < b`", "`a &lt; b`"),
            ("`` a ` b ``", "a ` b"),
            (
                "```rust\nlet a = 1 & 2;\n```",
                "```\nlet a = 1 &amp; 2;\n```",
            ),
            ("```\nopen", "```\nopen\n```"),
            ("~~~\na ``` b\n~~~", "```\na ``\u{200b}` b\n```"),
            ("\\*not bold\\*", "*not bold*"),
            (
                "<!channel> <@U1> <https://x|y>",
                "&lt;!channel&gt; &lt;@U1&gt; &lt;https://x|y&gt;",
            ),
            (
                "[<!here>](https://a.example)",
                "<https://a.example|&lt;!here&gt;>",
            ),
        ] {
            assert_eq!(to_mrkdwn(source), written, "{source}");
        }
    }

    proptest! {
        /// Whatever a model writes, nobody is called but by a link of ours.
        #[test]
        fn no_text_calls_anybody(text in "[<>!@#|()\\[\\]a-z*_`~ \n:/.&\\\\-]{0,200}") {
            let written = to_mrkdwn(&text);
            for piece in written.split('<').skip(1) {
                let honest = ["http://", "https://", "tg://", "mailto:"];
                prop_assert!(honest.iter().any(|scheme| piece.starts_with(scheme)), "{written}");
            }
        }
    }
}
