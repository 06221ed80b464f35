//! Sandboxes as Apptainer or Singularity instances, each with a cage of ours inside.
//!
//! The runtime brings what it is good at: an image as the root, without a daemon, for root and for
//! plain users of shared machines. It leaves open what we do not: no filter for system calls, the
//! host's knobs under `/proc` within root's reach, whatever an image's own scripts do at the start.
//! So an instance runs one program, ours, and nothing of the image before it; that one builds the
//! native backend's cage inside, and the sandbox lives in there. See [`hermetic_native::OuterContainer`].
//!
//! Instances are kept in a list of our own, under names that say whose they are.

#![forbid(unsafe_code)]

mod build;
mod image;
mod instance;
mod leftovers;
mod readiness;
mod runtime;
mod singularity;
mod stage;

pub use image::{BuildListener, BuildProgress};
pub use runtime::ApptainerRuntime;
pub use singularity::{SingularityBackend, SingularityConfig};
