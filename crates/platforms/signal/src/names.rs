//! Names of messages.
//!
//! Signal names a message by who wrote it and when, by their own clock. One of ours is written as the
//! moment alone.

use hermetic_types::MessageId;

use crate::envelope::SignalAddress;

/// What a message's name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageName {
    pub(crate) timestamp: u64,
    /// Nobody, if it is ours.
    pub(crate) author: Option<String>,
}

impl MessageName {
    pub(crate) fn read(id: &MessageId) -> Option<Self> {
        let (timestamp, author) = match id.as_str().split_once('/') {
            Some((timestamp, author)) => (timestamp, Some(author.to_owned())),
            None => (id.as_str(), None),
        };
        Some(Self {
            timestamp: timestamp.parse().ok()?,
            author,
        })
    }
}

/// The name of what somebody wrote at that moment, which is the name of that event, too.
pub(crate) fn theirs(timestamp: u64, author: &SignalAddress) -> String {
    format!("{timestamp}/{}", author.name())
}
