//! How many may live at once.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use hermetic_types::ConversationKey;
use tokio::time::Instant;

use crate::slot::{SandboxHolder, SandboxSlot};
use crate::{LeaseError, Sandboxes};

impl Sandboxes {
    /// Claims a place. Where all are taken, or all that one person may have, an idle sandbox is let go:
    /// theirs that has been idle longest, and only where they have none the longest idle of whoever has
    /// most.
    pub(crate) async fn make_room(
        &self,
        slot: &Arc<SandboxSlot>,
        holder: Option<&SandboxHolder>,
    ) -> Result<(), LeaseError> {
        // Bounded: each round that does not end lets one sandbox go.
        for _ in 0..=self.max_sandboxes() {
            let Some((conversation, since)) = self.claim_or_name_idle(slot, holder)? else {
                return Ok(());
            };
            if let Err(error) = self.let_go(&conversation, since).await {
                tracing::warn!(%conversation, %error, "an idle sandbox could not make room");
                break;
            }
        }
        Err(LeaseError::Full {
            most: self.max_sandboxes(),
        })
    }

    /// Claims a free place, or names the conversation whose sandbox has to go for it.
    fn claim_or_name_idle(
        &self,
        slot: &Arc<SandboxSlot>,
        holder: Option<&SandboxHolder>,
    ) -> Result<Option<(ConversationKey, Instant)>, LeaseError> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held: HashMap<Option<SandboxHolder>, usize> = HashMap::new();
        let mut idle = Vec::new();
        for (key, other) in slots.iter() {
            if Arc::ptr_eq(other, slot) || !other.is_claimed() {
                continue;
            }
            let whose = other.holder();
            if let Some(since) = other.idle_since() {
                idle.push((whose.clone(), since, key));
            }
            *held.entry(whose).or_default() += 1;
        }
        let own = holder.map_or(0, |holder| {
            held.get(&Some(holder.clone())).copied().unwrap_or(0)
        });
        let is_own = |whose: &Option<SandboxHolder>| holder.is_some() && whose.as_ref() == holder;
        let own_full = own >= self.max_sandboxes_per_user();
        if !own_full && held.values().sum::<usize>() < self.max_sandboxes() {
            // Under the lock on all slots, together with the count: two that come at once cannot
            // both take the last place.
            slot.claim();
            if let Some(holder) = holder {
                slot.note_holder(holder);
            }
            return Ok(None);
        }
        if own_full {
            // Who has as many as one person may have makes room with their own; nobody else's work
            // ends for that.
            idle.retain(|(whose, ..)| is_own(whose));
        }
        let count = |whose: &Option<SandboxHolder>| held.get(whose).copied().unwrap_or(0);
        let goes = idle.into_iter().min_by_key(|(whose, since, _)| {
            // Those whose holder is not known are taken one by one, not as one person's.
            let crowd = whose.as_ref().map_or(1, |_| count(whose));
            (!is_own(whose), Reverse(crowd), *since)
        });
        match goes {
            Some((_, since, key)) => Ok(Some((key.clone(), since))),
            None if own_full => Err(LeaseError::FullForHolder {
                most: self.max_sandboxes_per_user(),
            }),
            None => Err(LeaseError::Full {
                most: self.max_sandboxes(),
            }),
        }
    }

    /// How many places are taken.
    pub(crate) fn claimed(&self) -> usize {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.values().filter(|slot| slot.is_claimed()).count()
    }
}
