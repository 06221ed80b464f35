//! The tools over MCP, for any agent that speaks it.
//!
//! One client has one sandbox, made at its first call and gone when the client goes: its process over
//! stdio, its session over HTTP. The sandbox is tied to this process, so that nothing is left whatever
//! ends it. What a person has to allow is put to the person at the client, where the client can ask
//! ([`client_approvals`]); elsewhere it is refused.

#![forbid(unsafe_code)]

mod client;
mod client_approvals;
mod client_sandbox;
mod client_sandboxes;
mod http;
mod server_check;
mod stdio;

pub use client_sandboxes::{ClientLimits, ClientSandboxes};
pub use http::{HttpEndpoint, HttpEndpointError, over_http};
pub use server_check::check_servers;
pub use stdio::{StdioError, over_stdio};
