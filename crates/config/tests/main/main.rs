//! The configuration as its users meet it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod acp_agents;
mod editor;
mod lab;
mod malformed;
mod mcp_servers;
mod real_world;
mod resolution;
mod robustness;
mod sources;
