//! Stand-ins for the outside world. They listen on loopback only and end when dropped.
//!
//! Within the process: [`chat::FakeChat`], [`backend::StandInBackend`], [`clock::ManualClock`] and
//! [`model::ScriptedModel`] take the places of a platform, a backend, the wall clock and a model. On the
//! wire: [`telegram::TelegramServer`] and [`model::ScriptedServer`] are spoken to as the real ones are.

#![forbid(unsafe_code)]

pub mod backend;
pub mod chat;
pub mod clock;
pub mod discord;
pub mod model;
pub mod npm;
pub mod telegram;
pub mod traffic;

/// Whether tests live through their long forms, as `cargo xtask test --long` has them do.
pub fn long() -> bool {
    std::env::var_os("HERMETIC_LONG").is_some_and(|set| set == "1")
}
