//! Stand-ins for the outside world. They listen on loopback only and end when dropped.

#![forbid(unsafe_code)]

pub mod model;
pub mod npm;
pub mod telegram;
pub mod traffic;

/// Whether tests live through their long forms, as `cargo xtask test --long` has them do.
pub fn long() -> bool {
    std::env::var_os("HERMETIC_LONG").is_some_and(|set| set == "1")
}
