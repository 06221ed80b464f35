//! Files both ways, through the conversation's workspace and never past it.

mod inbound;
mod outbound;

#[cfg(test)]
pub(crate) use outbound::FetchError;
pub(crate) use outbound::{Answer, FileSource, Outbound, without_tags};
