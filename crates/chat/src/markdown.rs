//! Common Markdown, as models write it.
//!
//! A small reader of our own: fenced code by [`LineKind`], and within a line code, bold, italic,
//! strikethrough, spoilers and links by [`read_inline`]. A platform writes what was read in its own
//! dialect. Whatever is not understood stays visible as text.

mod fence;
mod inline;

pub use fence::{CodeFence, LineKind};
pub use inline::{InlineNode, TextStyle, read as read_inline};

pub(crate) use inline::unbroken;
