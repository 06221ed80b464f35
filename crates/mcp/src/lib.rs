//! The tools over MCP, for any agent that speaks it.
//!
//! One client has one sandbox, made at its first call and gone when the client goes: its process over
//! stdio, its session over HTTP. The sandbox is tied to this process, so that nothing is left whatever
//! ends it. What a person has to allow is put to the person at the client, where the client can ask
//! ([`asking`]); elsewhere it is refused.

#![forbid(unsafe_code)]

mod asking;
mod client;
mod house;
mod http;
mod room;
mod stdio;

pub use house::{Bounds, House};
pub use http::{Door, DoorError, over_http};
pub use stdio::{StdioError, over_stdio};
