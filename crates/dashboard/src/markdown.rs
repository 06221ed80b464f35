//! Common Markdown as a page shows it. Whatever is not understood stays visible as text, and no text becomes
//! anything but text: everything goes through maud, which escapes it.

use hermetic_chat::markdown::{InlineNode, LineKind, TextStyle, read_inline};
use maud::{Markup, Render as _, html};

use crate::words;

/// A text as a page shows it.
pub(crate) fn shown(text: &str) -> Markup {
    let blocks = blocks(text);
    html! {
        @for block in &blocks {
            @match block {
                TextBlock::Code(code) => pre tabindex="0" { code { (code) } },
                TextBlock::Heading(title) => p.heading { strong { (line(title)) } },
                TextBlock::Quote(lines) => blockquote { (lines_of(lines)) },
                TextBlock::Items(items) => ul { @for item in items { li { (line(item)) } } },
                TextBlock::Numbers(first, items) => {
                    ol start=(first) { @for item in items { li { (line(item)) } } }
                }
                TextBlock::Lines(lines) => p { (lines_of(lines)) },
            }
        }
    }
}

/// Lines that belong together.
#[derive(Debug, PartialEq, Eq)]
enum TextBlock<'a> {
    Code(String),
    Heading(&'a str),
    Quote(Vec<&'a str>),
    Items(Vec<&'a str>),
    Numbers(u32, Vec<&'a str>),
    Lines(Vec<&'a str>),
}

fn blocks(text: &str) -> Vec<TextBlock<'_>> {
    let (mut blocks, mut fence) = (Vec::new(), None);
    // An empty line ends what stands before it.
    let mut goes_on = false;
    for line in text.lines() {
        let read = LineKind::read(line, fence.as_ref());
        match read {
            LineKind::Opens(_) => blocks.push(TextBlock::Code(String::new())),
            LineKind::Code => {
                if let Some(TextBlock::Code(code)) = blocks.last_mut() {
                    code.push_str(line);
                    code.push('\n');
                }
            }
            LineKind::Closes => {}
            LineKind::Prose => prose(&mut blocks, line.trim(), goes_on),
        }
        goes_on = matches!(read, LineKind::Prose) && !line.trim().is_empty();
        fence = read.leaves_open(fence);
    }
    blocks
}

fn prose<'a>(blocks: &mut Vec<TextBlock<'a>>, line: &'a str, goes_on: bool) {
    if line.is_empty() {
        return;
    }
    let last = blocks.last_mut().filter(|_| goes_on);
    if let Some(title) = heading(line) {
        blocks.push(TextBlock::Heading(title));
    } else if let Some(quoted) = line.strip_prefix('>') {
        match last {
            Some(TextBlock::Quote(lines)) => lines.push(quoted.trim()),
            _ => blocks.push(TextBlock::Quote(vec![quoted.trim()])),
        }
    } else if let Some(item) = ["- ", "* ", "+ "]
        .iter()
        .find_map(|it| line.strip_prefix(it))
    {
        match last {
            Some(TextBlock::Items(items)) => items.push(item.trim()),
            _ => blocks.push(TextBlock::Items(vec![item.trim()])),
        }
    } else if let Some((number, item)) = numbered(line) {
        match last {
            Some(TextBlock::Numbers(_, items)) => items.push(item),
            _ => blocks.push(TextBlock::Numbers(number, vec![item])),
        }
    } else {
        match last {
            Some(TextBlock::Lines(lines)) => lines.push(line),
            _ => blocks.push(TextBlock::Lines(vec![line])),
        }
    }
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let title = title
        .strip_prefix(' ')
        .filter(|_| (1..=6).contains(&level))?;
    Some(title.trim())
}

fn numbered(line: &str) -> Option<(u32, &str)> {
    let (number, item) = line.split_once(". ").or_else(|| line.split_once(") "))?;
    let is_number = (1..=6).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    let number = is_number.then(|| number.parse().ok()).flatten()?;
    Some((number, item.trim()))
}

fn lines_of(lines: &[&str]) -> Markup {
    html! {
        @for (number, text) in lines.iter().enumerate() {
            @if number > 0 { br; }
            (line(text))
        }
    }
}

fn line(text: &str) -> Markup {
    nodes(&read_inline(text))
}

fn nodes(inlines: &[InlineNode<'_>]) -> Markup {
    html! { @for inline in inlines { (node(inline)) } }
}

fn node(inline: &InlineNode<'_>) -> Markup {
    match inline {
        InlineNode::Text(text) => text.render(),
        InlineNode::Code(code) => html! { code { (code) } },
        InlineNode::Styled(style, inner) => {
            let inner = nodes(inner);
            match style {
                TextStyle::Bold => html! { strong { (inner) } },
                TextStyle::Italic => html! { em { (inner) } },
                TextStyle::Strike => html! { s { (inner) } },
                // A page has nothing to hide it with that works without a script.
                TextStyle::Spoiler => inner,
            }
        }
        InlineNode::Link { label, url } if is_web_address(url) => html! {
            a href=(url) rel="noopener noreferrer nofollow" target="_blank" { (label) }
            // What it says need not be where it leads.
            @if label != url { " " span.dim { "(" (words::beginning(url, 80)) ")" } }
        },
        InlineNode::Link { label, url } => html! { (label) " (" (url) ")" },
    }
}

/// Only what leads to another page: no script, no data, no file.
fn is_web_address(url: &str) -> bool {
    let is_web = ["https://", "http://"].iter().any(|scheme| {
        let start = url.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    is_web && !url.contains(|c: char| c.is_control() || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> String {
        shown(text).into_string()
    }

    #[test]
    fn what_models_write_looks_as_they_meant_it() {
        assert_eq!(
            html("# Files\nThere are **two**:\n\n- `a`\n- b\n\n```sh\nls -la\n```\nbye\nnow"),
            "<p class=\"heading\"><strong>Files</strong></p><p>There are <strong>two</strong>:</p>\
             <ul><li><code>a</code></li><li>b</li></ul>\
             <pre tabindex=\"0\"><code>ls -la\n</code></pre><p>bye<br>now</p>"
        );
        assert_eq!(
            html("> one\n> two\n\n3. c\n4. d"),
            "<blockquote>one<br>two</blockquote><ol start=\"3\"><li>c</li><li>d</li></ol>"
        );
        assert_eq!(
            html("```\nnever closed"),
            "<pre tabindex=\"0\"><code>never closed\n</code></pre>"
        );
    }

    #[test]
    fn nothing_that_is_written_becomes_a_tag_or_a_script() {
        for evil in [
            "<script>alert(1)</script>",
            "**<img src=x onerror=alert(1)>**",
            "`<b>`",
            "```\n</code></pre><script>alert(1)</script>\n```",
            "- <svg onload=alert(1)>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "[<b>](https://a.example/\"onmouseover=\"alert(1))",
        ] {
            let html = html(evil);
            for tag in [
                "<script",
                "<img",
                "<svg",
                "<b>",
                "href=\"javascript",
                "href=\"data",
            ] {
                assert!(!html.to_lowercase().contains(tag), "{evil}: {html}");
            }
            assert!(!html.contains("\"onmouseover"), "{html}");
        }
        let link = html("[here](https://a.example/x)");
        assert!(link.contains("href=\"https://a.example/x\" rel=\"noopener noreferrer nofollow\""));
        assert!(link.contains("(https://a.example/x)"), "{link}");
    }
}
