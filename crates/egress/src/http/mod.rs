//! HTTP/1.1 as a checkpoint needs it: every byte of a head is looked at, every body is framed by us.
//!
//! A general library is lenient where we must not be (a bare line feed, a folded line, a length given
//! twice) and hides the bytes that tell a smuggled request from an honest one. What we accept is small,
//! so the parser is ours, strict and fuzzed. Both sides' heads are parsed and written anew: nothing of
//! the sandbox's framing reaches an origin.

pub(crate) mod body;
pub(crate) mod chunked;
pub(crate) mod exchange;
pub(crate) mod fields;
pub(crate) mod framing;
pub(crate) mod head;
pub(crate) mod source;
