//! Files that do not arrive: they hold up nothing, are tried for some minutes, and then it is said.

use std::time::Duration;

use hermetic_chat::{Chat, ChatReply, OutgoingText, ReplyRule, SendError, SendFailure};
use hermetic_redact::Redacted;
use hermetic_store::{DeliveryRow, NextDelivery, PartOutcome, PriorAttempt, StoreError};
use hermetic_types::ConversationKey;
use tokio::time::{Instant, timeout};

use super::attempt::{AttemptRest, Delivery, is_final, throttle};
use super::outbox::{DeliveryAddress, Outbox};
use crate::wording::POSSIBLE_DUPLICATE;

const LATE: &str = "This file belongs to an earlier answer; it could not be sent with it.";

/// How patient we are with a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilePace {
    /// With its text, while the next text waits.
    pub(super) first_attempt: Duration,
    /// Later, while nothing waits.
    pub(super) later_attempt: Duration,
    pub(super) first_pause: Duration,
    pub(super) longest_pause: Duration,
    pub(super) most_tries: u32,
    /// All attempts together.
    pub(super) whole: Duration,
}

impl Default for FilePace {
    fn default() -> Self {
        Self {
            first_attempt: Duration::from_secs(60),
            later_attempt: Duration::from_secs(180),
            first_pause: Duration::from_secs(2),
            longest_pause: Duration::from_secs(60),
            most_tries: 8,
            whole: Duration::from_secs(300),
        }
    }
}

impl FilePace {
    fn pause(&self, tries: u32) -> Duration {
        let longer = 1_u32 << tries.saturating_sub(1).min(16);
        self.first_pause
            .saturating_mul(longer)
            .min(self.longest_pause)
    }
}

