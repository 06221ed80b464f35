//! The contract every backend keeps.
//!
//! A backend only knows how to bring a sandbox into the world, reach its warden by one byte
//! stream, and see it out again. Everything else (commands, files, the tool socket, egress) goes
//! over that stream and is written once, here.

#![forbid(unsafe_code)]

mod backend;
#[cfg(feature = "conformance")]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "these are tests"
)]
pub mod conformance;
mod distant;
mod finished;
mod guarded;
pub mod host;
mod host_folders;
mod jitter;
mod label;
mod launch;
mod live_use;
mod output;
mod passing;
mod sandbox;
mod spec;
mod trial;

pub use backend::{
    Backend, BackendError, BackendReadiness, FoundSandbox, FoundState, LayerState, SealLayer,
    WardenLink,
};
pub use finished::{DroppedLink, FinishedCommand, OutputTerms, gather};
pub use hermetic_policy::OwnProgram;
pub use hermetic_warden::client::GreetError;
pub use host_folders::{can_be_exchanged, is_installed_program, risk_of_showing};
pub use jitter::{jittered, jittered_start};
pub use label::MakerState;
pub use launch::launch;
pub use live_use::{LiveUse, SandboxProcess};
pub use output::{HeadTail, OutputListener, OutputStream};
pub use passing::{CreateError, PassingSandbox};
pub use sandbox::{CommandBond, RunError, Sandbox};
pub use spec::{
    HostMount, MountMode, NetworkMode, SandboxLifeline, SandboxPersistence, SandboxSpec, SystemView,
};
pub use trial::{TrialError, try_command, try_to_say};
