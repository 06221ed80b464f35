//! Attacks a sandbox from inside, so that its owner sees what holds.
//!
//! The trying happens in the one program that every sandbox has (`inside`), so it needs nothing of an
//! image, and takes the way that every command takes. Outside there are [`AttackOrder`]s to give and
//! [`AttackFinding`]s to read, which are only what a sandbox said: what can be seen from outside, such as
//! whether a connection arrived, is for the caller to see.
//!
//! Nothing is tried that would harm a host if it succeeded.

#![forbid(unsafe_code)]

mod finding;
#[cfg(feature = "inside")]
mod inside;
mod order;

pub use finding::{AttackFinding, AttemptState};
#[cfg(feature = "inside")]
pub use inside::{KnockedCall, main};
pub use order::{AttackOrder, BaitTarget};

/// The program's first word that means this.
pub const ROLE: &str = "attack";
