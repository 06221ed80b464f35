//! Common Markdown into the HTML that Matrix' apps show.
//!
//! Only tags that the specification names are written, and everything else in a text is escaped, so
//! nothing in it becomes a tag, a picture or a mention but what we write as one.

use hermetic_chat::markdown::{InlineNode, LineKind, TextStyle, read_inline};

/// The same text as HTML; `None` where that would show nothing more than the text itself.
pub(crate) fn to_html(text: &str) -> Option<String> {
    let mut page = HtmlPage::default();
    let mut fence = None;
    for line in text.lines() {
        let read = LineKind::read(line, fence.as_ref());
        match read {
            LineKind::Opens(fence) => page.open_code(fence.language),
            LineKind::Code => page.code(line),
            LineKind::Closes => page.close(),
            LineKind::Prose => page.prose(line),
        }
        fence = read.leaves_open(fence);
    }
    page.close();
    page.is_rich.then_some(page.out)
}

#[derive(Default)]
struct HtmlPage {
    out: String,
    block: Option<HtmlBlock>,
    /// There is something that plain text does not show.
    is_rich: bool,
}

/// What the lines that come next belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HtmlBlock {
    Paragraph,
    Quote,
    Bullets,
    Numbers,
    Code,
}

impl HtmlPage {
    fn prose(&mut self, line: &str) {
        let line = line.trim();
        if line.is_empty() {
            self.close();
        } else if let Some((level, title)) = heading(line) {
            self.close();
            self.rich(&format!("<h{level}>"));
            self.inlines(&read_inline(title));
            self.out.push_str(&format!("</h{level}>"));
        } else if let Some(quoted) = line.strip_prefix('>') {
            self.line_of(HtmlBlock::Quote, quoted.trim_start());
        } else if let Some(item) = bullet(line) {
            self.item_of(HtmlBlock::Bullets, "<ul>", item);
        } else if let Some((number, item)) = numbered(line) {
            self.item_of(
                HtmlBlock::Numbers,
                &format!("<ol start=\"{number}\">"),
                item,
            );
        } else {
            self.line_of(HtmlBlock::Paragraph, line);
        }
    }

    /// One more line of a paragraph or a quotation.
    fn line_of(&mut self, block: HtmlBlock, line: &str) {
        if self.block == Some(block) {
            self.out.push_str("<br>");
        } else {
            self.close();
            match block {
                HtmlBlock::Quote => self.rich("<blockquote>"),
                _ => self.out.push_str("<p>"),
            }
            self.block = Some(block);
        }
        self.inlines(&read_inline(line));
    }

    fn item_of(&mut self, block: HtmlBlock, opening: &str, item: &str) {
        if self.block != Some(block) {
            self.close();
            self.rich(opening);
            self.block = Some(block);
        }
        self.out.push_str("<li>");
        self.inlines(&read_inline(item));
        self.out.push_str("</li>");
    }

    fn open_code(&mut self, language: &str) {
        self.close();
        self.rich("<pre><code");
        if !language.is_empty() {
            self.out.push_str(" class=\"language-");
            escape(language, &mut self.out);
            self.out.push('"');
        }
        self.out.push('>');
        self.block = Some(HtmlBlock::Code);
    }

    fn code(&mut self, line: &str) {
        escape(line, &mut self.out);
        self.out.push('\n');
    }

    fn close(&mut self) {
        self.out.push_str(match self.block.take() {
            None => "",
            Some(HtmlBlock::Paragraph) => "</p>",
            Some(HtmlBlock::Quote) => "</blockquote>",
            Some(HtmlBlock::Bullets) => "</ul>",
            Some(HtmlBlock::Numbers) => "</ol>",
            Some(HtmlBlock::Code) => "</code></pre>",
        });
    }

