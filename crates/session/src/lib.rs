//! One conversation, one sandbox.
//!
//! A sandbox is made at a conversation's first tool call, kept while it is used, stopped or
//! destroyed when it has been idle for its lifetime, and brought back by the next call. The ledger
//! names it before it exists, so a crash at any instruction leaves a row that [`Sandboxes::settle`]
//! deals with at the next start.
//!
//! - [`Sandboxes::lease`] is the way in; a [`SandboxLease`] keeps a sandbox from being let go.
//! - [`EgressPort`] is a sandbox's way out, as long as the sandbox is reached.
//! - [`SetAside`] are kept files that the configuration of today does not use.
//! - [`Sandboxes::reap`] is the reaper: idle sandboxes, and destroys that have to be tried
//!   again.
//!
//! What others await here is boxed, so that they do not each compile everything that is in it: a future is
//! compiled by whoever awaits it.

#![forbid(unsafe_code)]

mod aside;
mod backend_health;
mod census;
mod disk_guard;
mod egress_port;
mod errors;
mod holding;
mod lease;
mod leaving;
mod living;
mod making;
mod metrics;
mod orphaned_creates;
mod outgoing_day;
mod plan;
mod pool;
mod reaper;
mod room;
mod sandboxes;
mod settle;
mod slot;
mod spending;
mod unfinished_ends;

pub use aside::SetAside;
pub use disk_guard::{DiskBounds, DiskGuard, DiskTenant, DiskTenants, UnknownTenants};
pub use egress_port::{EgressPort, PROXY_PORT};
pub use errors::{LeaseError, LetGoError};
pub use lease::SandboxLease;
pub use metrics::SandboxMetrics;
pub use outgoing_day::{OutgoingDay, OutgoingLift, OutgoingLimits, OutgoingScope, OutgoingSum};
pub use plan::{InstalledMounts, SandboxPlan};
pub use sandboxes::Sandboxes;
pub use settle::{PROOF_CONVERSATION, SettleError, SettleReport};
pub use slot::SandboxHolder;
pub use spending::{SharedBudget, SpendingBook};
