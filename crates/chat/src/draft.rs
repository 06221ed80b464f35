//! An answer that grows while it is written: one message, edited now and then.

use std::time::Duration;

use hermetic_types::{ChatPlace, MessageId};
use tokio::time::Instant;
use tracing::debug;

use crate::{Chat, ChatReply, OutgoingText, SendError, SendFailure};

#[derive(Debug)]
pub struct DraftMessage<'a> {
    chat: &'a dyn Chat,
    place: &'a ChatPlace,
    reply_to: Option<MessageId>,
    every: Duration,
    message: Option<MessageId>,
    shown: String,
    not_before: Option<Instant>,
    /// The first message may be there without our knowing its id: no second one is begun.
    given_up: bool,
}

impl<'a> DraftMessage<'a> {
    /// Shows something new at most once in `every`; in `message`, where one was begun before.
    pub fn new(
        chat: &'a dyn Chat,
        place: &'a ChatPlace,
        reply_to: Option<MessageId>,
        message: Option<MessageId>,
        every: Duration,
    ) -> Self {
        Self {
            chat,
            place,
            reply_to,
            every,
            message,
            shown: String::new(),
            not_before: None,
            given_up: false,
        }
    }

    pub fn message(&self) -> Option<&MessageId> {
        self.message.as_ref()
    }

    /// When the next showing is not too soon.
    pub fn not_before(&self) -> Instant {
        self.not_before.unwrap_or_else(Instant::now)
    }

    /// Shows the text so far, unless it is too soon. What goes wrong here is made up for by the answer
    /// itself, so it is not an error.
    pub async fn show(&mut self, text: &OutgoingText) {
        let too_soon = self.not_before.is_some_and(|at| Instant::now() < at);
        if self.given_up || !self.chat.capabilities().edits || too_soon {
            return;
        }
        // Only the first message is shown growing: what is beyond it may still move from one
        // message to the next.
        let Some(first) = self.chat.capabilities().parts(text).into_iter().next() else {
            return;
        };
        if first.as_str() == self.shown {
            return;
        }
        let shown = match &self.message {
            Some(message) => self.chat.refresh(self.place, message, &first).await,
            None => self.begin(&first).await,
        };
        let mut pause = self.every;
        match shown {
            Ok(()) => self.shown = first.as_str().to_owned(),
            Err(error) => {
                debug!(%error, "a draft was not shown");
                // A failed edit is made up for by the next. A failed beginning that may be on the
                // screen is not: a second one would show the answer twice.
                self.given_up = self.message.is_none() && !error.failure.is_safe_to_repeat();
                if let SendFailure::Throttled { retry_after } = error.failure {
                    pause = pause.max(retry_after);
                }
            }
        }
        // Counted from the end of the call: a slow platform would otherwise be called again at
        // once.
        self.not_before = Some(Instant::now() + pause);
    }

    async fn begin(&mut self, text: &OutgoingText) -> Result<(), SendError> {
        let reply = ChatReply {
            reply_to: self.reply_to.clone(),
            ..ChatReply::text(text.clone())
        };
        self.message = self.chat.send(self.place, &reply).await?.into_iter().next();
        Ok(())
    }
}
