//! What a person says and presses, on its way in.

use std::time::Duration;

use hermetic_chat::{Receipt, Signature};
use hermetic_store::{NewBrowserFile, NewBrowserMessage, SaidOutcome, StoreError};
use hermetic_types::{ButtonPress, InvalidName, MessageId, RoleId, RunId, UpdateId, UserId};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::handover::{HandoverEntry, sender};
use crate::{BrowserAdapter, MOST_FILE_BYTES, MOST_FILES, MOST_TEXT_BYTES, StoredButton};

/// What somebody was made who signed in under this key of the dashboard's, named by its fingerprint: with
/// another key they are nobody.
pub fn operator_role(pass: &str) -> Result<RoleId, InvalidName> {
    RoleId::new(format!("dashboard-operator:{pass}"))
}

/// Conversations of one person.
pub const MOST_CONVERSATIONS: i64 = 200;

/// Bytes of files, of one person and of everybody.
const MOST_KEPT: (u64, u64) = (256 << 20, 1 << 30);

/// How long whoever speaks waits to hear that the gateway has it. It is on the disk by then in any case.
const TAKING: Duration = Duration::from_secs(5);

/// Something that a person says.
#[derive(Clone, Debug)]
pub struct BrowserWords {
    pub person: UserId,
    pub conversation: i64,
    pub text: String,
    /// Of the form: the same one twice is one message.
    pub once: String,
    /// The fingerprint of the key under which they signed in. Nothing for those whom a list names.
    pub pass: Option<String>,
    pub files: Vec<NewBrowserFile>,
}

/// A button that a person presses.
#[derive(Clone, Debug)]
pub struct BrowserPress {
    pub person: UserId,
    pub conversation: i64,
    pub message: i64,
    pub data: String,
    /// As of [`BrowserWords`].
    pub pass: Option<String>,
}

#[derive(Debug, Error)]
pub enum SayRefused {
    #[error("there is nothing to send")]
    Empty,
    #[error("too long: at most {MOST_TEXT_BYTES} bytes in one message; send more as a file")]
    TooLong,
    #[error("at most {MOST_FILES} files of {} MB each go with one message", MOST_FILE_BYTES >> 20)]
    Files,
    #[error(
        "the files of your conversations fill the room there is for them; delete a conversation"
    )]
    NoRoom,
    #[error("there is no such conversation of yours")]
    NoConversation,
    #[error("this conversation is full: open another one")]
    Full,
    #[error(
        "this form was sent already, and what it says now is another message: send it once more"
    )]
    Another,
    #[error("you may not speak here")]
    TurnedAway,
    #[error("it could not be stored, so it was not sent")]
    Store(#[from] StoreError),
}

#[derive(Debug, Error)]
pub enum PressRefused {
    #[error("there is no such button any more")]
    NoButton,
    #[error("it was not taken; press again")]
    NotTaken,
    #[error("it may have been taken; look before you press again")]
    MayBeTaken,
    #[error("you may not press this")]
    TurnedAway,
    #[error("the store does not answer; press again")]
    Store(#[from] StoreError),
}

impl BrowserAdapter {
    /// Takes what a person says. When this ends well it is on the disk, and as a rule the gateway has
    /// signed for it; what takes longer than a moment is handed over as soon as it can be.
    pub async fn say(&self, words: BrowserWords) -> Result<(), SayRefused> {
        let person = words.person.as_str().to_owned();
        let said = self.checked(words).await?;
        // On the disk before it is handed over: what happens to us afterwards, it is found there by
        // the next start.
        let id = match self.rows.say(&person, &said, self.clock.now()).await? {
            SaidOutcome::Written(id) => id,
            // The same form sent twice, by a finger or by a browser that tries again: it was taken
            // the first time.
            SaidOutcome::Before(_) => return Ok(()),
            SaidOutcome::Another(_) => return Err(SayRefused::Another),
            SaidOutcome::NoConversation => return Err(SayRefused::NoConversation),
            SaidOutcome::Full => return Err(SayRefused::Full),
        };
        self.changed();
        let (told, heard) = oneshot::channel();
        self.handover.push(HandoverEntry::Message(id, Some(told)));
        match timeout(TAKING, heard).await {
            Ok(Ok(Signature::TurnedAway)) => Err(SayRefused::TurnedAway),
            _ => Ok(()),
        }
    }

