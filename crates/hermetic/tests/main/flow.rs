//! The whole flow with the real program: a message on Telegram, answered from its own sandbox.

mod answers;
mod approvals;
mod crash;
mod doors;
mod egress;
pub(crate) mod lab;
mod processes;
mod streaming;
