//! Who sends what is first in a line, and what becomes of the line when that goes wrong.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use hermetic_store::StoreError;
use tokio::time::Instant;

use super::attempt::{AttemptRest, Delivery, MOST_TRIES, pause_after_tries};
use super::destinations::Destination;
use super::outbox::{Outbox, a_moment_after};

/// A ledger that cannot be written is left alone for so long.
pub(super) const LEDGER_PAUSE: Duration = Duration::from_secs(10);

/// The first delivery of a line, taken out to be sent. Dropped in the middle of it, as by a panic or by whoever
/// does not wait any longer, it goes back to where it was: a line that stays taken would never send again.
struct DeliveryInHand<'a> {
    outbox: &'a Outbox,
    delivery: Delivery,
    tries_before: u32,
    is_settled: bool,
}

impl Outbox {
    /// Sends what is first in this line, and what is behind it, until one has to wait.
    pub(super) async fn work_off(&self, destination: &Destination) {
        while let Some(delivery) = self.destinations.take(destination, Instant::now()) {
            let row = delivery.row;
            let mut in_hand = DeliveryInHand::new(self, delivery);
            let tried = AssertUnwindSafe(self.try_to_send(&mut in_hand.delivery)).catch_unwind();
            let tried = tokio::select! {
                tried = tried => tried,
                // It stays open in the ledger, and the next start sends it.
                // Returned without `done`, so the line stays taken and nothing that is behind
                // overtakes it.
                () = a_moment_after(&self.cut) => {
                    in_hand.is_settled = true;
                    return;
                }
            };
            let tried = match tried {
                Ok(tried) => tried,
                Err(_) => {
                    tracing::error!(
                        delivery = row.0,
                        "sending a reply broke down; this is a bug"
                    );
                    self.after_a_panic(&mut in_hand).await
                }
            };
            let rest = tried.unwrap_or_else(|error| {
                tracing::error!(delivery = row.0, %error, "the ledger could not be written");
                // What is sent by now is noted on the delivery, so the next attempt only writes
                // the rest down.
                AttemptRest::TryAgain(Instant::now() + self.ledger_pause)
            });
            match rest {
                AttemptRest::Nothing => {
                    in_hand.is_settled = true;
                    self.destinations.done(destination);
                }
                AttemptRest::TryAgain(at) => {
                    if !in_hand.put_back(at) {
                        self.note_given_up(row).await;
                    }
                }
            }
        }
    }

    async fn after_a_panic(
        &self,
        in_hand: &mut DeliveryInHand<'_>,
    ) -> Result<AttemptRest, StoreError> {
        in_hand.note_breakdown();
        let delivery = &in_hand.delivery;
        if delivery.tries >= MOST_TRIES {
            let why = "sending it broke down";
            self.deliveries.failed(delivery.row, why).await?;
            return Ok(AttemptRest::Nothing);
        }
        let pause = pause_after_tries(delivery.tries);
        Ok(AttemptRest::TryAgain(Instant::now() + pause))
    }
}

impl<'a> DeliveryInHand<'a> {
    fn new(outbox: &'a Outbox, delivery: Delivery) -> Self {
        Self {
            outbox,
            tries_before: delivery.tries,
            delivery,
            is_settled: false,
        }
    }

    /// Nobody saw how the attempt ended.
    fn note_breakdown(&mut self) {
        // Counted right before anything leaves.
        if self.delivery.tries > self.tries_before {
            self.delivery.may_have_left();
        }
    }

    /// `false` if it was given up meanwhile.
    fn put_back(&mut self, until: Instant) -> bool {
        self.is_settled = true;
        let is_wanted = self.outbox.destinations.wait(self.delivery.clone(), until);
        self.outbox.wake.notify_one();
        is_wanted
    }
}

impl Drop for DeliveryInHand<'_> {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        self.note_breakdown();
        // If it was given up meanwhile, the ledger still has it open: nothing can be written from here. The
        // next start sends it.
        let until = Instant::now() + pause_after_tries(self.delivery.tries);
        self.put_back(until);
    }
}

#[cfg(test)]
mod tests;
