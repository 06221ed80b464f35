//! What the policy promises, on commands we wrote ourselves.

#![expect(clippy::panic, reason = "a test fails by it")]

mod cases;
mod order;
mod properties;
