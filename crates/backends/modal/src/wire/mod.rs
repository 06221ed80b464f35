//! The part of Modal's protocol that is used here, written down by hand: of each message the fields
//! we send or read, with their numbers. What else a message holds is left out when sending and
//! skipped when reading, as protobuf allows.
//!
//! Two services speak it. The control plane makes, finds and ends sandboxes; a router on the machine
//! where one runs starts commands in it and carries their bytes.

mod control;
mod router;

use prost::Message;

pub use control::*;
pub use router::*;

/// A question, and who answers it how.
pub trait RpcCall: Message + Clone + 'static {
    type Answer: Message + Default + 'static;
    const PATH: &'static str;
    /// Whether the control plane wants the short-lived token besides the long-lived one.
    const NEEDS_TOKEN: bool = false;
}

macro_rules! calls {
    ($service:literal, $needs_token:literal; $($question:ident $method:literal -> $answer:ident)*) => {
        $(impl $crate::wire::RpcCall for $question {
            type Answer = $answer;
            const PATH: &'static str = concat!("/", $service, "/", $method);
            const NEEDS_TOKEN: bool = $needs_token;
        })*
    };
}
use calls;
