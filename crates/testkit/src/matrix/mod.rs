//! People on a homeserver, and what can go wrong on the way to it.
//!
//! The homeserver itself is Synapse ([`crate::pypi::Synapse`]). What it does not do by itself, a
//! [`MatrixProxy`] in front of it does.

mod person;
mod proxy;

pub use person::{MatrixPerson, ShownMessage};
pub use proxy::{MatrixProxy, ProxyFault};
