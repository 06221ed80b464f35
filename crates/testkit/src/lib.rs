//! Stand-ins for the outside world. They listen on loopback only and end when dropped.
//!
//! Within the process: [`chat::FakeChat`], [`backend::StandInBackend`], [`clock::ManualClock`] and
//! [`model::ScriptedModel`] take the places of a platform, a backend, the wall clock and a model. On the
//! wire: the servers in [`signal_server`], [`slack`], [`telegram`], [`whatsapp`] and [`model`] are spoken to
//! as the real ones are.

#![forbid(unsafe_code)]

pub mod acp;
pub mod backend;
pub mod chat;
pub mod chat_state;
pub mod clock;
pub mod discord;
pub mod full_disk;
pub mod matrix;
pub mod model;
pub mod npm;
pub mod pypi;
mod shared_folder;
pub mod signal_server;
pub mod slack;
pub mod telegram;
pub mod traffic;
pub mod whatsapp;

pub use hermetic_sandbox::conformance::long;
pub use shared_folder::SharedFolder;