    fn inlines(&mut self, parts: &[InlineNode<'_>]) {
        for part in parts {
            match part {
                InlineNode::Text(text) => escape(&unescape(text), &mut self.out),
                InlineNode::Code(code) => {
                    self.rich("<code>");
                    escape(code, &mut self.out);
                    self.out.push_str("</code>");
                }
                InlineNode::Link { label, url } => self.link(label, url),
                InlineNode::Styled(style, inner) => {
                    let (opening, closing) = tags(*style);
                    self.rich(opening);
                    self.inlines(inner);
                    self.out.push_str(closing);
                }
            }
        }
    }

    /// Apps make a mention of a link to a person, so such a link stays text.
    fn link(&mut self, label: &str, url: &str) {
        if url.contains("matrix.to/") || url.starts_with("tg://") {
            escape(&format!("{} ({url})", unescape(label)), &mut self.out);
            return;
        }
        self.rich("<a href=\"");
        escape(url, &mut self.out);
        self.out.push_str("\">");
        escape(&unescape(label), &mut self.out);
        self.out.push_str("</a>");
    }

    fn rich(&mut self, tag: &str) {
        self.is_rich = true;
        self.out.push_str(tag);
    }
}

fn tags(style: TextStyle) -> (&'static str, &'static str) {
    match style {
        TextStyle::Bold => ("<strong>", "</strong>"),
        TextStyle::Italic => ("<em>", "</em>"),
        TextStyle::Strike => ("<del>", "</del>"),
        TextStyle::Spoiler => ("<span data-mx-spoiler>", "</span>"),
    }
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let text = text.strip_prefix(' ')?.trim();
    ((1..=6).contains(&level) && !text.is_empty()).then_some((level, text))
}

fn bullet(line: &str) -> Option<&str> {
    let signs = ["- ", "* ", "+ "];
    signs.iter().find_map(|sign| line.strip_prefix(sign))
}

fn numbered(line: &str) -> Option<(u32, &str)> {
    let (number, item) = line.split_once(". ")?;
    Some((number.parse().ok().filter(|_| number.len() < 6)?, item))
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
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
    fn markdown_becomes_html() {
        for (source, written) in [
            ("plain & simple\nwith lines", None),
            (
                "**bold** *it* ~~no~~",
                Some("<p><strong>bold</strong> <em>it</em> <del>no</del></p>"),
            ),
            ("||psst||", Some("<p><span data-mx-spoiler>psst</span></p>")),
            ("# Title\ntext", Some("<h1>Title</h1><p>text</p>")),
            (
                "- one\n- two\n\n3. three",
                Some("<ul><li>one</li><li>two</li></ul><ol start=\"3\"><li>three</li></ol>"),
            ),
            (
                "> a\n> b\nc",
                Some("<blockquote>a<br>b</blockquote><p>c</p>"),
            ),
            (
                "```rust\nlet a = 1 < 2;\n\n```",
                Some("<pre><code class=\"language-rust\">let a = 1 &lt; 2;\n\n</code></pre>"),
            ),
            ("```\nopen", Some("<pre><code>open\n</code></pre>")),
            ("`a < b`", Some("<p><code>a &lt; b</code></p>")),
            (
                "[a](https://b.c/?d=1&e=\"2)",
                Some("<p><a href=\"https://b.c/?d=1&amp;e=&quot;2\">a</a></p>"),
            ),
            ("**<b>**", Some("<p><strong>&lt;b&gt;</strong></p>")),
            ("\\*no\\*", None),
        ] {
            assert_eq!(to_html(source).as_deref(), written, "{source}");
        }
    }

    #[test]
    fn no_link_becomes_a_mention() {
        let html = to_html("**x** [Alice](https://matrix.to/#/@alice:example.org)").unwrap();
        assert!(!html.contains("<a"), "{html}");
    }

    proptest! {
        /// Whatever a model writes, every tag is one of ours.
        #[test]
        fn every_tag_is_ours(text in "[<>a-z\"'/ =!\\n#*_`~|()\\[\\]:&\\\\.0-9-]{0,200}") {
            const OURS: [&str; 17] = [
                "p>", "br>", "blockquote>", "ul>", "ol ", "ol>", "li>", "pre>", "code", "strong>",
                "em>", "del>", "span", "a ", "a>", "h", "/",
            ];
            for piece in to_html(&text).unwrap_or_default().split('<').skip(1) {
                prop_assert!(OURS.iter().any(|tag| piece.starts_with(tag)), "{piece}");
            }
        }
    }
}
