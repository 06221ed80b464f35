//! An event's way from Slack's payload into the inbox, whichever way it came.

use std::sync::PoisonError;

use hermetic_chat::ChatEvent;
use hermetic_types::{ChatId, DeletedMessage};
use serde_json::Value;
use tracing::{debug, warn};

use crate::account::SlackAccount;
use crate::acknowledgement::EventAcknowledgement;
use crate::interactions;
use crate::listening::ListeningState;
use crate::reading::{HeardMessage, MessageReader, ReadMessage};
use crate::ts::SlackTimestamp;

impl ListeningState {
    /// An `event_callback`, as sockets and requests carry it.
    pub(crate) async fn hear_event(
        &self,
        slack: &SlackAccount,
        payload: &Value,
        acknowledgement: EventAcknowledgement,
    ) {
        let event = &payload["event"];
        let kind = event["type"].as_str().unwrap_or_default();
        if !self.identity.home.covers(payload) {
            warn!(account = %slack.account, kind, "an event of another workspace; skipped");
            return acknowledgement.give();
        }
        let channel = event["channel"]
            .as_str()
            .and_then(|id| ChatId::new(id).ok());
        match channel {
            Some(channel) if matches!(kind, "message" | "app_mention") => {
                self.hear_message(slack, event, &channel, acknowledgement)
                    .await;
            }
            _ => {
                debug!(account = %slack.account, kind, "an event that we do not listen to");
                acknowledgement.give();
            }
        }
    }

    /// A message, live or out of a history.
    pub(crate) async fn hear_message(
        &self,
        slack: &SlackAccount,
        message: &Value,
        channel: &ChatId,
        acknowledgement: EventAcknowledgement,
    ) {
        match self.reader(slack).read(message, channel) {
            ReadMessage::Message(mut heard) => {
                slack.name(&mut heard.incoming.sender).await;
                self.take(*heard, channel, acknowledgement).await;
            }
            ReadMessage::Deleted(ts) => {
                let deleted = DeletedMessage {
                    account: slack.account.clone(),
                    chat: channel.clone(),
                    message: ts.message_id(),
                };
                // Worth nothing after a restart, when nothing of it runs any more: not waited for.
                self.inbox.tell(ChatEvent::Deleted(deleted)).await;
                acknowledgement.give();
            }
            ReadMessage::Edited(edited) => {
                let event = ChatEvent::Edited(*edited);
                self.inbox.take(event, None, acknowledgement).await;
            }
            ReadMessage::Nothing(why) => {
                debug!(account = %slack.account, %channel, why, "a message is not for us");
                self.pass_over(message, channel).await;
                acknowledgement.give();
            }
            ReadMessage::Malformed(why) => {
                slack.warn_of_malformed(why);
                acknowledgement.give();
            }
        }
    }

    /// A payload of `interactive`: a press.
    pub(crate) async fn hear_interaction(
        &self,
        slack: &SlackAccount,
        payload: &Value,
        acknowledgement: EventAcknowledgement,
    ) {
        let press = interactions::press(payload, self.reader(slack));
        self.hear_once(slack, press, acknowledgement).await;
    }

    /// A payload of `slash_commands`.
    pub(crate) async fn hear_command(
        &self,
        slack: &SlackAccount,
        payload: &Value,
        acknowledgement: EventAcknowledgement,
    ) {
        let command = interactions::command(payload, self.reader(slack));
        self.hear_once(slack, command, acknowledgement).await;
    }

    async fn hear_once(
        &self,
        slack: &SlackAccount,
        event: Result<ChatEvent, &'static str>,
        acknowledgement: EventAcknowledgement,
    ) {
        match event {
            Ok(event) => self.inbox.take(event, None, acknowledgement).await,
            Err(why) => {
                debug!(account = %slack.account, why, "an interaction is not for us");
                acknowledgement.give();
            }
        }
    }

    async fn take(
        &self,
        heard: HeardMessage,
        channel: &ChatId,
        acknowledgement: EventAcknowledgement,
    ) {
        if let Some(thread) = heard.joins
            && let Err(error) = self.threads.join(channel, thread).await
        {
            // It is remembered until the next start, and then our name is needed once more.
            warn!(%error, %channel, "a thread could not be noted");
        }
        let at = Some((channel.clone(), heard.ts.position()));
        let event = ChatEvent::Message(heard.incoming);
        self.inbox.take(event, at, acknowledgement).await;
    }

    /// Chatter between others moves the position too, or a sweep would read all of it again.
    async fn pass_over(&self, message: &Value, channel: &ChatId) {
        let Some(ts) = message["ts"].as_str().and_then(SlackTimestamp::parse) else {
            return;
        };
        if let Err(error) = self.inbox.pass_over(channel, ts.position()).await {
            warn!(%error, %channel, "the position of a slack channel could not be saved");
        }
    }

    fn reader<'a>(&'a self, slack: &'a SlackAccount) -> MessageReader<'a> {
        MessageReader {
            account: &slack.account,
            identity: &self.identity,
            hearing: &slack.hearing,
            threads: &self.threads,
            now: slack.clock.now(),
        }
    }
}

impl SlackAccount {
    /// One line for many of them: a thousand must not fill the log.
    pub(crate) fn warn_of_malformed(&self, why: &'static str) {
        let mut warned = self
            .malformed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if warned.insert(why) {
            warn!(account = %self.account, why, "slack sent something malformed; skipped, and not told again");
        }
    }
}
