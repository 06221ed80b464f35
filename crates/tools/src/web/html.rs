//! Readable text out of HTML.
//!
//! Tokens are read one after the other and no tree is built, so that no nesting is too deep. What a reader does
//! not see (scripts, styles, elements that are hidden) is left out; links, lists, headings and tables keep a
//! little of their shape.

mod elements;
mod main_part;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use url::Url;

use self::elements::{attribute, is_block, is_never_shown, is_void, may_stay_open, says_hidden};
use self::main_part::MainPart;
use super::markup::MarkupWriter;

/// A page as somebody reads it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReadablePage {
    pub(super) title: String,
    pub(super) text: String,
    /// There was more than is kept, or than was looked at in the time.
    pub(super) is_cut: bool,
}

/// The tokenizer compares each attribute of a tag with all before it, so a page can be made to take hours. Pages
/// that people write take a hundredth of this.
const MOST_TIME: Duration = Duration::from_secs(5);
/// How much is read between two looks at the time.
const PIECE: usize = 4096;
const TITLE_CHARS: usize = 300;
const LONGEST_LINK: usize = 500;
const DEEPEST_LIST: usize = 8;
/// A page whose main part has less than this has its words elsewhere.
const LEAST_MAIN: usize = 200;

/// Reads a page that came from `base`.
pub(super) fn readable(html: &str, base: &Url) -> ReadablePage {
    readable_within(html, base, MOST_TIME)
}

fn readable_within(html: &str, base: &Url, most_time: Duration) -> ReadablePage {
    let sink = PageSink(RefCell::new(PageState::new(base.clone())));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let queue = BufferQueue::default();
    let began = Instant::now();
    let mut rest = html;
    let mut is_cut = false;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE.min(rest.len())));
        rest = after;
        queue.push_back(StrTendril::from(piece));
        // It would stop for a script that is to be run, and this sink hands it none.
        let _ = tokenizer.feed(&queue);
        if tokenizer.sink.0.borrow().writer.is_full() || began.elapsed() > most_time {
            is_cut = true;
            break;
        }
    }
    // Only where all of it was read: what the tokenizer still holds would take as long as it takes.
    if !is_cut {
        tokenizer.end();
    }
    let state = tokenizer.sink.0.into_inner();
    state.into_page(is_cut)
}

struct PageSink(RefCell<PageState>);

struct PageState {
    base: Url,
    writer: MarkupWriter,
    title: String,
    in_title: bool,
    hidden: Option<HiddenElement>,
    preformatted: usize,
    lists: Vec<ListState>,
    /// Lists that are too deep to be shown as such.
    deeper_lists: usize,
    link: Option<OpenLink>,
    table: OpenTable,
    main: MainPart,
    article: MainPart,
}

/// What is left out until this element ends.
struct HiddenElement {
    name: String,
    depth: usize,
}

enum ListState {
    Bullets,
    Numbers(u32),
}

struct OpenLink {
    href: String,
    is_written: bool,
}

/// The table that is not within another.
#[derive(Default)]
struct OpenTable {
    depth: usize,
    rows: usize,
    cells: usize,
    has_headings: bool,
    in_cell: bool,
}

impl TokenSink for PageSink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut state = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => state.text(&text),
            Token::TagToken(tag) => {
                let next = after_tag(&tag);
                state.tag(&tag);
                return next;
            }
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

/// Elements whose content is no HTML.
fn after_tag(tag: &Tag) -> TokenSinkResult<()> {
    if tag.kind == TagKind::EndTag {
        return TokenSinkResult::Continue;
    }
    match &*tag.name {
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
            TokenSinkResult::RawData(RawKind::Rawtext)
        }
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        "plaintext" => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}

impl PageState {
    fn new(base: Url) -> Self {
        Self {
            base,
            writer: MarkupWriter::default(),
            title: String::new(),
            in_title: false,
            hidden: None,
            preformatted: 0,
            lists: Vec::new(),
            deeper_lists: 0,
            link: None,
            table: OpenTable::default(),
            main: MainPart::default(),
            article: MainPart::default(),
        }
    }