impl Outbox {
    /// A file, or in words why not. Only what may pass is an error.
    pub(super) async fn send_file(
        &self,
        chat: &dyn Chat,
        delivery: &Delivery,
        path: &str,
    ) -> Result<(), SendError> {
        let Some(conversation) = &delivery.address.conversation else {
            return Ok(());
        };
        let patience = match delivery.address.late {
            true => self.pace.later_attempt,
            false => self.pace.first_attempt,
        };
        let sent = timeout(patience, self.try_file(chat, delivery, conversation, path));
        let why = match sent.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(FileFailure::Passing(error))) => return Err(error),
            Ok(Err(FileFailure::Final(why))) => why,
            // Cut in the middle of sending, so the platform may have all of it: not known, rather
            // than not sent.
            Err(_) => {
                let slow = format!("it took longer than {} seconds", patience.as_secs());
                return Err(SendFailure::Uncertain(slow.into()).into());
            }
        };
        let notice = self.not_sent(delivery, path, &why);
        let mut reply = ChatReply::text(notice.into());
        // Where each message takes one answer, this one belongs to the message that the file answers, and
        // must not be taken for the answer to the next.
        if chat.capabilities().replies == ReplyRule::OneForEach {
            reply.reply_to = delivery.address.reply_to.clone();
        }
        chat.send(&delivery.address.place, &reply).await.map(drop)
    }

    async fn try_file(
        &self,
        chat: &dyn Chat,
        delivery: &Delivery,
        conversation: &ConversationKey,
        path: &str,
    ) -> Result<(), FileFailure> {
        let fetched = self
            .files
            .fetch(delivery.account.platform(), conversation, path);
        let mut file = fetched.await.map_err(|error| {
            tracing::warn!(%conversation, %error, "a file was not sent");
            FileFailure::Final(error.to_string())
        })?;
        let marks = [
            delivery
                .may_be_double()
                .then_some(POSSIBLE_DUPLICATE.trim_end()),
            delivery.address.late.then_some(LATE),
            file.caption.as_ref().map(OutgoingText::as_str),
        ];
        let marks: Vec<_> = marks.into_iter().flatten().collect();
        if !marks.is_empty() {
            file.caption = Some(self.redactor.redact(marks.join("\n\n")).into());
        }
        match chat.send_file(&delivery.address.place, &file).await {
            Ok(_) => Ok(()),
            Err(error) if is_final(&error.failure) => Err(FileFailure::Final(error.to_string())),
            Err(error) => Err(FileFailure::Passing(error)),
        }
    }

    /// The text has arrived and a file has not: from here on each file that is left goes its own way, and
    /// what was written after it does not wait.
    pub(super) async fn let_files_come_late(
        &self,
        delivery: &mut Delivery,
        files: Vec<String>,
        error: &SendError,
    ) -> Result<AttemptRest, StoreError> {
        tracing::warn!(delivery = delivery.row.0, %error, "a file did not arrive with its text");
        // Noted first: should the ledger fail below, the file is tried once more from here.
        delivery.maybe_sent |= !error.failure.is_safe_to_repeat();
        let maybe_sent = delivery.may_be_double();
        let tried = match maybe_sent {
            true => PriorAttempt::MaybeSent,
            false => PriorAttempt::NotSent,
        };
        let addresses: Vec<DeliveryAddress> = files
            .into_iter()
            .map(|path| DeliveryAddress {
                draft: None,
                files: vec![path],
                late: true,
                ..delivery.address.clone()
            })
            .collect();
        // Of the others nothing was tried; the attempt that failed counts, also after a restart.
        let trials = std::iter::once(tried).chain(std::iter::repeat(PriorAttempt::Never));
        let late = addresses.into_iter().zip(trials);
        let late = self
            .take_its_place(delivery, &PartOutcome::Sent, late, &Redacted::constant(""))
            .await?;
        for (mut late, tried) in late {
            if tried != PriorAttempt::Never {
                // The attempt with the text is its first, or a file that always fails would be
                // tried once more than it may.
                late.tries = 1;
                late.maybe_sent = maybe_sent;
            }
            self.destinations
                .wait(late, Instant::now() + self.pace.pause(1));
        }
        self.wake.notify_one();
        Ok(AttemptRest::Nothing)
    }

    pub(super) async fn after_a_late_file(
        &self,
        delivery: &mut Delivery,
        error: SendError,
    ) -> Result<AttemptRest, StoreError> {
        let failure = error.failure;
        let pause = throttle(&failure).unwrap_or_else(|| self.pace.pause(delivery.tries));
        tracing::warn!(delivery = delivery.row.0, tries = delivery.tries, %failure, "a file was not sent");
        let over = delivery.since.elapsed().saturating_add(pause) > self.pace.whole;
        if delivery.tries >= self.pace.most_tries || over {
            return self.say_undeliverable(delivery, &failure).await;
        }
        delivery.maybe_sent |= !failure.is_safe_to_repeat();
        if !delivery.may_be_double() {
            let why = failure.to_string();
            self.deliveries.put_back(delivery.row, &why).await?;
        }
        Ok(AttemptRest::TryAgain(Instant::now() + pause))
    }

    /// The word goes the way of every reply, in its line.
    async fn say_undeliverable(
        &self,
        delivery: &Delivery,
        failure: &SendFailure,
    ) -> Result<AttemptRest, StoreError> {
        let why = failure.to_string();
        let path = delivery.address.files.first().map_or("", String::as_str);
        let notice = self.not_sent(delivery, path, &why);
        let address = DeliveryAddress {
            files: Vec::new(),
            late: false,
            ..delivery.address.clone()
        };
        let word = [(address, PriorAttempt::Never)].into_iter();
        let words = self
            .take_its_place(delivery, &PartOutcome::Failed(&why), word, &notice)
            .await?;
        for (word, _) in words {
            self.destinations.push(word);
        }
        self.wake.notify_one();
        Ok(AttemptRest::Nothing)
    }

    /// Written before it is sent, as all are, together with the end of the one before.
    async fn take_its_place(
        &self,
        delivery: &Delivery,
        handed: &PartOutcome<'_>,
        next: impl Iterator<Item = (DeliveryAddress, PriorAttempt)>,
        text: &Redacted<String>,
    ) -> Result<Vec<(Delivery, PriorAttempt)>, StoreError> {
        let next: Vec<_> = next.collect();
        let account = delivery.account.to_string();
        let written: Vec<_> = next
            .iter()
            .map(|(address, tried)| NextDelivery {
                account: &account,
                address: serde_json::to_string(address).unwrap_or_default(),
                text: text.as_str(),
                tried: *tried,
            })
            .collect();
        let deliveries = &self.deliveries;
        let now = self.now();
        let rows = deliveries.hand_over(delivery.row, handed, &written, now);
        let deliveries = rows.await?.into_iter().zip(next);
        Ok(deliveries
            .map(|(row, (address, tried))| {
                let mut late =
                    Delivery::new(row, delivery.account.clone(), address, text.clone(), now);
                // It still belongs to the message that it answers, and is forgotten together with
                // that.
                late.message = delivery.message;
                (late, tried)
            })
            .collect())
    }

    fn not_sent(&self, delivery: &Delivery, path: &str, why: &str) -> Redacted<String> {
        let folder = self
            .files
            .folder(delivery.account.platform())
            .trim_end_matches('/');
        self.redactor.redact(format!(
            "[{path} was not sent: {why}. If it is there, it is still {folder}/{path}.]"
        ))
    }

    /// Gives up a conversation's files that did not arrive; their paths.
    pub(crate) async fn drop_late_files(
        &self,
        conversation: &ConversationKey,
    ) -> Result<Vec<String>, StoreError> {
        let (deliveries, paths) = self.destinations.give_up_late_files(conversation);
        for delivery in deliveries {
            self.deliveries.failed(delivery.row, GIVEN_UP).await?;
        }
        Ok(paths)
    }

    pub(super) async fn note_given_up(&self, row: DeliveryRow) {
        if let Err(error) = self.deliveries.failed(row, GIVEN_UP).await {
            tracing::error!(delivery = row.0, %error, "the ledger could not be written");
        }
    }
}

const GIVEN_UP: &str = "given up by /stop";

enum FileFailure {
    /// Trying again may help.
    Passing(SendError),
    Final(String),
}

#[cfg(test)]
mod tests;
