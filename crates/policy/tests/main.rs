//! What the policy promises, on commands we wrote ourselves.

mod cases;
mod order;
mod properties;
