//! The unsafe code of serving: starting processes, signals by descriptor, and the few calls that have no
//! safe wrapper.

#![allow(
    unsafe_code,
    reason = "this folder is where the crate's unsafe code lives"
)]

mod keeper;
mod own;
mod signals;
mod watch;

pub(crate) use keeper::{KeeperReport, StartPlan, StartStage, start};
pub(crate) use own::{adopt, uncatch_signals};
pub(crate) use signals::{ArrivedSignal, SignalReader};
pub(crate) use watch::{watch, watch_signals};
