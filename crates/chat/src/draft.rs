//! An answer that grows while it is written: one message, edited now and then.

use std::time::Duration;

use hermetic_types::{MessageId, Place};
use tokio::time::Instant;
use tracing::debug;

use crate::{Chat, Outgoing, Reply, SendError, SendFailure};

#[derive(Debug)]
pub struct Draft<'a> {
    chat: &'a dyn Chat,
    place: &'a Place,
    reply_to: Option<MessageId>,
    every: Duration,
    message: Option<MessageId>,
    shown: String,
    not_before: Option<Instant>,
    /// The first message may be there without our knowing its id: no second one is begun.
    given_up: bool,
}

impl<'a> Draft<'a> {
    /// Shows something new at most once in `every`.
    pub fn new(
        chat: &'a dyn Chat,
        place: &'a Place,
        reply_to: Option<MessageId>,
        every: Duration,
    ) -> Self {
        Self {
            chat,
            place,
            reply_to,
            every,
            message: None,
            shown: String::new(),
            not_before: None,
            given_up: false,
        }
    }

    /// Shows the text so far, unless it is too soon. What goes wrong here is made up for by
    /// `finish`, so it is not an error.
    pub async fn show(&mut self, text: &Outgoing) {
        let now = Instant::now();
        if self.given_up
            || !self.chat.edits()
            || self.not_before.is_some_and(|not_before| now < not_before)
        {
            return;
        }
        let Some(first) = self.chat.parts(text).into_iter().next() else {
            return;
        };
        if first.as_str() == self.shown {
            return;
        }
        let shown = match &self.message {
            Some(message) => self.chat.edit(self.place, message, &first, &[]).await,
            None => self.begin(&first).await,
        };
        let mut pause = self.every;
        match shown {
            Ok(()) => self.shown = first.as_str().to_owned(),
            Err(error) => {
                debug!(%error, "a draft was not shown");
                self.given_up = self.message.is_none() && !error.failure.is_safe_to_repeat();
                if let SendFailure::Throttled { retry_after } = error.failure {
                    pause = pause.max(retry_after);
                }
            }
        }
        self.not_before = Some(Instant::now() + pause);
    }

    /// Makes the draft the answer: its message becomes the first part, the rest follows.
    pub async fn finish(self, reply: &Reply) -> Result<Vec<MessageId>, SendError> {
        let mut parts = self.chat.parts(&reply.text).into_iter();
        let (Some(message), Some(first)) = (&self.message, parts.next()) else {
            return self.chat.send(self.place, reply).await;
        };
        let mut rest: Vec<_> = parts.collect();
        let last = rest.pop();
        let buttons = if last.is_none() {
            reply.buttons.as_slice()
        } else {
            &[]
        };
        if let Err(error) = self.chat.edit(self.place, message, &first, buttons).await {
            return match error.failure {
                // Somebody deleted the draft.
                SendFailure::Refused { .. } => self.chat.send(self.place, reply).await,
                _ => Err(error),
            };
        }
        let mut sent = vec![message.clone()];
        let plain = rest.into_iter().map(Reply::text);
        let closing = last.map(|text| Reply {
            text,
            reply_to: None,
            buttons: reply.buttons.clone(),
        });
        for part in plain.chain(closing) {
            match self.chat.send(self.place, &part).await {
                Ok(ids) => sent.extend(ids),
                Err(mut error) => {
                    sent.append(&mut error.sent);
                    return Err(SendError { sent, ..error });
                }
            }
        }
        Ok(sent)
    }

    async fn begin(&mut self, text: &Outgoing) -> Result<(), SendError> {
        let reply = Reply {
            reply_to: self.reply_to.clone(),
            ..Reply::text(text.clone())
        };
        self.message = self.chat.send(self.place, &reply).await?.into_iter().next();
        Ok(())
    }
}
