//! The whole flow with the real program: a message on Telegram, answered from its own sandbox.

mod answers;
mod approvals;
mod attacks;
mod clerk;
mod clock;
mod commits;
mod container;
mod crash;
mod doors;
mod egress;
mod faulty_disk;
mod files;
mod full_disk;
mod gate;
mod hosts;
mod instance;
pub(crate) mod lab;
mod others;
mod places;
mod processes;
mod restarts;
mod soak;
mod streaming;
