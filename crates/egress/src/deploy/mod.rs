//! Texts for whole deployments in containers: compose files and a Squid allowlist. Pure functions.

mod compose;
mod dockerfile;
mod squid;

pub use compose::{ComposeFile, ComposeVariant};
pub use dockerfile::dockerfile;
pub use squid::{SquidError, squid_allowlist};
