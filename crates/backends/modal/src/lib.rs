//! Sandboxes at Modal, over its public gRPC protocol.
//!
//! A sandbox there has no network, a bound on its life from its first second, and our warden as the
//! program it was made with: the warden comes in by that program's stdin, and when it ends, for
//! want of a gateway or of time, the sandbox ends and costs nothing more. The link is one exec of
//! `warden connect`, whose two directions are picked up again where a connection broke.
//!
//! Modal is the only memory of what runs: tags say whose a sandbox is and for which conversation,
//! and what carries no tag of this installation is never touched. Files of a stopped sandbox are a
//! snapshot, whose name is kept in `modal_snapshots.json` as Hermes keeps it.

#![forbid(unsafe_code)]

mod birth;
mod control;
mod credentials;
mod death;
mod find;
mod image;
mod label;
mod link;
mod modal;
mod patience;
mod readiness;
mod router;
mod service;
mod shape;
mod snapshots;
mod token;
mod trouble;
pub mod wire;

pub use credentials::{CredentialsError, ModalCredentials};
pub use modal::{ModalBackend, ModalConfig};
pub use service::{ControlAddress, ControlAddressError};
pub use shape::{OutboundAccess, OutboundError};
