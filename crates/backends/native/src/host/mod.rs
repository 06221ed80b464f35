//! The side in the gateway: names, plans, starts, finds again and sees out.

mod birth;
mod death;
mod disk;
mod disk_use;
mod etc;
mod folder;
mod groups;
mod house;
mod housing;
mod kin;
mod memory;
mod mounts;
mod native;
mod planning;
mod readiness;
mod record;
mod remedy;
#[allow(unsafe_code, reason = "registering a descriptor with the runtime")]
mod sys;
mod waiting;
mod watch;

pub use housing::{HOUSED, Housing, Keeps, Site};
pub use native::{Config, Demand, Native};
pub use watch::Ended;
