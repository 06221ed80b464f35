//! What is kept of the chat, and how a row becomes one of it.

use hermetic_types::Timestamp;

use crate::database::{DatabaseError, DatabaseRow};

/// One conversation of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserConversation {
    pub id: i64,
    /// How it began; empty before anything was said.
    pub title: String,
    pub opened_at: Timestamp,
    pub said_at: Timestamp,
}

/// One message, of the person or of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserMessage {
    pub id: i64,
    pub state: BrowserMessageState,
    pub text: String,
    /// As whoever sent it wrote them down; empty for none.
    pub buttons: String,
    /// What came of a press.
    pub notice: Option<String>,
    pub said_at: Timestamp,
    pub files: Vec<BrowserFile>,
}

/// How far a message got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrowserMessageState {
    /// The person said it, and the gateway has not taken it yet.
    Waiting,
    /// The person said it, and the gateway has it.
    Taken,
    /// The person said it, and may not.
    TurnedAway,
    /// We said it.
    Shown,
}

/// A file without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserFile {
    pub id: i64,
    pub name: String,
    pub mime: Option<String>,
    pub size: u64,
}

/// Something that is to be said.
#[derive(Clone, Debug)]
pub struct NewBrowserMessage {
    pub conversation: i64,
    pub text: String,
    /// Two messages with the same one are one.
    pub key: Option<String>,
    pub files: Vec<NewBrowserFile>,
}

/// A file with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBrowserFile {
    pub name: String,
    pub mime: Option<String>,
    pub bytes: Vec<u8>,
}

/// What came of writing down what a person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SaidOutcome {
    Written(i64),
    /// It was there already.
    Before(i64),
    /// Something else was said under the same key.
    Another(i64),
    /// That person has no such conversation.
    NoConversation,
    /// It holds as many messages as one may.
    Full,
}

/// A message that the gateway has not taken yet, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingMessage {
    pub person: String,
    pub conversation: i64,
    /// Under which it was said.
    pub key: Option<String>,
    pub message: BrowserMessage,
}

impl BrowserMessageState {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Taken => "taken",
            Self::TurnedAway => "turned_away",
            Self::Shown => "shown",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Waiting, Self::Taken, Self::TurnedAway, Self::Shown]
            .into_iter()
            .find(|state| state.name() == text)
    }
}

pub(super) fn conversation_of(row: &DatabaseRow) -> Result<BrowserConversation, DatabaseError> {
    Ok(BrowserConversation {
        id: row.get("id")?,
        title: row.get("title")?,
        opened_at: row.moment("opened_at")?,
        said_at: row.moment("said_at")?,
    })
}

pub(super) fn message_of(row: &DatabaseRow) -> Result<BrowserMessage, DatabaseError> {
    Ok(BrowserMessage {
        id: row.get("id")?,
        state: row.parsed("state", BrowserMessageState::parse)?,
        text: row.get("text")?,
        buttons: row.get("buttons")?,
        notice: row.get("notice")?,
        said_at: row.moment("said_at")?,
        files: Vec::new(),
    })
}

pub(super) fn waiting_of(row: &DatabaseRow) -> Result<WaitingMessage, DatabaseError> {
    Ok(WaitingMessage {
        person: row.get("person")?,
        conversation: row.get("conversation")?,
        key: row.get("send_key")?,
        message: message_of(row)?,
    })
}

pub(super) fn file_of(row: &DatabaseRow) -> Result<BrowserFile, DatabaseError> {
    let size: i64 = row.get("size")?;
    Ok(BrowserFile {
        id: row.get("id")?,
        name: row.get("name")?,
        mime: row.get("mime")?,
        size: size.unsigned_abs(),
    })
}
