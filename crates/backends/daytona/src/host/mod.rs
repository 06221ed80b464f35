//! The side in the gateway.

mod birth;
mod daytona;
mod death;
mod label;
mod link;
mod place;
mod readiness;
mod service;
mod shapes;
mod size;
mod state;
mod terminal;
mod toolbox;
mod trouble;
mod wire;

pub use daytona::{DaytonaBackend, DaytonaConfig, DaytonaTimeouts};
pub use size::DiskWish;
