//! All that asking takes, as the binary puts it together: questions, the board they hang on, and who
//! spoke last in which conversation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hermetic_audit::Event;
use hermetic_chat::Chat;
use hermetic_redact::Redactor;
use hermetic_types::{ConversationKey, Platform, UserId};

use crate::approvals::{Approvals, Asked, Asker};
use crate::board::{Board, ChatDesk, Speaker};
use crate::kept::Kept;

#[derive(Clone, Debug)]
pub struct Asking {
    pub(crate) approvals: Approvals,
    pub(crate) board: Board,
    speakers: Arc<Mutex<HashMap<ConversationKey, (Asked, Speaker)>>>,
}

/// Conversations whose last speaker is remembered. Beyond that the approvers are asked.
const MOST_SPEAKERS: usize = 10_000;

impl Asking {
    pub fn new(
        approvals: Approvals,
        chats: &[Arc<dyn Chat>],
        redactor: Redactor,
        approvers: Vec<(Platform, UserId)>,
    ) -> Self {
        Self {
            board: Board::new(approvals.clone(), chats, redactor, approvers),
            approvals,
            speakers: Arc::default(),
        }
    }

    /// Asks for whoever sent this message.
    pub(crate) fn asker(&self, message: &Kept) -> Asker {
        let said = message.said();
        let asked = Asked {
            conversation: message.conversation().clone(),
            message: Some(message.row()),
            by: name(said.platform, &said.sender.id),
        };
        let speaker = Speaker {
            platform: said.platform,
            place: said.place.clone(),
            approves: message.may_answer(),
        };
        let mut speakers = self.speakers.lock().unwrap_or_else(PoisonError::into_inner);
        if speakers.len() >= MOST_SPEAKERS {
            speakers.clear();
        }
        speakers.insert(
            message.conversation().clone(),
            (asked.clone(), speaker.clone()),
        );
        drop(speakers);
        let desk = ChatDesk {
            board: self.board.clone(),
            speaker: Some(speaker),
        };
        self.approvals.asker(asked, Arc::new(desk))
    }

    /// Who spoke last there, for questions that no message leads to directly.
    pub(crate) fn last_speaker(&self, conversation: &ConversationKey) -> (Asked, Option<Speaker>) {
        let speakers = self.speakers.lock().unwrap_or_else(PoisonError::into_inner);
        match speakers.get(conversation) {
            Some((asked, speaker)) => (asked.clone(), Some(speaker.clone())),
            None => {
                let asked = Asked {
                    conversation: conversation.clone(),
                    message: None,
                    by: "a process".to_owned(),
                };
                (asked, None)
            }
        }
    }

    /// What need not hold anything up if it cannot be written.
    pub(crate) fn note(&self, event: &Event) {
        if let Err(error) = self.approvals.append(event) {
            tracing::error!(%error, "the record could not be written");
        }
    }

    /// What a crash left open is brought to its end.
    pub(crate) async fn tidy(&self) {
        match self.approvals.tidy().await {
            Ok(settled) => settled
                .iter()
                .for_each(|request| self.board.settle(request)),
            Err(error) => tracing::error!(%error, "questions could not be tidied up"),
        }
    }
}

/// A person, for good.
pub(crate) fn name(platform: Platform, user: &UserId) -> String {
    format!("{platform}:{user}")
}
