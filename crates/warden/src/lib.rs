//! The small program inside every sandbox, and the protocol to it.
