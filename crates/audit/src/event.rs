//! What is worth writing down.
//!
//! Ids are written as they are, because they are nobody's secret and bounded by their types. All
//! other text is [`Words`].

use hermetic_types::{BackendKind, ConversationKey, Platform, UserId};
use serde::Serialize;

use crate::Words;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// Somebody who may speak said something.
    Access {
        conversation: ConversationKey,
        platform: Platform,
        user: UserId,
        role: Words,
        /// The rule that opened the door.
        grounds: Words,
    },
    Pairing {
        platform: Platform,
        act: Pairing,
        user: Words,
        by: Words,
    },
    /// A command was judged. What may run is written down before it runs.
    Command {
        conversation: ConversationKey,
        backend: BackendKind,
        command: Words,
        decision: Decision,
        grounds: Words,
    },
    /// A person is asked.
    Asked {
        request: Words,
        conversation: ConversationKey,
        subject: Subject,
        what: Words,
        reasons: Words,
        by: Words,
    },
    /// What came of it. Written before anything runs that it allows.
    Answered {
        request: Words,
        conversation: ConversationKey,
        subject: Subject,
        what: Words,
        answer: Answer,
        /// How long a yes holds.
        scope: Words,
        by: Words,
        /// A button, a command in a chat, the command line.
        via: Words,
        reason: Words,
    },
    /// The operator's rules were changed through this program.
    Rule {
        act: Act,
        rule: Words,
        by: Words,
    },
    Egress(Egress),
    /// From here on each record carries a seal by this key; those before have none.
    Sealed {
        key: String,
    },
    /// The record does not end where it was noted to: lines were cut off, or lost in a power cut, or the
    /// note was taken away.
    Resumed {
        found: String,
        noted: String,
    },
    /// A write before this one was cut off; these are its bytes, which are no record.
    Mended {
        bytes: u64,
        sha256: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Egress {
    pub conversation: ConversationKey,
    pub host: Words,
    pub port: u16,
    pub address: Option<std::net::SocketAddr>,
    /// CONNECT, plain HTTP, SOCKS, or with a credential put in.
    pub how: Words,
    pub rule: Words,
    /// `opened`, `closed` or `refused`, and why where there is a reason.
    pub verdict: Words,
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub milliseconds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    Offered,
    Approved,
    Revoked,
    Cleared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Run,
    /// The floor, or a rule of the operator.
    Refuse,
    /// Somebody was to be asked, and it came to no.
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    Command,
    Host,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Approved,
    Denied,
    /// Nobody answered in time.
    Expired,
    /// Whoever asked did not wait any longer.
    Withdrawn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Added,
    Removed,
}
