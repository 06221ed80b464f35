//! Chats in which a message of ours was lost, until the person has been told.
//!
//! Most often they wrote nothing for a day: then nothing can be sent to them, not even that something
//! was lost. So it is noted on the disk and said as soon as they have written again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_chat::{AdapterState, AdapterStateError, OutgoingText, SaveDurability};
use hermetic_types::ChatId;
use tokio::sync::OnceCell;

use super::refusal::WINDOW_CLOSED;

/// What the keys of notes begin with; the chat follows, and the value is Meta's code.
const PREFIX: &str = "undelivered:";

#[derive(Debug)]
pub(crate) struct UndeliveredNotes {
    state: Arc<dyn AdapterState>,
    notes: OnceCell<Mutex<HashMap<ChatId, UndeliveredNote>>>,
}

#[derive(Clone, Copy, Debug)]
struct UndeliveredNote {
    code: i64,
    /// They have written since, so that they can be told.
    can_be_told: bool,
}

impl UndeliveredNotes {
    pub(crate) fn new(state: Arc<dyn AdapterState>) -> Self {
        Self {
            state,
            notes: OnceCell::new(),
        }
    }

    /// Writes down that a message to this chat was lost. Whether it is the first since they wrote.
    pub(crate) async fn note(&self, chat: &ChatId, code: i64) -> Result<bool, AdapterStateError> {
        let notes = self.notes().await?;
        let (key, value) = (format!("{PREFIX}{chat}"), code.to_string());
        self.state
            .save(&key, &value, SaveDurability::OnDisk)
            .await?;
        let note = UndeliveredNote {
            code,
            can_be_told: false,
        };
        // On the disk first: what is in memory alone would be forgotten by a restart, and nobody be
        // told.
        let before = lock(notes).insert(chat.clone(), note);
        Ok(before.is_none_or(|before| before.can_be_told))
    }

    /// They wrote.
    pub(crate) async fn heard_from(&self, chat: &ChatId) -> Result<(), AdapterStateError> {
        if let Some(note) = lock(self.notes().await?).get_mut(chat) {
            note.can_be_told = true;
        }
        Ok(())
    }

    /// What they are to be told now, if anything.
    pub(crate) async fn notice(&self, chat: &ChatId) -> Option<OutgoingText> {
        let note = *lock(self.notes().await.ok()?).get(chat)?;
        note.can_be_told.then(|| match note.code {
            WINDOW_CLOSED => OutgoingText::constant(
                "A message of mine did not reach you, because you had written nothing for 24 hours: \
                 WhatsApp holds such messages back. Ask again for what you miss.",
            ),
            _ => OutgoingText::constant(
                "A message of mine did not reach you: WhatsApp took it and did not deliver it. Ask again \
                 for what you miss.",
            ),
        })
    }

    /// They were told.
    pub(crate) async fn told(&self, chat: &ChatId) -> Result<(), AdapterStateError> {
        // Here the disk first as well: it may be said twice, and is never forgotten unsaid.
        self.state.remove(&format!("{PREFIX}{chat}")).await?;
        lock(self.notes().await?).remove(chat);
        Ok(())
    }

    async fn notes(&self) -> Result<&Mutex<HashMap<ChatId, UndeliveredNote>>, AdapterStateError> {
        let read = || async {
            let notes = self.state.load_all(PREFIX).await?.into_iter();
            let notes = notes.filter_map(|(key, code)| {
                let note = UndeliveredNote {
                    code: code.parse().unwrap_or_default(),
                    can_be_told: false,
                };
                Some((ChatId::new(key.strip_prefix(PREFIX)?).ok()?, note))
            });
            Ok(Mutex::new(notes.collect()))
        };
        self.notes.get_or_try_init(read).await
    }
}

fn lock(
    notes: &Mutex<HashMap<ChatId, UndeliveredNote>>,
) -> MutexGuard<'_, HashMap<ChatId, UndeliveredNote>> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermetic_chat::InMemoryState;

    #[tokio::test]
    async fn a_loss_is_said_once_and_only_when_it_can_be_heard() {
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let chat = ChatId::new("US.1").unwrap();
        let first = UndeliveredNotes::new(Arc::clone(&state));
        assert!(first.note(&chat, WINDOW_CLOSED).await.unwrap());
        assert!(!first.note(&chat, WINDOW_CLOSED).await.unwrap());
        assert_eq!(first.notice(&chat).await, None);

        let next = UndeliveredNotes::new(state);
        assert_eq!(next.notice(&chat).await, None);
        next.heard_from(&chat).await.unwrap();
        assert!(
            next.notice(&chat)
                .await
                .unwrap()
                .as_str()
                .contains("24 hours")
        );
        next.told(&chat).await.unwrap();
        next.heard_from(&chat).await.unwrap();
        assert_eq!(next.notice(&chat).await, None);
    }
}
