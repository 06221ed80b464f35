//! Whole gateways, built from a configuration and held in a test.
//!
//! Nothing here starts the program: what people see of a gateway is the same, and a story takes
//! milliseconds. Where a story needs real sandboxes, and the machine has none, it says that it is skipped.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]
#![forbid(unsafe_code)]

mod accounts;
mod afresh;
mod agents;
mod answers;
mod approvals;
mod attacks;
mod budgets;
mod configurations;
mod dashboard;
mod delegation;
mod delivery;
mod discord;
mod doors;
mod egress;
mod files;
mod gate;
#[path = "../../../hermetic/tests/main/half_open.rs"]
mod half_open;
mod happy_path;
mod killed;
mod lab;
mod long;
mod matrix;
mod matrix_app;
mod memory;
mod metrics;
mod pairing;
mod parity;
mod places;
mod processes;
mod restarts;
mod schedules;
#[cfg(feature = "matrix-e2ee")]
mod sealed_matrix;
mod signal;
mod slack;
mod small_tools;
mod smart;
mod streaming;
mod traces;
mod whatsapp;
