//! The promises of `SPECIFICATION.md` that no single crate can keep, one module for each.

#![forbid(unsafe_code)]

mod arrows;
mod clocks;
mod documents;
mod functions;
mod logs;
mod manifests;
mod proofs;
