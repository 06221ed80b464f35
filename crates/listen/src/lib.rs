//! Listening ports on which half-open connections keep nobody out.
//!
//! A connection costs a file descriptor before it has said anything, and whoever can connect can do so a
//! thousand times. Every port of ours therefore counts its connections, in all and from each address. When
//! there is no room for another, the connection goes that has waited longest without a complete request,
//! so that whoever has something to say always gets in. One that is being answered is never cut for that.
//!
//! - [`BoundedListener`] accepts; it never spins and recovers when descriptors run out.
//! - [`ConnectionTable`] knows who is connected and decides who goes first.
//! - [`serve_http`] answers HTTP/1 on such a port, with a deadline for each request; who does not read his
//!   answer is cut.
//! - [`serve_unix`] does the same on a socket in a folder, for programs of the same account.
//! - [`descriptors`] says how many files this process may have open.

#![forbid(unsafe_code)]

pub mod descriptors;
#[cfg(feature = "http")]
mod http;
mod listener;
#[cfg(feature = "http")]
mod patient_writer;
mod table;
#[cfg(feature = "http")]
mod unix;

#[cfg(feature = "http")]
pub use http::serve_http;
pub use listener::BoundedListener;
pub use table::{ConnectionBounds, ConnectionTable, TableFull, TrackedConnection};
#[cfg(feature = "http")]
pub use unix::{bind_private, serve_unix};
