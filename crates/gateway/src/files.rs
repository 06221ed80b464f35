//! Files both ways, through the conversation's workspace and never past it.

mod inbound;
mod outbound;

pub(crate) use outbound::{Answer, Outbound, without_tags};
