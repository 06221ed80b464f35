//! How many may live at once.

use std::sync::{Arc, PoisonError};

use hermetic_types::ConversationKey;
use tokio::time::Instant;

use crate::slot::Slot;
use crate::{LeaseError, Sandboxes};

impl Sandboxes {
    /// Claims a place, letting the longest idle sandbox go when all are taken.
    pub(crate) async fn make_room(&self, slot: &Arc<Slot>) -> Result<(), LeaseError> {
        // Bounded: each round that does not end lets one sandbox go.
        for _ in 0..=self.plan.most {
            let Some((conversation, since)) = self.claim_or_name_idle(slot)? else {
                return Ok(());
            };
            if let Err(error) = self.let_go(&conversation, since).await {
                tracing::warn!(%conversation, %error, "an idle sandbox could not make room");
                break;
            }
        }
        Err(LeaseError::Full {
            most: self.plan.most,
        })
    }

    /// Claims a free place, or names the conversation that has been idle longest.
    fn claim_or_name_idle(
        &self,
        slot: &Arc<Slot>,
    ) -> Result<Option<(ConversationKey, Instant)>, LeaseError> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let others = || {
            let others = slots.iter().filter(|(_, other)| !Arc::ptr_eq(other, slot));
            others.filter(|(_, other)| other.is_claimed())
        };
        if others().count() < self.plan.most {
            slot.claim();
            return Ok(None);
        }
        others()
            .filter_map(|(key, other)| other.idle_since().map(|since| (key.clone(), since)))
            .min_by_key(|(_, since)| *since)
            .map(Some)
            .ok_or(LeaseError::Full {
                most: self.plan.most,
            })
    }

    /// How many places are taken.
    pub(crate) fn claimed(&self) -> usize {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.values().filter(|slot| slot.is_claimed()).count()
    }
}