    fn text(&mut self, text: &str) {
        if self.hidden.is_some() {
            return;
        }
        if self.in_title {
            let room = TITLE_CHARS.saturating_sub(self.title.chars().count());
            self.title.extend(text.chars().take(room));
            return;
        }
        if self.preformatted > 0 {
            self.writer.lines(text);
            return;
        }
        if let Some(link) = &mut self.link
            && !link.is_written
            && !text.trim().is_empty()
        {
            link.is_written = true;
            if text.starts_with(char::is_whitespace) {
                self.writer.space();
            }
            self.writer.word("[");
            self.writer.words(text.trim_start());
            return;
        }
        match self.table.in_cell && text.contains('|') {
            true => self.writer.words(&text.replace('|', "\\|")),
            false => self.writer.words(text),
        }
    }

    fn tag(&mut self, tag: &Tag) {
        let name = &*tag.name;
        if self.is_hidden_after(tag) {
            return;
        }
        match tag.kind {
            TagKind::StartTag => self.start(name, tag),
            TagKind::EndTag => self.end(name),
        }
    }

    /// Whether this tag belongs to what is not shown.
    fn is_hidden_after(&mut self, tag: &Tag) -> bool {
        let name = &*tag.name;
        let Some(hidden) = &mut self.hidden else {
            let begins = tag.kind == TagKind::StartTag
                && !is_void(name)
                && !tag.self_closing
                && (is_never_shown(name) || says_hidden(tag));
            if begins {
                let name = name.to_owned();
                self.hidden = Some(HiddenElement { name, depth: 1 });
            }
            return begins;
        };
        if hidden.name != name {
            return true;
        }
        match tag.kind {
            // The next of its kind ends it.
            TagKind::StartTag if may_stay_open(name) => {
                self.hidden = None;
                return self.is_hidden_after(tag);
            }
            TagKind::StartTag if tag.self_closing => {}
            TagKind::StartTag => hidden.depth += 1,
            TagKind::EndTag => {
                hidden.depth -= 1;
                if hidden.depth == 0 {
                    self.hidden = None;
                }
            }
        }
        true
    }

    fn start(&mut self, name: &str, tag: &Tag) {
        match name {
            "title" => self.in_title = self.title.is_empty(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.writer.block();
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.writer.prefix(&"######"[..level]);
                self.writer.prefix(" ");
            }
            "br" if self.table.in_cell => self.writer.space(),
            "br" => self.writer.line_break(),
            "hr" => {
                self.writer.block();
                self.writer.word("---");
                self.writer.block();
            }
            "pre" => {
                self.writer.block();
                self.writer.word("```\n");
                self.preformatted += 1;
            }
            "ul" | "ol" | "menu" => self.start_list(name),
            "li" => self.start_entry(),
            "dt" | "dd" => self.writer.line_break(),
            "a" => self.start_link(tag),
            "img" => self.image(tag),
            "table" => self.start_table(),
            "tr" if self.table.depth == 1 => self.start_row(),
            "td" | "th" if self.table.depth == 1 => self.start_cell(name),
            "main" => self.main.begin(self.writer.length()),
            "article" => self.article.begin(self.writer.length()),
            _ => {}
        }
        if is_block(name) {
            self.writer.block();
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "title" => self.in_title = false,
            "pre" if self.preformatted > 0 => {
                self.preformatted -= 1;
                self.writer.line_break();
                self.writer.word("```");
                self.writer.block();
            }
            "ul" | "ol" | "menu" => self.end_list(),
            "a" => self.end_link(),
            "td" | "th" if self.table.depth == 1 => self.table.in_cell = false,
            "tr" if self.table.depth == 1 => self.end_row(),
            "table" => self.end_table(),
            "main" => self.main.end(self.writer.length()),
            "article" => self.article.end(self.writer.length()),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.writer.block(),
            _ => {}
        }
        if is_block(name) {
            self.writer.block();
        }
    }

    fn start_list(&mut self, name: &str) {
        if self.lists.len() >= DEEPEST_LIST {
            self.deeper_lists += 1;
            return;
        }
        match self.lists.is_empty() {
            true => self.writer.block(),
            false => self.writer.line_break(),
        }
        self.lists.push(match name {
            "ol" => ListState::Numbers(0),
            _ => ListState::Bullets,
        });
    }

