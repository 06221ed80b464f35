//! Replies out.

use std::future::Future;
use std::time::Duration;

use hermetic_chat::{Backoff, ChatReply, OutgoingText, ReplyButton, SendError, SendFailure};
use hermetic_types::{ChatId, ChatKind, ChatPlace, MessageId, UserId};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::markdown_v2::to_markdown_v2;
use crate::requests::{
    EditMessageText, InlineKeyboard, LinkPreviewOptions, MARKDOWN_V2, ReplyParameters,
    SendChatAction, SendMessage,
};
use crate::wire::TelegramCallError;
use crate::{MESSAGE, TelegramAdapter};

const TELEGRAM_SEND_ATTEMPTS: u32 = 5;
/// A longer answer belongs in a file.
const PARTS: usize = 40;

impl TelegramAdapter {
    pub(crate) async fn send_reply(
        &self,
        place: &ChatPlace,
        reply: &ChatReply,
    ) -> Result<Vec<MessageId>, SendError> {
        let limit = PARTS * MESSAGE.length / 2;
        if MESSAGE.unit.count(reply.text.as_str()) > limit {
            return Err(too_long(limit).into());
        }
        let parts = reply.text.split(MESSAGE);
        let last = parts.len().checked_sub(1).ok_or(SendFailure::Empty)?;
        let mut sent = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let reply_to = reply.reply_to.as_ref().filter(|_| index == 0);
            let buttons = if index == last {
                reply.buttons.as_slice()
            } else {
                &[]
            };
            match self
                .send_part(place, part.as_str(), reply_to, buttons)
                .await
            {
                Ok(id) => sent.push(id),
                // With what did arrive, so that the caller goes on behind it instead of saying it
                // twice.
                Err(failure) => return Err(SendError { sent, failure }),
            }
        }
        Ok(sent)
    }

    async fn send_part(
        &self,
        place: &ChatPlace,
        text: &str,
        reply_to: Option<&MessageId>,
        buttons: &[Vec<ReplyButton>],
    ) -> Result<MessageId, SendFailure> {
        let reply_to = reply_to.map(number).transpose()?;
        let plain = SendMessage {
            chat_id: chat_id(&place.chat)?,
            message_thread_id: thread_id(place)?,
            text: text.to_owned(),
            parse_mode: None,
            link_preview_options: LinkPreviewOptions::NONE,
            reply_parameters: reply_to.map(ReplyParameters::to),
            reply_markup: InlineKeyboard::of(buttons),
        };
        let mut formatted = plain.clone();
        formatted.text = to_markdown_v2(text);
        formatted.parse_mode = Some(MARKDOWN_V2);
        let send = async |params: SendMessage| {
            self.patiently(&place.chat, || {
                self.wire.call::<TelegramSent>("sendMessage", &params)
            })
            .await
        };
        let sent = match send(formatted).await {
            // Its parser and ours disagree on something; the words matter more than how they look.
            Err(error) if error.is_refusal_with("can't parse entities") => {
                warn!(%error, "telegram refused our formatting; sending it plain");
                send(plain).await?
            }
            sent => sent?,
        };
        Ok(MessageId::from(sent.message_id))
    }

    pub(crate) async fn edit_message(
        &self,
        place: &ChatPlace,
        message: &MessageId,
        text: &OutgoingText,
        buttons: &[Vec<ReplyButton>],
    ) -> Result<(), SendError> {
        if !MESSAGE.fits(text.as_str()) {
            return Err(too_long(MESSAGE.length).into());
        }
        let plain = EditMessageText {
            chat_id: chat_id(&place.chat)?,
            message_id: number(message)?,
            text: text.as_str().to_owned(),
            parse_mode: None,
            link_preview_options: LinkPreviewOptions::NONE,
            reply_markup: InlineKeyboard::of(buttons),
        };
        let mut formatted = plain.clone();
        formatted.text = to_markdown_v2(text.as_str());
        formatted.parse_mode = Some(MARKDOWN_V2);
        let edit = async |params: EditMessageText| {
            self.patiently(&place.chat, || {
                self.wire.call::<Value>("editMessageText", &params)
            })
            .await
        };
        let edited = match edit(formatted).await {
            Err(error) if error.is_refusal_with("can't parse entities") => edit(plain).await,
            edited => edited,
        };
        match edited {
            Err(error) if error.is_refusal_with("message is not modified") => Ok(()),
            Err(error) => Err(SendFailure::from(error).into()),
            Ok(_) => Ok(()),
        }
    }

    /// Plain: half a sentence seldom is good Markdown. Neither waits nor tries again.
    pub(crate) async fn refresh_message(
        &self,
        place: &ChatPlace,
        message: &MessageId,
        text: &OutgoingText,
    ) -> Result<(), SendError> {
        let retry_after = self.pace.wait(&place.chat);
        if !retry_after.is_zero() {
            return Err(SendFailure::Throttled { retry_after }.into());
        }
        let params = EditMessageText {
            chat_id: chat_id(&place.chat)?,
            message_id: number(message)?,
            text: text.as_str().to_owned(),
            parse_mode: None,
            link_preview_options: LinkPreviewOptions::NONE,
            reply_markup: None,
        };
        let edited = self.wire.call::<Value>("editMessageText", &params).await;
        match edited.map_err(|error| self.note(&place.chat, error)) {
            Err(error) if error.is_refusal_with("message is not modified") => Ok(()),
            Err(error) => Err(SendFailure::from(error).into()),
            Ok(_) => Ok(()),
        }
    }

    pub(crate) async fn show_typing(&self, place: &ChatPlace) -> Result<(), SendError> {
        let params = SendChatAction {
            chat_id: chat_id(&place.chat)?,
            message_thread_id: thread_id(place)?,
            action: "typing",
        };
        // Worth nothing late: no waiting, no second try.
        if !self.pace.wait(&place.chat).is_zero() {
            return Ok(());
        }
        let _: Value = self
            .wire
            .call("sendChatAction", &params)
            .await
            .map_err(|error| self.note(&place.chat, error))
            .map_err(SendFailure::from)?;
        Ok(())
    }

    /// Tries again what certainly did not arrive, and waits where Telegram asks for it.
    pub(crate) async fn patiently<T, F>(
        &self,
        chat: &ChatId,
        mut call: impl FnMut() -> F,
    ) -> Result<T, TelegramCallError>
    where
        F: Future<Output = Result<T, TelegramCallError>>,
    {
        let mut backoff = Backoff::new(self.timing.retry.0, self.timing.retry.1);
        let mut attempt = 1;
        loop {
            let hold = self.pace.wait(chat);
            // Longer than a send may be held: back to the ledger, which waits without keeping a
            // turn.
            if hold > self.timing.throttle {
                return Err(TelegramCallError::Refused {
                    code: 429,
                    description: "too many requests".to_owned(),
                    retry_after: Some(hold),
                });
            }
            sleep(hold).await;
            let error = match call().await.map_err(|error| self.note(chat, error)) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let wait = match &error {
                TelegramCallError::Refused {
                    retry_after: Some(_),
                    ..
                } => Duration::ZERO,
                // Only what certainly did not reach Telegram. After a timeout it may have been
                // shown, and only the caller knows whether it may be shown twice.
                TelegramCallError::Unreachable(_) => backoff.next_wait(),
                _ => return Err(error),
            };
            if attempt == TELEGRAM_SEND_ATTEMPTS {
                return Err(error);
            }
            debug!(%error, attempt, "trying again");
            attempt += 1;
            sleep(wait).await;
        }
    }

    /// Remembers how long Telegram wants to be left alone.
    fn note(&self, chat: &ChatId, error: TelegramCallError) -> TelegramCallError {
        if let TelegramCallError::Refused {
            retry_after: Some(wait),
            ..
        } = &error
        {
            self.pace.hold(chat, *wait);
        }
        error
    }
}

