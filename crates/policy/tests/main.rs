//! What the policy promises, on commands we wrote ourselves.

#![expect(clippy::panic, reason = "a test fails by it")]

mod batches;
mod cases;
mod held_out;
mod order;
mod properties;
