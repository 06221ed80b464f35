//! Replies out.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hermetic_chat::{ChatReply, OutgoingText, ReplyButton, SendError, SendFailure};
use hermetic_types::{ChatId, ChatPlace, MessageId, UserId};
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::MESSAGE;
use crate::account::SlackAccount;
use crate::blocks::MessageBody;
use crate::identity::slack_user;
use crate::mrkdwn::to_mrkdwn;
use crate::pace::RateTier;
use crate::reading::kind;
use crate::ts::SlackTimestamp;
use crate::wire::SlackCallError;

const SLACK_SEND_ATTEMPTS: u32 = 5;
/// A longer answer belongs in a file.
const PARTS: usize = 40;

impl SlackAccount {
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
            let buttons = if index == last {
                reply.buttons.as_slice()
            } else {
                &[]
            };
            match self.post(place, part.as_str(), buttons).await {
                Ok(id) => sent.push(id),
                Err(failure) => return Err(SendError { sent, failure }),
            }
        }
        Ok(sent)
    }

    async fn post(
        &self,
        place: &ChatPlace,
        text: &str,
        buttons: &[Vec<ReplyButton>],
    ) -> Result<MessageId, SendFailure> {
        let thread = thread(place)?;
        let tier = || RateTier::Post(place.chat.clone());
        let body = MessageBody::new(to_mrkdwn(text), buttons);
        let post = async |body: &MessageBody| {
            let params = message_params(&place.chat, thread, body);
            let call = || self.wire.call::<Value>("chat.postMessage", &params);
            self.patiently(tier, call).await
        };
        let posted = match post(&body).await {
            Err(error) if is_about_blocks(&error) && buttons.is_empty() => {
                warn!(%error, "slack refused our blocks; sending it as text");
                post(&body.without_blocks()).await?
            }
            posted => posted?,
        };
        let ts = posted["ts"].as_str().and_then(SlackTimestamp::parse);
        // Slack said yes: it is there, under a name we do not know.
        let ts = ts.ok_or_else(|| SendFailure::Uncertain(Box::new(unnamed())))?;
        if let Some(thread) = thread {
            // Before it counts as sent: words that were meant for a thread must not stay in front
            // of a whole channel.
            self.check_thread(place, thread, ts, &posted["message"])
                .await?;
        }
        Ok(ts.message_id())
    }

    /// Slack does not fail when a thread is gone: it posts to the channel, for everybody to read, and
    /// only leaves the thread out of its answer. Such a message is taken back.
    async fn check_thread(
        &self,
        place: &ChatPlace,
        thread: SlackTimestamp,
        ts: SlackTimestamp,
        message: &Value,
    ) -> Result<(), SendFailure> {
        let stands_in = message["thread_ts"]
            .as_str()
            .and_then(SlackTimestamp::parse);
        if !message.is_object() || stands_in == Some(thread) {
            return Ok(());
        }
        warn!(account = %self.account, chat = %place.chat, %thread, "a thread is gone; taking the reply back");
        let params = json!({ "channel": place.chat, "ts": ts.to_string() });
        let call = || self.wire.call::<Value>("chat.delete", &params);
        if let Err(error) = self.patiently(|| RateTier::Other, call).await {
            warn!(account = %self.account, %error, "a reply stands in a channel that was meant for a thread");
        }
        Err(SendFailure::Refused {
            description: "the thread is gone".to_owned(),
        })
    }

    pub(crate) async fn edit_message(
        &self,
        place: &ChatPlace,
        message: &MessageId,
        text: &OutgoingText,
        buttons: &[Vec<ReplyButton>],
    ) -> Result<(), SendError> {
        let (ts, body) = (message_ts(message)?, edited_body(text, buttons)?);
        let edit = async |body: &MessageBody| {
            let params = edit_params(&place.chat, ts, body);
            let call = || self.wire.call::<Value>("chat.update", &params);
            self.patiently(|| RateTier::Update, call).await
        };
        let edited = match edit(&body).await {
            Err(error) if is_about_blocks(&error) && buttons.is_empty() => {
                edit(&body.without_blocks()).await
            }
            edited => edited,
        };
        edited
            .map(drop)
            .map_err(|error| SendFailure::from(error).into())
    }

    /// Neither waits nor tries again.
    pub(crate) async fn refresh_message(
        &self,
        place: &ChatPlace,
        message: &MessageId,
        text: &OutgoingText,
    ) -> Result<(), SendError> {
        let (ts, body) = (message_ts(message)?, edited_body(text, &[])?);
        let params = edit_params(&place.chat, ts, &body);
        let retry_after = self.pace.reserve_refresh();
        if !retry_after.is_zero() {
            return Err(SendFailure::Throttled { retry_after }.into());
        }
        let edited = self.wire.call::<Value>("chat.update", &params).await;
        edited
            .map_err(|error| self.note(RateTier::Update, error))
            .map_err(SendFailure::from)?;
        Ok(())
    }

    /// Slack shows it in threads, for two minutes or until something is said there.
    pub(crate) async fn show_typing(&self, place: &ChatPlace) -> Result<(), SendError> {
        let Some(thread) = thread(place)?.filter(|_| self.may_show_status()) else {
            return Ok(());
        };
        // Worth nothing late: no waiting, no second try.
        if !self.pace.reserve(RateTier::Other).is_zero() {
            return Ok(());
        }
        let params = json!({
            "channel_id": place.chat,
            "thread_ts": thread.to_string(),
            "status": "is working on it…",
        });
        let shown = self
            .wire
            .call::<Value>("assistant.threads.setStatus", &params)
            .await;
        match shown.map_err(|error| self.note(RateTier::Other, error)) {
            Err(error) if error.is_final() || error.is_refusal_with("unknown_method") => {
                debug!(account = %self.account, %error, "slack does not let us show that we write");
                self.no_status.store(true, Ordering::Relaxed);
                Ok(())
            }
            // A thread that cannot have a status; the answer comes all the same.
            Err(SlackCallError::Refused { .. }) | Ok(_) => Ok(()),
            Err(error) => Err(SendFailure::from(error).into()),
        }
    }

    /// Opens the private chat with a person.
    pub(crate) async fn open_private(&self, user: &UserId) -> Result<ChatPlace, SendError> {
        let params = json!({ "users": slack_user(user) });
        let call = || self.wire.call::<Value>("conversations.open", &params);
        let opened = self
            .patiently(|| RateTier::Other, call)
            .await
            .map_err(not_shown)?;
        let channel = opened["channel"]["id"].as_str();
        let chat = channel.and_then(|id| ChatId::new(id).ok());
        let chat = chat.ok_or_else(|| SendFailure::NotSent(Box::new(unnamed())))?;
        Ok(ChatPlace {
            kind: kind(&chat),
            chat,
            thread: None,
        })
    }

    /// Tries again what certainly did not arrive, and waits where Slack's tiers or Slack ask for it.
    pub(crate) async fn patiently<T, F>(
        &self,
        tier: impl Fn() -> RateTier,
        mut call: impl FnMut() -> F,
    ) -> Result<T, SlackCallError>
    where
        F: Future<Output = Result<T, SlackCallError>>,
    {
        let mut backoff = self.backoff();
        let mut patience = self.timing.throttle;
        let mut attempt = 1;
        loop {
            let wait = self.pace.reserve(tier());
            if wait > Duration::ZERO {
                let left = patience.checked_sub(wait);
                // All waits of one call together: each alone may be short, and a turn would still
                // be held for minutes.
                patience = left.ok_or(SlackCallError::Throttled { retry_after: wait })?;
                sleep(wait).await;
                continue;
            }
            let error = match call().await.map_err(|error| self.note(tier(), error)) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let wait = match &error {
                // The tier is held.
                SlackCallError::Throttled { .. } => Duration::ZERO,
                SlackCallError::Unreachable(_) => backoff.next_wait(),
                _ => return Err(error),
            };
            if attempt == SLACK_SEND_ATTEMPTS {
                return Err(error);
            }
            debug!(%error, attempt, "trying again");
            attempt += 1;
            sleep(wait).await;
        }
    }

    /// Remembers how long Slack wants to be left alone.
    fn note(&self, tier: RateTier, error: SlackCallError) -> SlackCallError {
        if let SlackCallError::Throttled { retry_after } = &error {
            self.pace.hold(tier, *retry_after);
        }
        error
    }
}

