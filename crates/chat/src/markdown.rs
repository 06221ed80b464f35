//! Common Markdown, as models write it, into Telegram's MarkdownV2.
//!
//! A small reader of our own: fenced code, headings, quotes, bullets, and within a line code,
//! bold, italic, strikethrough, spoilers and links. Whatever is not understood stays visible as
//! text, escaped to the letter, because Telegram refuses a message for a single stray dot.

mod inline;
mod v2;

pub use v2::to_markdown_v2;

pub(crate) use inline::unbroken;
