//! The side in the gateway: names, plans, starts, finds again and sees out.

mod birth;
mod death;
mod disk;
mod disk_limit;
mod disk_use;
mod etc;
mod folder;
mod groups;
mod house;
mod housing;
mod inner_death;
mod kernel;
mod kin;
mod memory;
mod mounts;
mod native;
mod placement;
mod planning;
mod quota;
mod readiness;
mod record;
mod remedy;
mod scope;
#[allow(
    unsafe_code,
    reason = "registering a descriptor with the runtime, and quotas"
)]
mod sys;
mod tables;
mod total;
mod waiting;
mod watch;
mod writer;

pub use housing::{HOUSED, Housing, Keeps, Site};
pub use native::{Config, Demand, Native};
pub use total::Total;
pub use waiting::EarlyStart;
pub use watch::Ended;
