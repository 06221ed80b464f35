//! The whole flow with the real program, where the program is the subject: kills, stops, disks, the command
//! line, and a happy path for each platform and backend. Other stories of the flow are in `crates/app/tests`.

mod answers;
pub(crate) mod approvals;
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
mod no_byte_left;
mod others;
mod places;
mod processes;
mod restarts;
mod soak;
mod streaming;