/// All we need of the message Telegram made; a strict reading would turn an arrived message into a
/// failed one.
#[derive(Deserialize)]
pub(crate) struct TelegramSent {
    pub(crate) message_id: i64,
}

pub(crate) fn private_place(user: &UserId) -> Result<ChatPlace, SendError> {
    let number: i64 = user
        .as_str()
        .parse()
        .map_err(|_| not_ours("user", user.as_str()))?;
    Ok(ChatPlace {
        chat: ChatId::from(number),
        kind: ChatKind::Dm,
        thread: None,
    })
}

fn too_long(limit: usize) -> SendFailure {
    SendFailure::TooLong {
        limit,
        unit: MESSAGE.unit.name(),
    }
}

pub(crate) fn chat_id(chat: &ChatId) -> Result<i64, SendFailure> {
    chat.as_str()
        .parse()
        .map_err(|_| not_ours("chat", chat.as_str()))
}

pub(crate) fn thread_id(place: &ChatPlace) -> Result<Option<i32>, SendFailure> {
    place
        .thread
        .as_ref()
        .map(|thread| {
            thread
                .as_str()
                .parse()
                .map_err(|_| not_ours("topic", thread.as_str()))
        })
        .transpose()
}

fn number(message: &MessageId) -> Result<i32, SendFailure> {
    message
        .as_str()
        .parse()
        .map_err(|_| not_ours("message", message.as_str()))
}

fn not_ours(what: &str, id: &str) -> SendFailure {
    SendFailure::Refused {
        description: format!("{id:?} is no telegram {what}"),
    }
}
