//! The tools over MCP, for any agent that speaks it.
//!
//! One client has one sandbox, made at its first call and gone when the client goes: its process over
//! stdio, its session over HTTP. The sandbox is tied to this process, so that nothing is left whatever
//! ends it. There is nobody here who could be asked, so what would be asked about is refused; a client
//! that answers for its user is not that user.

#![forbid(unsafe_code)]

mod client;
mod house;
mod http;
mod room;
mod stdio;

pub use house::House;
pub use http::{Door, DoorError, over_http};
pub use stdio::{StdioError, over_stdio};
