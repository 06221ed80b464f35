//! One attempt to send a reply, and what its failure means for the next.

use std::time::Duration;

use hermetic_chat::{Chat, ChatReply, OutgoingText, ReplyRule, SendError, SendFailure, SendKey};
use hermetic_redact::Redacted;
use hermetic_store::{DeliveryRow, MessageRow, StoreError};
use hermetic_types::{AccountId, ConversationKey, Timestamp};
use tokio::time::Instant;

use super::destinations::Destination;
use super::outbox::{DeliveryAddress, Outbox};
use crate::run::{DeliveryEnd, MessageStage, SpanNote};
use crate::wording::POSSIBLE_DUPLICATE;

/// With pauses of up to five minutes, about a day.
pub(super) const MOST_TRIES: u32 = 300;
const LONGEST_DELIVERY_PAUSE: Duration = Duration::from_secs(300);
/// A platform that asks for no pause is not asked again at full speed.
const SHORTEST_THROTTLE: Duration = Duration::from_millis(500);
const LONGEST_THROTTLE: Duration = Duration::from_secs(3600);

/// A reply on its way.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) row: DeliveryRow,
    /// What it answers, and is forgotten with.
    pub(super) message: Option<MessageRow>,
    pub(super) account: AccountId,
    pub(super) address: DeliveryAddress,
    text: Redacted<String>,
    pub(super) tries: u32,
    /// When the first attempt of this process began.
    pub(super) since: Instant,
    /// Messages of it that arrived.
    arrived: usize,
    /// The next message of it may have arrived.
    pub(super) maybe_sent: bool,
    /// An earlier process had begun to send it: any message of it may have arrived.
    pub(super) found: bool,
    /// When it was written down. No attempt is older.
    pub(super) queued_at: Timestamp,
}

/// What is left to do after an attempt.
pub(super) enum AttemptRest {
    Nothing,
    TryAgain(Instant),
}

impl Delivery {
    pub(super) fn new(
        row: DeliveryRow,
        account: AccountId,
        address: DeliveryAddress,
        text: Redacted<String>,
        queued_at: Timestamp,
    ) -> Self {
        Self {
            row,
            message: None,
            account,
            address,
            text,
            tries: 0,
            since: Instant::now(),
            arrived: 0,
            maybe_sent: false,
            found: false,
            queued_at,
        }
    }

    pub(super) fn may_be_double(&self) -> bool {
        self.maybe_sent || self.found
    }

    /// Nobody knows whether its next message arrived.
    pub(super) fn may_have_left(&mut self) {
        // Changing a message twice shows it once.
        let changes = self.arrived == 0 && self.address.draft.is_some();
        self.maybe_sent |= !changes;
    }

    /// A late file is not tried for longer because of restarts.
    pub(super) fn go_on_after(&mut self, attempts: u32) {
        if self.address.late {
            self.tries = attempts;
        }
    }

    /// Whose file it is and its path, if it is a late file.
    pub(super) fn late_file(&self) -> Option<(ConversationKey, String)> {
        let whose = self
            .address
            .conversation
            .clone()
            .filter(|_| self.address.late)?;
        Some((whose, self.address.files.first()?.clone()))
    }

    pub(super) fn destination(&self) -> Destination {
        Destination {
            account: self.account.clone(),
            place: self.address.place.clone(),
            late_file: self.address.late.then_some(self.row),
        }
    }
}

impl Delivery {
    /// The files that did not arrive, once all of the text has.
    pub(super) fn files_left(&self, texts: usize) -> Vec<String> {
        let sent = self.arrived - texts.min(self.arrived);
        self.address.files.iter().skip(sent).cloned().collect()
    }
}

