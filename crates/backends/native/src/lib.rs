//! Hermetic's own sandbox: namespaces, seccomp, Landlock, cgroups. As root or as a plain user.
//!
//! Two programs share this crate. The gateway (`host`) decides: it names the sandbox in its state
//! folder, writes down a [`plan::CagePlan`], starts the embedded program and confirms or kills. The
//! fresh process (`cage`) carries the plan out to the letter, seals itself, and becomes the warden.
//! They talk over the [`control_socket`], one socket whose end in the gateway closes when the gateway dies.

#![deny(unsafe_code)]

#[cfg(feature = "cage")]
pub mod cage;
mod control_socket;
#[cfg(feature = "host")]
mod host;
mod plan;

#[cfg(feature = "host")]
pub use host::{
    CONTAINED_CAGE, ContainerLayout, EarlyStart, EndReason, KeptLimits, NativeBackend,
    NativeConfig, OuterContainer, PendingHeadStart, RequiredLayer, TotalLimits,
};
