//! One question, as a row.

use std::time::Duration;

use hermetic_types::{ConversationKey, RequestId, Timestamp};
use serde::Serialize;

use crate::MessageRow;
use crate::database::{DatabaseError, Row};

#[derive(Clone, Debug)]
pub struct NewRequest<'a> {
    pub subject: Subject,
    pub conversation: &'a ConversationKey,
    pub message: Option<MessageRow>,
    /// Redacted.
    pub what: &'a str,
    pub fingerprint: &'a str,
    pub reasons: &'a [String],
    pub longest: Scope,
    pub asker: &'a str,
    pub asked_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    pub id: RequestId,
    pub subject: Subject,
    pub conversation: ConversationKey,
    #[serde(skip)]
    pub message: Option<MessageRow>,
    pub what: String,
    pub fingerprint: String,
    pub reasons: Vec<String>,
    /// How long a yes can hold at most; one for longer counts for this long.
    pub longest: Scope,
    pub asker: String,
    pub asked_at: Timestamp,
    pub expires_at: Timestamp,
    pub state: State,
    pub scope: Option<Scope>,
    pub answered_by: Option<String>,
    pub via: Option<String>,
    pub reason: Option<String>,
    pub answered_at: Option<Timestamp>,
    #[serde(skip)]
    pub spent: bool,
}

/// What a person says, and who and how.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    pub given: Given,
    pub by: &'a str,
    pub via: &'a str,
    pub reason: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    Yes(Scope),
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    Command,
    Host,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Pending,
    Approved,
    Denied,
    Expired,
    Withdrawn,
}

/// How long a yes holds, the shortest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Once,
    TenMinutes,
    Session,
    /// A rule that somebody keeps; here it counts for the session.
    Always,
}

impl Subject {
    pub(super) const ALL: [Self; 2] = [Self::Command, Self::Host];

    pub fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Host => "host",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.name() == name)
    }
}

impl State {
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

impl Scope {
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
    pub(super) fn grant(self, subject: Subject, now: Timestamp) -> Option<Option<Timestamp>> {
        match (self, subject) {
            (Self::Once, _) => None,
            (Self::TenMinutes, _) => Some(Some(now.plus(Self::TEN_MINUTES))),
            // A host gets a rule instead, and whoever takes that back means it.
            (Self::Always, Subject::Host) => None,
            (Self::Session | Self::Always, _) => Some(None),
        }
    }
}

impl Given {
    /// A yes for longer than that counts for that long.
    pub(super) fn at_most(self, longest: Scope) -> Self {
        match self {
            Self::Yes(scope) => Self::Yes(scope.min(longest)),
            Self::No => Self::No,
        }
    }

    pub(super) fn state(self) -> State {
        match self {
            Self::Yes(_) => State::Approved,
            Self::No => State::Denied,
        }
    }

    pub(super) fn scope(self) -> Option<Scope> {
        match self {
            Self::Yes(scope) => Some(scope),
            Self::No => None,
        }
    }
}

pub(super) fn request(row: &Row) -> Result<Request, DatabaseError> {
    let reasons: &str = row.get("reasons")?;
    Ok(Request {
        id: row.parsed("id", |id| id.parse().ok())?,
        subject: row.parsed("subject", Subject::named)?,
        conversation: ConversationKey::new(row.get::<String>("conversation")?),
        message: row.get::<Option<i64>>("message")?.map(MessageRow),
        what: row.get("what")?,
        fingerprint: row.get("fingerprint")?,
        reasons: serde_json::from_str(reasons).unwrap_or_default(),
        longest: row.parsed("longest", Scope::named)?,
        asker: row.get("asker")?,
        asked_at: row.moment("asked_at")?,
        expires_at: row.moment("expires_at")?,
        state: row.parsed("state", State::named)?,
        scope: row.maybe_parsed("scope", Scope::named)?,
        answered_by: row.get("answered_by")?,
        via: row.get("via")?,
        reason: row.get("reason")?,
        answered_at: row.maybe_moment("answered_at")?,
        spent: row.maybe_moment("spent_at")?.is_some(),
    })
}
