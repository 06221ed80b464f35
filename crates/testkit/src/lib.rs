//! Stand-ins for the outside world. They listen on loopback only and end when dropped.

#![forbid(unsafe_code)]

pub mod model;
pub mod npm;
pub mod telegram;
pub mod traffic;
