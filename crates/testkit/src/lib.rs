//! Stand-ins for the outside world.

#![forbid(unsafe_code)]

pub mod model;