/// The thread of a place. One that is no time of Slack's is refused here: Slack would post to the channel.
pub(crate) fn thread(place: &ChatPlace) -> Result<Option<SlackTimestamp>, SendFailure> {
    let Some(thread) = &place.thread else {
        return Ok(None);
    };
    let ts =
        SlackTimestamp::of_thread(thread).ok_or_else(|| not_ours("thread", thread.as_str()))?;
    Ok(Some(ts))
}

pub(crate) fn message_params(
    chat: &ChatId,
    thread: Option<SlackTimestamp>,
    body: &MessageBody,
) -> Value {
    let mut params = json!({
        "channel": chat,
        "text": body.text,
        // Slack's servers fetch what they preview: a link alone would carry data out.
        "unfurl_links": false,
        "unfurl_media": false,
    });
    if let Some(thread) = thread {
        params["thread_ts"] = json!(thread.to_string());
    }
    if !body.blocks.is_empty() {
        params["blocks"] = json!(body.blocks);
    }
    params
}

fn message_ts(message: &MessageId) -> Result<SlackTimestamp, SendFailure> {
    SlackTimestamp::of_message(message).ok_or_else(|| not_ours("message", message.as_str()))
}

fn edit_params(chat: &ChatId, ts: SlackTimestamp, body: &MessageBody) -> Value {
    json!({
        "channel": chat,
        "ts": ts.to_string(),
        "text": body.text,
        // Without any, Slack would leave the old ones, and their buttons with them.
        "blocks": body.blocks,
    })
}

fn edited_body(
    text: &OutgoingText,
    buttons: &[Vec<ReplyButton>],
) -> Result<MessageBody, SendFailure> {
    if text.as_str().trim().is_empty() {
        return Err(SendFailure::Empty);
    }
    if !MESSAGE.fits(text.as_str()) {
        return Err(too_long(MESSAGE.length));
    }
    Ok(MessageBody::new(to_mrkdwn(text.as_str()), buttons))
}

impl MessageBody {
    fn without_blocks(&self) -> Self {
        Self {
            text: self.text.clone(),
            blocks: Vec::new(),
        }
    }
}

fn is_about_blocks(error: &SlackCallError) -> bool {
    [
        "invalid_blocks",
        "invalid_blocks_format",
        "msg_blocks_too_long",
    ]
    .iter()
    .any(|code| error.is_refusal_with(code))
}

/// A failure of something that nobody sees: it can be done again.
pub(crate) fn not_shown(error: SlackCallError) -> SendFailure {
    match SendFailure::from(error) {
        SendFailure::Uncertain(cause) => SendFailure::NotSent(cause),
        failure => failure,
    }
}

pub(crate) fn unnamed() -> SlackCallError {
    SlackCallError::Garbled { status: 200 }
}

fn too_long(limit: usize) -> SendFailure {
    SendFailure::TooLong {
        limit,
        unit: MESSAGE.unit.name(),
    }
}

fn not_ours(what: &str, id: &str) -> SendFailure {
    SendFailure::Refused {
        description: format!("{id:?} is no slack {what}"),
    }
}
