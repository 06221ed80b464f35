//! Stand-ins that tests live on. Everything listens on loopback only and ends when dropped.

#![forbid(unsafe_code)]

pub mod telegram;