impl Outbox {
    /// What it learns is noted on the delivery, so that whoever tries again goes on from there.
    pub(super) async fn try_to_send(
        &self,
        delivery: &mut Delivery,
    ) -> Result<AttemptRest, StoreError> {
        let platform = delivery.account.platform();
        let Some(chat) = self.chats.get(&delivery.account) else {
            self.deliveries
                .failed(delivery.row, "the account is not configured")
                .await?;
            self.metrics.delivered(platform, DeliveryEnd::GivenUp);
            return Ok(AttemptRest::Nothing);
        };
        // Before the platform hears of it: killed in the middle of sending, the next start finds
        // that it was begun and marks it, instead of sending a second one without a word.
        self.deliveries.begin(delivery.row).await?;
        delivery.tries += 1;
        let Err(error) = self.hand_over(chat.as_ref(), delivery).await else {
            let took = delivery.since.elapsed();
            // Counted when it is written: until then it is tried again, and would count twice.
            self.deliveries.sent(delivery.row, self.now()).await?;
            self.metrics.delivered(platform, DeliveryEnd::Sent);
            self.metrics.stage_ended(MessageStage::Delivery, took);
            self.trace(delivery, DeliveryEnd::Sent);
            return Ok(AttemptRest::Nothing);
        };
        // Before the texts are counted: a late file has none, and would look like a reply all of
        // whose texts have arrived.
        if delivery.address.late {
            return self.after_a_late_file(delivery, error).await;
        }
        let texts = texts(chat.as_ref(), delivery).len();
        if delivery.arrived >= texts {
            let files = delivery.files_left(texts);
            return self.let_files_come_late(delivery, files, &error).await;
        }
        let failure = error.failure;
        tracing::warn!(delivery = delivery.row.0, tries = delivery.tries, %failure, "a reply was not sent");
        if is_final(&failure) || delivery.tries >= MOST_TRIES {
            self.deliveries
                .failed(delivery.row, &failure.to_string())
                .await?;
            self.metrics.delivered(platform, DeliveryEnd::GivenUp);
            self.trace(delivery, DeliveryEnd::GivenUp);
            return Ok(AttemptRest::Nothing);
        }
        self.metrics.delivered(platform, DeliveryEnd::Delayed);
        if !failure.is_safe_to_repeat() {
            delivery.may_have_left();
        }
        // It is certain that nothing of it arrived: the row is as if it had never been begun, and a
        // crash during the pause costs no mark.
        if delivery.arrived == 0 && !delivery.may_be_double() {
            self.deliveries
                .put_back(delivery.row, &failure.to_string())
                .await?;
        }
        let pause = pause_after(&failure, delivery.tries);
        Ok(AttemptRest::TryAgain(Instant::now() + pause))
    }

    /// Message by message, so that a second attempt goes on where the first ended. An answer that was
    /// shown while it grew is completed where it stands.
    async fn hand_over(&self, chat: &dyn Chat, delivery: &mut Delivery) -> Result<(), SendError> {
        let parts = texts(chat, delivery);
        let texts = parts.len();
        for (index, part) in parts.into_iter().enumerate().skip(delivery.arrived) {
            let drafted = index == 0 && complete(chat, &delivery.address, &part).await?;
            if !drafted {
                self.send_part(chat, delivery, index, part).await?;
            }
            delivery.arrived += 1;
        }
        // Text before files: a file may take minutes and may fail for good, and must not keep the
        // words back.
        for path in delivery.files_left(texts) {
            self.send_file(chat, delivery, &path).await?;
            delivery.arrived += 1;
            delivery.maybe_sent = false;
        }
        Ok(())
    }

    /// Tells the message's trace how its reply fared, with all attempts of this process.
    fn trace(&self, delivery: &Delivery, end: DeliveryEnd) {
        if let Some(row) = delivery.message {
            self.traces.stage(row, || {
                SpanNote::since("delivery", delivery.since)
                    .text("hermetic.outcome", end.name())
                    .number("hermetic.attempts", delivery.tries.into())
                    .failed(end != DeliveryEnd::Sent)
            });
        }
    }

    async fn send_part(
        &self,
        chat: &dyn Chat,
        delivery: &mut Delivery,
        index: usize,
        part: OutgoingText,
    ) -> Result<(), SendError> {
        let text = if delivery.may_be_double() && !self.is_told_apart(chat, delivery) {
            self.redactor
                .redact(format!("{POSSIBLE_DUPLICATE}{}", part.as_str()))
                .into()
        } else {
            part
        };
        let mut reply = ChatReply::text(text);
        // Where each message takes one answer, a part without its message would be taken for the next one's.
        let belongs = index == 0 || chat.capabilities().replies == ReplyRule::OneForEach;
        reply.reply_to = delivery.address.reply_to.clone().filter(|_| belongs);
        reply.key = Some(SendKey::new(delivery.row.0, index));
        chat.send(&delivery.address.place, &reply).await?;
        delivery.maybe_sent = false;
        Ok(())
    }

