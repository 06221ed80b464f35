//! One question, as a row.

use std::time::Duration;

use hermetic_types::{ConversationKey, RequestId, Timestamp};
use serde::Serialize;

use crate::MessageRow;
use crate::database::{DatabaseError, DatabaseRow};

#[derive(Clone, Debug)]
pub struct NewRequest<'a> {
    pub subject: StoredSubject,
    pub conversation: &'a ConversationKey,
    pub message: Option<MessageRow>,
    /// Redacted.
    pub what: &'a str,
    pub fingerprint: &'a str,
    pub reasons: &'a [String],
    pub longest: ApprovalScope,
    pub asker: &'a str,
    pub asked_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApprovalRequest {
    pub id: RequestId,
    pub subject: StoredSubject,
    pub conversation: ConversationKey,
    #[serde(skip)]
    pub message: Option<MessageRow>,
    pub what: String,
    pub fingerprint: String,
    pub reasons: Vec<String>,
    /// How long a yes can hold at most; one for longer counts for this long.
    pub longest: ApprovalScope,
    pub asker: String,
    pub asked_at: Timestamp,
    pub expires_at: Timestamp,
    pub state: RequestState,
    pub scope: Option<ApprovalScope>,
    pub answered_by: Option<String>,
    pub via: Option<String>,
    pub reason: Option<String>,
    pub answered_at: Option<Timestamp>,
    #[serde(skip)]
    pub spent: bool,
}

/// What a person says, and who and how.
#[derive(Clone, Copy, Debug)]
pub struct RequestReply<'a> {
    pub given: GivenAnswer,
    pub by: &'a str,
    pub via: &'a str,
    pub reason: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenAnswer {
    Yes(ApprovalScope),
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoredSubject {
    Command,
    Host,
    /// What somebody else's agent asks; a courtesy, and no boundary.
    Agent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestState {
    Pending,
    Approved,
    Denied,
    Expired,
    Withdrawn,
}

/// How long a yes holds, the shortest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    Once,
    TenMinutes,
    Session,
    /// A rule that somebody keeps; here it counts for the session.
    Always,
}

impl StoredSubject {
    /// Those that have a name of their own in the column.
    pub(super) const ALL: [Self; 2] = [Self::Command, Self::Host];
    /// What stands in the column beside, for the one that has none.
    pub(super) const ABOUT_AGENT: &'static str = "agent";

    pub fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Host => "host",
            Self::Agent => Self::ABOUT_AGENT,
        }
    }

    /// What stands in the column, which takes two names.
    pub(super) fn column(self) -> &'static str {
        match self {
            Self::Command | Self::Agent => Self::Command.name(),
            Self::Host => Self::Host.name(),
        }
    }

    pub(super) fn about(self) -> Option<&'static str> {
        (self == Self::Agent).then_some(Self::ABOUT_AGENT)
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.name() == name)
    }
}

impl RequestState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [
            Self::Pending,
            Self::Approved,
            Self::Denied,
            Self::Expired,
            Self::Withdrawn,
        ]
        .into_iter()
        .find(|state| state.name() == name)
    }
}

impl ApprovalScope {
    pub const ALL: [Self; 4] = [Self::Once, Self::TenMinutes, Self::Session, Self::Always];
    pub const TEN_MINUTES: Duration = Duration::from_secs(600);

    pub const fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::TenMinutes => "ten_minutes",
            Self::Session => "session",
            Self::Always => "always",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// When a grant of this scope ends: `Some(None)` is with the conversation.
    pub(super) fn grant(self, subject: StoredSubject, now: Timestamp) -> Option<Option<Timestamp>> {
        match (self, subject) {
            (Self::Once, _) => None,
            (Self::TenMinutes, _) => Some(Some(now.plus(Self::TEN_MINUTES))),
            // A host gets a rule instead, and whoever takes that back means it.
            (Self::Always, StoredSubject::Host) => None,
            (Self::Session | Self::Always, _) => Some(None),
        }
    }
}

impl GivenAnswer {
    /// A yes for longer than that counts for that long.
    pub(super) fn at_most(self, longest: ApprovalScope) -> Self {
        match self {
            Self::Yes(scope) => Self::Yes(scope.min(longest)),
            Self::No => Self::No,
        }
    }

    pub(super) fn state(self) -> RequestState {
        match self {
            Self::Yes(_) => RequestState::Approved,
            Self::No => RequestState::Denied,
        }
    }

    pub(super) fn scope(self) -> Option<ApprovalScope> {
        match self {
            Self::Yes(scope) => Some(scope),
            Self::No => None,
        }
    }
}

pub(crate) fn request(row: &DatabaseRow) -> Result<ApprovalRequest, DatabaseError> {
    let reasons: &str = row.get("reasons")?;
    Ok(ApprovalRequest {
        id: row.parsed("id", |id| id.parse().ok())?,
        subject: match row.get::<Option<String>>("about")?.as_deref() {
            Some(StoredSubject::ABOUT_AGENT) => StoredSubject::Agent,
            _ => row.parsed("subject", StoredSubject::named)?,
        },
        conversation: ConversationKey::new(row.get::<String>("conversation")?),
        message: row.get::<Option<i64>>("message")?.map(MessageRow),
        what: row.get("what")?,
        fingerprint: row.get("fingerprint")?,
        reasons: serde_json::from_str(reasons).unwrap_or_default(),
        longest: row.parsed("longest", ApprovalScope::named)?,
        asker: row.get("asker")?,
        asked_at: row.moment("asked_at")?,
        expires_at: row.moment("expires_at")?,
        state: row.parsed("state", RequestState::named)?,
        scope: row.maybe_parsed("scope", ApprovalScope::named)?,
        answered_by: row.get("answered_by")?,
        via: row.get("via")?,
        reason: row.get("reason")?,
        answered_at: row.maybe_moment("answered_at")?,
        spent: row.maybe_moment("spent_at")?.is_some(),
    })
}