    fn end_list(&mut self) {
        if self.deeper_lists > 0 {
            self.deeper_lists -= 1;
            return;
        }
        self.lists.pop();
        match self.lists.is_empty() {
            true => self.writer.block(),
            false => self.writer.line_break(),
        }
    }

    fn start_entry(&mut self) {
        self.writer.line_break();
        let depth = self.lists.len().saturating_sub(1);
        let mark = match self.lists.last_mut() {
            Some(ListState::Numbers(number)) => {
                *number = number.saturating_add(1);
                format!("{}{number}. ", "  ".repeat(depth))
            }
            Some(ListState::Bullets) | None => format!("{}- ", "  ".repeat(depth)),
        };
        self.writer.prefix(&mark);
    }

    fn start_link(&mut self, tag: &Tag) {
        self.end_link();
        let href = attribute(tag, "href").filter(|href| !href.starts_with('#'));
        let href = href.and_then(|href| self.absolute(href));
        self.link = href.map(|href| OpenLink {
            href,
            is_written: false,
        });
    }

    fn end_link(&mut self) {
        if let Some(link) = self.link.take().filter(|link| link.is_written) {
            self.writer.mark(&format!("]({})", link.href));
        }
    }

    fn image(&mut self, tag: &Tag) {
        let alt = attribute(tag, "alt").unwrap_or("").trim();
        let alt: String = alt.chars().take(200).collect();
        let source = attribute(tag, "src").and_then(|source| self.absolute(source));
        match source {
            _ if alt.is_empty() => {}
            Some(source) if self.link.is_none() => {
                self.writer.word(&format!("![{alt}]({source})"));
            }
            _ => self.text(&format!("[IMAGE: {alt}]")),
        }
    }

    /// Nothing for what is no address of the web, or too long to be one that a person wrote.
    fn absolute(&self, address: &str) -> Option<String> {
        if address.len() > LONGEST_LINK {
            return None;
        }
        let url = self.base.join(address.trim()).ok()?;
        let is_web = matches!(url.scheme(), "http" | "https") && url.as_str().len() <= LONGEST_LINK;
        is_web.then(|| url.to_string())
    }

    fn start_table(&mut self) {
        self.writer.block();
        self.table.depth += 1;
        if self.table.depth == 1 {
            self.table = OpenTable {
                depth: 1,
                ..OpenTable::default()
            };
        }
    }

    fn end_table(&mut self) {
        self.table.depth = self.table.depth.saturating_sub(1);
        self.table.in_cell &= self.table.depth > 0;
        self.writer.block();
    }

    fn start_row(&mut self) {
        self.writer.line_break();
        (self.table.cells, self.table.in_cell) = (0, false);
    }

    fn start_cell(&mut self, name: &str) {
        self.table.has_headings |= name == "th" && self.table.rows == 0;
        self.table.in_cell = true;
        self.table.cells += 1;
        match self.table.cells {
            1 => self.writer.line_break(),
            _ => self.writer.space(),
        }
        self.writer.word("|");
        self.writer.space();
    }

    fn end_row(&mut self) {
        self.table.in_cell = false;
        if self.table.cells == 0 {
            return;
        }
        self.writer.space();
        self.writer.word("|");
        self.writer.line_break();
        if self.table.rows == 0 && self.table.has_headings {
            let rule = "|".to_owned() + &" --- |".repeat(self.table.cells.min(100));
            self.writer.word(&rule);
            self.writer.line_break();
        }
        self.table.rows += 1;
    }

    /// The part that the page calls its main one, where that has words.
    fn into_page(mut self, is_cut: bool) -> ReadablePage {
        self.end_link();
        let length = self.writer.length();
        let is_full = self.writer.is_full();
        let parts = [
            self.main.into_ranges(length),
            self.article.into_ranges(length),
        ];
        let text = self.writer.into_text();
        let part = parts.into_iter().find_map(|ranges| {
            let words: Vec<_> = ranges.into_iter().map(|range| text[range].trim()).collect();
            let words = words.join("\n\n");
            (words.len() >= LEAST_MAIN).then_some(words)
        });
        ReadablePage {
            title: self.title.split_whitespace().collect::<Vec<_>>().join(" "),
            text: part.unwrap_or_else(|| text.trim().to_owned()),
            is_cut: is_cut || is_full,
        }
    }
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
