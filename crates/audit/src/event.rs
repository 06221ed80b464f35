//! What is worth writing down.
//!
//! Ids are written as they are, because they are nobody's secret and bounded by their types. All
//! other text is [`AuditText`].

use hermetic_types::{BackendKind, ConversationKey, Platform, UserId};
use serde::Serialize;

use crate::AuditText;
use crate::digest::RecordDigest;
use crate::witness::ChainName;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AuditEvent {
    /// Somebody who may speak said something.
    Access {
        conversation: ConversationKey,
        platform: Platform,
        user: UserId,
        role: AuditText,
        /// The rule that opened the door.
        grounds: AuditText,
    },
    Pairing {
        platform: Platform,
        act: PairingEvent,
        user: AuditText,
        by: AuditText,
    },
    /// A command was judged. What may run is written down before it runs.
    Command {
        conversation: ConversationKey,
        backend: BackendKind,
        command: AuditText,
        decision: CommandDecision,
        grounds: AuditText,
    },
    /// A person is asked.
    Asked {
        request: AuditText,
        conversation: ConversationKey,
        subject: ApprovalSubject,
        what: AuditText,
        reasons: AuditText,
        by: AuditText,
    },
    /// What came of it. Written before anything runs that it allows.
    Answered {
        request: AuditText,
        conversation: ConversationKey,
        subject: ApprovalSubject,
        what: AuditText,
        answer: ApprovalAnswer,
        /// How long a yes holds.
        scope: AuditText,
        by: AuditText,
        /// A button, a command in a chat, the command line.
        via: AuditText,
        reason: AuditText,
    },
    /// The operator's rules were changed through this program.
    Rule {
        act: RuleChange,
        rule: AuditText,
        by: AuditText,
    },
    /// What outlives a conversation was changed, or somebody is to decide about it.
    Memory {
        subject: MemorySubject,
        act: MemoryEvent,
        /// Whose it is.
        owner: AuditText,
        what: AuditText,
        by: AuditText,
    },
    /// Somebody did something by the dashboard. Written before it is done.
    Dashboard {
        /// `signed_in`, `stopped`, `destroyed` and the like.
        act: AuditText,
        /// The conversation, rule or person that it was done to.
        what: AuditText,
        by: AuditText,
        /// `operator` or `viewer`.
        role: AuditText,
    },
    /// What somebody else's agent says that it does. Its own word: nobody has seen it.
    AgentTool {
        conversation: ConversationKey,
        agent: AuditText,
        /// `execute`, `edit` and the like.
        tool: AuditText,
        what: AuditText,
        /// `begun`, `completed` or `failed`.
        state: AuditText,
    },
    /// Something became of a job on a schedule.
    Schedule {
        /// `made`, `run`, `missed`, `stopped` and the like.
        act: AuditText,
        job: AuditText,
        name: AuditText,
        /// Whose it is.
        person: AuditText,
    },
    Egress(EgressEvent),
    /// Where the chain of another gateway of this installation stood, by its own sealed word.
    Witnessed {
        chain: ChainName,
        /// The machine and home that it is of.
        place: AuditText,
        head: String,
        seal: RecordDigest,
    },
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
pub struct EgressEvent {
    pub conversation: ConversationKey,
    pub host: AuditText,
    pub port: u16,
    pub address: Option<std::net::SocketAddr>,
    /// CONNECT, plain HTTP, SOCKS, or with a credential put in.
    pub how: AuditText,
    pub rule: AuditText,
    /// `opened`, `closed` or `refused`, and why where there is a reason.
    pub verdict: AuditText,
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub milliseconds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PairingEvent {
    Offered,
    /// Somebody who may let people in typed a code. Whose it is, is known when it fits.
    Tried,
    Approved,
    Revoked,
    Cleared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemorySubject {
    Memory,
    Skill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryEvent {
    /// An agent changed it.
    Written,
    /// An agent wants it changed, and a person is to decide.
    Proposed,
    Approved,
    Rejected,
    /// A person changed it.
    Edited,
    /// A person removed it.
    Removed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandDecision {
    Run,
    /// The floor, or a rule of the operator.
    Refuse,
    /// Somebody was to be asked, and it came to no.
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalSubject {
    Command,
    Host,
    /// What somebody else's agent asked by itself.
    Agent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalAnswer {
    Approved,
    Denied,
    /// Nobody answered in time.
    Expired,
    /// Whoever asked did not wait any longer.
    Withdrawn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleChange {
    Added,
    Removed,
}