    /// Whether the platform still knows the key of an earlier attempt, and so makes no second message.
    fn is_told_apart(&self, chat: &dyn Chat, delivery: &Delivery) -> bool {
        // Apart in either direction: a clock that was ahead when it was queued says nothing about its age.
        let age = self.now().distance(delivery.queued_at);
        let known = chat.capabilities().send_keys;
        known.is_some_and(|known_for| age < known_for)
    }
}

/// How long a text waits after so many attempts.
fn pause_after(failure: &SendFailure, tries: u32) -> Duration {
    match throttle(failure) {
        Some(pause) => pause.min(LONGEST_THROTTLE),
        None => pause_after_tries(tries),
    }
}

pub(super) fn pause_after_tries(tries: u32) -> Duration {
    Duration::from_secs(1 << tries.min(9)).min(LONGEST_DELIVERY_PAUSE)
}

/// How long the platform asked us to wait, where it did.
pub(super) fn throttle(failure: &SendFailure) -> Option<Duration> {
    match failure {
        SendFailure::Throttled { retry_after } => Some((*retry_after).max(SHORTEST_THROTTLE)),
        _ => None,
    }
}

pub(super) fn is_final(failure: &SendFailure) -> bool {
    matches!(
        failure,
        SendFailure::Empty | SendFailure::TooLong { .. } | SendFailure::Refused { .. }
    )
}

/// The messages that its text becomes. A late file has none.
fn texts(chat: &dyn Chat, delivery: &Delivery) -> Vec<OutgoingText> {
    match delivery.address.late {
        true => Vec::new(),
        false => chat
            .capabilities()
            .parts(&OutgoingText::from(delivery.text.clone())),
    }
}

/// Makes a draft the first message of the answer. `false` if there is none, or somebody deleted it.
async fn complete(
    chat: &dyn Chat,
    address: &DeliveryAddress,
    part: &OutgoingText,
) -> Result<bool, SendError> {
    let Some(draft) = &address.draft else {
        return Ok(false);
    };
    match chat.edit(&address.place, draft, part, &[]).await {
        Ok(()) => Ok(true),
        Err(SendError {
            failure: SendFailure::Refused { description },
            ..
        }) => {
            tracing::debug!(
                description,
                "the draft is gone; its answer becomes a new message"
            );
            Ok(false)
        }
        // Anything else may pass, and then the draft is still there to be completed.
        Err(error) => Err(error),
    }
}

#[cfg(test)]
impl Delivery {
    pub(super) fn to_nobody(chat: i64) -> Self {
        let place = hermetic_types::ChatPlace {
            chat: hermetic_types::ChatId::from(chat),
            kind: hermetic_types::ChatKind::Dm,
            thread: None,
        };
        let address = DeliveryAddress {
            place,
            reply_to: None,
            draft: None,
            files: Vec::new(),
            conversation: None,
            late: false,
        };
        Self::new(
            DeliveryRow(chat),
            hermetic_types::Platform::Telegram.into(),
            address,
            Redacted::constant("hi"),
            Timestamp::from_millis(0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_platform_is_asked_again_at_full_speed() {
        let at_once = SendFailure::Throttled {
            retry_after: Duration::ZERO,
        };
        let silent = SendFailure::NotSent("no way there".into());
        for tries in [1, 2, 10, 299, u32::MAX] {
            assert!(pause_after(&at_once, tries) >= SHORTEST_THROTTLE);
            assert!(pause_after(&silent, tries) >= Duration::from_secs(2));
            assert!(pause_after(&silent, tries) <= LONGEST_DELIVERY_PAUSE);
        }
        let for_ever = SendFailure::Throttled {
            retry_after: Duration::MAX,
        };
        assert_eq!(pause_after(&for_ever, 1), LONGEST_THROTTLE);
    }
}
