//! One attempt to send a reply, and what its failure means for the next.

use std::time::Duration;

use hermetic_chat::{Chat, Outgoing, Reply, SendError, SendFailure};
use hermetic_redact::Redacted;
use hermetic_store::{DeliveryRow, StoreError};
use hermetic_types::Platform;
use tokio::time::Instant;

use super::{Address, Post, a_moment_after};
use crate::wording::{POSSIBLE_DUPLICATE, now};

/// With pauses of up to five minutes, about a day.
const MOST_TRIES: u32 = 300;
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
const LONGEST_THROTTLE: Duration = Duration::from_secs(3600);

/// A reply on its way.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    row: DeliveryRow,
    platform: Platform,
    address: Address,
    text: Redacted<String>,
    tries: u32,
    /// Messages of it that arrived.
    arrived: usize,
    /// The next message of it may have arrived.
    pub(super) maybe_sent: bool,
}

impl Letter {
    pub(super) fn new(
        row: DeliveryRow,
        platform: Platform,
        address: Address,
        text: Redacted<String>,
    ) -> Self {
        Self {
            row,
            platform,
            address,
            text,
            tries: 0,
            arrived: 0,
            maybe_sent: false,
        }
    }
}

impl Post {
    /// Sends once. What may yet succeed is put aside for the courier.
    pub(super) async fn send(&self, letter: Letter) {
        let row = letter.row;
        let tried = tokio::select! {
            tried = self.try_to_send(letter) => tried,
            // It stays open in the ledger, and the next start sends it.
            () = a_moment_after(&self.cut) => return,
        };
        if let Err(error) = tried {
            // The same.
            tracing::error!(delivery = row.0, %error, "the ledger could not be written");
        }
    }

    async fn try_to_send(&self, mut letter: Letter) -> Result<(), StoreError> {
        let Some(chat) = self.chats.get(&letter.platform) else {
            return self
                .deliveries
                .failed(letter.row, "the platform is not configured")
                .await;
        };
        self.deliveries.begin(letter.row).await?;
        letter.tries += 1;
        let Err(error) = self.hand_over(chat.as_ref(), &mut letter).await else {
            return self.deliveries.sent(letter.row, now()).await;
        };
        let failure = error.failure;
        tracing::warn!(delivery = letter.row.0, tries = letter.tries, %failure, "a reply was not sent");
        let final_failure = matches!(
            failure,
            SendFailure::Empty | SendFailure::TooLong { .. } | SendFailure::Refused { .. }
        );
        if final_failure || letter.tries >= MOST_TRIES {
            return self
                .deliveries
                .failed(letter.row, &failure.to_string())
                .await;
        }
        letter.maybe_sent |= !failure.is_safe_to_repeat();
        if letter.arrived == 0 && !letter.maybe_sent {
            self.deliveries
                .put_back(letter.row, &failure.to_string())
                .await?;
        }
        let pause = match failure {
            SendFailure::Throttled { retry_after } => retry_after.min(LONGEST_THROTTLE),
            _ => Duration::from_secs(1 << letter.tries.min(9)).min(LONGEST_PAUSE),
        };
        self.again()
            .insert(letter.row, (Instant::now() + pause, letter));
        self.wake.notify_one();
        Ok(())
    }

    /// Message by message, so that a second attempt goes on where the first ended.
    async fn hand_over(&self, chat: &dyn Chat, letter: &mut Letter) -> Result<(), SendError> {
        let parts = chat.parts(&Outgoing::from(letter.text.clone()));
        for (index, part) in parts.into_iter().enumerate().skip(letter.arrived) {
            let text = if letter.maybe_sent {
                self.redactor
                    .redact(format!("{POSSIBLE_DUPLICATE}{}", part.as_str()))
                    .into()
            } else {
                part
            };
            let mut reply = Reply::text(text);
            reply.reply_to = letter.address.reply_to.clone().filter(|_| index == 0);
            chat.send(&letter.address.place, &reply).await?;
            letter.arrived += 1;
            letter.maybe_sent = false;
        }
        Ok(())
    }
}
