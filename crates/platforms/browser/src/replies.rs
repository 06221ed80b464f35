//! Replies out: into the store, where the page finds them.

use std::error::Error;
use std::fmt;

use futures::future::{BoxFuture, FutureExt};
use hermetic_chat::{ChatReply, OutgoingFile, OutgoingText, ReplyButton, SendError, SendFailure};
use hermetic_store::{BrowserChatRows, NewBrowserFile, NewBrowserMessage};
use hermetic_types::{ButtonPress, ChatPlace, MessageId, RunId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{BrowserAdapter, CAPABILITIES, MOST_FILE_BYTES, read_place, refused};

/// Keeps what is shown to people.
///
/// An implementer promises that nothing was kept where it gives back `Ok(None)`, and that what is kept
/// under the same key twice is there once. After an error it may or may not be there.
pub trait ReplyKeeper: Send + Sync + fmt::Debug {
    /// The number of the message, or nothing if that person has no such conversation.
    fn keep<'a>(
        &'a self,
        person: &'a str,
        message: &'a NewBrowserMessage,
        buttons: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<i64>, Box<dyn Error + Send + Sync>>>;
}

/// A button, as it is kept under its message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredButton {
    pub label: String,
    pub data: String,
}

impl ReplyKeeper for BrowserChatRows {
    fn keep<'a>(
        &'a self,
        person: &'a str,
        message: &'a NewBrowserMessage,
        buttons: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<i64>, Box<dyn Error + Send + Sync>>> {
        async move { Ok(self.show(person, message, buttons, now).await?) }.boxed()
    }
}

impl StoredButton {
    /// The rows of buttons that stand under a message.
    pub fn read(text: &str) -> Vec<Vec<Self>> {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn write(buttons: &[Vec<ReplyButton>]) -> String {
        let stored = |button: &ReplyButton| Self {
            label: button.label().to_owned(),
            data: button.data().to_owned(),
        };
        let rows: Vec<Vec<Self>> = buttons
            .iter()
            .map(|row| row.iter().map(stored).collect())
            .collect();
        match rows.is_empty() {
            true => String::new(),
            false => serde_json::to_string(&rows).unwrap_or_default(),
        }
    }
}

impl BrowserAdapter {
    pub(crate) async fn show(
        &self,
        place: &ChatPlace,
        reply: &ChatReply,
    ) -> Result<Vec<MessageId>, SendError> {
        let (person, conversation) = read_place(place)?;
        let text = fitting(&reply.text)?;
        let message = NewBrowserMessage {
            conversation,
            text: text.to_owned(),
            key: Some(match &reply.key {
                Some(key) => format!("delivery:{}", key.as_str()),
                None => format!("own:{}", RunId::random()),
            }),
            files: Vec::new(),
        };
        let buttons = StoredButton::write(&reply.buttons);
        let id = self.kept(person, &message, &buttons).await?;
        Ok(vec![id])
    }

    pub(crate) async fn show_file(
        &self,
        place: &ChatPlace,
        file: &OutgoingFile,
    ) -> Result<MessageId, SendError> {
        let (person, conversation) = read_place(place)?;
        let size = file.bytes.len() as u64;
        if size > MOST_FILE_BYTES {
            return Err(SendFailure::TooLong {
                limit: usize::try_from(MOST_FILE_BYTES).unwrap_or(usize::MAX),
                unit: "bytes",
            }
            .into());
        }
        let has_room = self.has_room(person, size).await;
        if !has_room.map_err(|error| SendFailure::NotSent(error.into()))? {
            return Err(
                refused("the files of this person's conversations fill the room there is").into(),
            );
        }
        let caption = file.caption.as_ref().map(OutgoingText::as_str);
        let message = NewBrowserMessage {
            conversation,
            text: caption.unwrap_or_default().to_owned(),
            key: Some(format!("file:{}", RunId::random())),
            files: vec![NewBrowserFile {
                name: file.name.clone(),
                mime: None,
                bytes: file.bytes.to_vec(),
            }],
        };
        Ok(self.kept(person, &message, "").await?)
    }

    async fn kept(
        &self,
        person: &str,
        message: &NewBrowserMessage,
        buttons: &str,
    ) -> Result<MessageId, SendFailure> {
        let now = self.clock.now();
        let kept = self.replies.keep(person, message, buttons, now).await;
        // A page may show it although the store did not come to say so.
        self.wrote(message.conversation);
        let id = kept.map_err(SendFailure::Uncertain)?;
        let id = id.ok_or_else(|| refused("there is no such conversation any more"))?;
        Ok(MessageId::from(id))
    }

    pub(crate) async fn change(
        &self,
        place: &ChatPlace,
        message: &MessageId,
        text: &OutgoingText,
        buttons: &[Vec<ReplyButton>],
    ) -> Result<(), SendError> {
        let (person, conversation) = read_place(place)?;
        let text = fitting(text)?;
        let id = message.as_str().parse();
        let id = id.map_err(|_| refused("there is no such message"))?;
        let buttons = StoredButton::write(buttons);
        let whose = (person, conversation);
        let changed = self.rows.change(whose, id, text, &buttons).await;
        self.wrote(conversation);
        match changed.map_err(|error| SendFailure::Uncertain(error.into()))? {
            true => Ok(()),
            false => Err(refused("there is no such message").into()),
        }
    }

    pub(crate) async fn note_press(
        &self,
        press: &ButtonPress,
        notice: &OutgoingText,
    ) -> Result<(), SendError> {
        let id = press.message.as_str().parse();
        let id = id.map_err(|_| refused("there is no such message"))?;
        let noted = self
            .rows
            .note_press(press.sender.id.as_str(), id, notice.as_str())
            .await;
        self.changed();
        Ok(noted.map_err(|error| SendFailure::NotSent(error.into()))?)
    }
}

fn fitting(text: &OutgoingText) -> Result<&str, SendFailure> {
    let text = text.as_str();
    if text.trim().is_empty() {
        return Err(SendFailure::Empty);
    }
    let limit = CAPABILITIES.text;
    if !limit.fits(text) {
        return Err(SendFailure::TooLong {
            limit: limit.length,
            unit: limit.unit.name(),
        });
    }
    Ok(text)
}
