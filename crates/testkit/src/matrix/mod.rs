//! People on a homeserver, and what can go wrong on the way to it.
//!
//! The homeserver itself is Synapse ([`crate::pypi::Synapse`]). What it does not do by itself, a
//! [`MatrixProxy`] in front of it does.

mod person;
mod proxy;
#[cfg(feature = "matrix-e2ee")]
mod sealed_person;

pub use person::{MatrixPerson, ShownMessage};
pub use proxy::{MatrixProxy, ProxyFault};
#[cfg(feature = "matrix-e2ee")]
pub use sealed_person::SealedPerson;
