//! The side in the gateway: names, plans, starts, finds again and sees out.

mod children;
mod container_processes;
mod disk;
mod disk_limit;
mod disk_use;
mod etc;
mod folder;
mod groups;
mod head_start;
mod inner_death;
mod kernel;
mod launch;
mod live_use;
mod memory;
mod mounts;
mod native;
mod outer_container;
mod placement;
mod planning;
mod program_file;
mod quota;
mod readiness;
mod record;
mod remedy;
mod scope;
mod stall;
mod surroundings;
#[allow(
    unsafe_code,
    reason = "registering a descriptor with the runtime, quotas, and a mount"
)]
mod sys;
mod tables;
mod teardown;
mod total;
mod waiting_cage;
mod watch;
mod writer;

pub use head_start::PendingHeadStart;
pub use native::{NativeBackend, NativeConfig, RequiredLayer};
pub use outer_container::{CONTAINED_CAGE, ContainerLayout, KeptLimits, OuterContainer};
pub use total::TotalLimits;
pub use waiting_cage::EarlyStart;
pub use watch::EndReason;