    async fn checked(&self, words: BrowserWords) -> Result<NewBrowserMessage, SayRefused> {
        if words.text.trim().is_empty() && words.files.is_empty() {
            return Err(SayRefused::Empty);
        }
        if words.text.len() > MOST_TEXT_BYTES {
            return Err(SayRefused::TooLong);
        }
        let sizes = words.files.iter().map(|file| file.bytes.len() as u64);
        let (largest, all) = (sizes.clone().max().unwrap_or_default(), sizes.sum::<u64>());
        if words.files.len() > MOST_FILES || largest > MOST_FILE_BYTES {
            return Err(SayRefused::Files);
        }
        if all > 0 && !self.has_room(words.person.as_str(), all).await? {
            return Err(SayRefused::NoRoom);
        }
        Ok(NewBrowserMessage {
            conversation: words.conversation,
            text: words.text,
            // Apart from the keys of deliveries, which stand in the same column. With the pass, so that it is
            // known after a restart too whose word this is.
            key: Some(format!(
                "form:{}:{}",
                words.pass.unwrap_or_default(),
                words.once
            )),
            files: words.files,
        })
    }

    /// Whether so many more bytes of this person's can be kept.
    pub(crate) async fn has_room(&self, person: &str, more: u64) -> Result<bool, StoreError> {
        let (own, everything) = self.rows.kept_bytes(person).await?;
        Ok(own + more <= MOST_KEPT.0 && everything + more <= MOST_KEPT.1)
    }

    /// Takes a press. When this ends well the gateway has it; otherwise nothing happened, but where the error
    /// says that it may have.
    pub async fn press(&self, press: BrowserPress) -> Result<(), PressRefused> {
        let person = press.person.as_str();
        let before = Some(press.message + 1);
        let found = self
            .rows
            .messages(person, press.conversation, before, 1)
            .await?;
        let found = found.into_iter().find(|one| one.id == press.message);
        let found = found.ok_or(PressRefused::NoButton)?;
        let buttons = StoredButton::read(&found.buttons);
        // Only what stands under this person's own message: a press with data that somebody guessed
        // reaches nobody.
        if !buttons.iter().flatten().any(|one| one.data == press.data) {
            return Err(PressRefused::NoButton);
        }
        let place = Self::place(&press.person, press.conversation);
        let (Ok(place), Ok(sender)) = (place, sender(person, press.pass.as_deref())) else {
            return Err(PressRefused::TurnedAway);
        };
        let id = format!("press:{}", RunId::random());
        let event = ButtonPress {
            account: self.account.clone(),
            update: UpdateId::new(id.clone()).map_err(|_| PressRefused::NotTaken)?,
            query: id.clone(),
            place,
            message: MessageId::from(press.message),
            sender,
            data: press.data,
            received_at: self.clock.now(),
        };
        let (receipt, waiter) = Receipt::pair();
        self.handover
            .push(HandoverEntry::Press(Box::new(event), receipt));
        match timeout(TAKING, waiter.signature()).await {
            Ok(Some(Signature::Stored)) => Ok(()),
            Ok(Some(Signature::TurnedAway)) => Err(PressRefused::TurnedAway),
            Ok(None) => Err(PressRefused::NotTaken),
            // What stays in the queue would be done behind the back of whoever was told that it was not.
            Err(_) => match self.handover.withdraw(&id) {
                true => Err(PressRefused::NotTaken),
                false => Err(PressRefused::MayBeTaken),
            },
        }
    }
}
