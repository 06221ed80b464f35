//! How far each channel is stored, for platforms that do not hand an event over again.
//!
//! Such a platform has a history instead: after a gap the adapter reads it from the channel's position
//! on and hands out what it finds, under the same update ids as live events have. Whether an event is
//! done is decided by the gateway's ledger alone, so a position may lag behind and never runs ahead: from
//! a gap to the end of its sweep it stands still, because live events come meanwhile and what was lost
//! lies before them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_types::ChatId;

use crate::{AdapterState, AdapterStateError, Counterfoil, Saving};

/// A number that grows with every event of a channel, such as a message's id or its time.
pub type Position = u64;

/// What the keys of positions begin with.
const PREFIX: &str = "position:";

/// The positions of one account's channels.
#[derive(Debug)]
pub struct ChannelPositions {
    state: Arc<dyn AdapterState>,
    channels: Mutex<Channels>,
}

#[derive(Debug)]
struct Channels {
    by_id: HashMap<ChatId, Channel>,
    /// There is a gap, and what was lost in it is not handed out yet.
    has_gap: bool,
}

#[derive(Debug, Default)]
struct Channel {
    /// Everything up to here is stored.
    stored: Option<Position>,
    /// Events behind it that were handed out, and whether each is stored.
    handed_out: BTreeMap<Position, bool>,
}

impl ChannelPositions {
    /// As the last process left them. A start is a gap.
    pub async fn load(state: Arc<dyn AdapterState>) -> Result<Self, AdapterStateError> {
        let mut by_id = HashMap::new();
        for (key, value) in state.load_all(PREFIX).await? {
            let chat = key.strip_prefix(PREFIX).and_then(|id| ChatId::new(id).ok());
            // One that cannot be read is one that is not known: the channel begins anew.
            if let (Some(chat), Ok(stored)) = (chat, value.parse()) {
                let channel = Channel {
                    stored: Some(stored),
                    ..Channel::default()
                };
                by_id.insert(chat, channel);
            }
        }
        Ok(Self {
            state,
            channels: Mutex::new(Channels {
                by_id,
                has_gap: true,
            }),
        })
    }

    /// Begins a sweep, before anything is heard again: the channels whose histories are read, each from
    /// the event after this one.
    pub fn begin_sweep(&self) -> Vec<(ChatId, Position)> {
        let mut channels = self.lock();
        channels.has_gap = true;
        let known = channels.by_id.iter();
        known
            .filter_map(|(chat, channel)| Some((chat.clone(), channel.stored?)))
            .collect()
    }

    /// Everything that the histories held is handed out: positions move again.
    pub async fn end_sweep(&self) -> Result<(), AdapterStateError> {
        let moved: Vec<_> = {
            let mut channels = self.lock();
            channels.has_gap = false;
            let all = channels.by_id.iter_mut();
            all.filter_map(|(chat, channel)| Some((chat.clone(), channel.advance()?)))
                .collect()
        };
        for (chat, position) in moved {
            self.save(&chat, position, Saving::Soon).await?;
        }
        Ok(())
    }

    /// Notes an event before it is handed out, in whatever order events come. A channel that is new is
    /// on the disk when this returns, or the first thing said there could not be swept.
    pub async fn hand_out(&self, chat: &ChatId, at: Position) -> Result<(), AdapterStateError> {
        let begun = {
            let mut channels = self.lock();
            let channel = channels.by_id.entry(chat.clone()).or_default();
            let begun = channel.stored.is_none().then(|| at.saturating_sub(1));
            channel.stored = channel.stored.or(begun);
            // One from behind the position is stored already; its update id will tell.
            if channel.stored.is_some_and(|stored| at > stored) {
                channel.handed_out.insert(at, false);
            }
            begun
        };
        match begun {
            Some(begun) => self.save(chat, begun, Saving::OnDisk).await,
            None => Ok(()),
        }
    }

    /// Waits for the receipt and moves the channel's position, if that is possible. Whether the event is
    /// stored; one that is not holds the position until a sweep brings it again.
    pub async fn settle(
        &self,
        chat: &ChatId,
        at: Position,
        receipt: Counterfoil,
    ) -> Result<bool, AdapterStateError> {
        if !receipt.signed().await {
            return Ok(false);
        }
        if let Some(position) = self.note_stored(chat, at) {
            // A position of a moment ago costs a sweep a few events that are known.
            self.save(chat, position, Saving::Soon).await?;
        }
        Ok(true)
    }

    /// The channel's new position, if it moved.
    fn note_stored(&self, chat: &ChatId, at: Position) -> Option<Position> {
        let mut channels = self.lock();
        let has_gap = channels.has_gap;
        let channel = channels.by_id.get_mut(chat)?;
        if let Some(stored) = channel.handed_out.get_mut(&at) {
            *stored = true;
        }
        if has_gap { None } else { channel.advance() }
    }

    async fn save(
        &self,
        chat: &ChatId,
        position: Position,
        saving: Saving,
    ) -> Result<(), AdapterStateError> {
        let key = format!("{PREFIX}{chat}");
        self.state.save(&key, &position.to_string(), saving).await
    }

    fn lock(&self) -> MutexGuard<'_, Channels> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Channel {
    /// Past every event before which nothing is open; the new position, if it moved.
    fn advance(&mut self) -> Option<Position> {
        let before = self.stored;
        while let Some(first) = self.handed_out.first_entry().filter(|first| *first.get()) {
            self.stored = Some(first.remove_entry().0);
        }
        self.stored.filter(|stored| Some(*stored) != before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InMemoryState, Receipt};

    async fn settle(positions: &ChannelPositions, chat: &ChatId, at: Position, stored: bool) {
        let (receipt, counterfoil) = Receipt::pair();
        match stored {
            true => receipt.stored(),
            false => drop(receipt),
        }
        let settled = positions.settle(chat, at, counterfoil).await.unwrap();
        assert_eq!(settled, stored);
    }

    #[tokio::test]
    async fn a_position_does_not_pass_what_is_not_stored() {
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let positions = ChannelPositions::load(Arc::clone(&state)).await.unwrap();
        positions.end_sweep().await.unwrap();
        let chat = ChatId::from(7);
        let at = |position| [(chat.clone(), position)];
        for position in [10, 12, 11] {
            positions.hand_out(&chat, position).await.unwrap();
        }
        settle(&positions, &chat, 12, true).await;
        assert_eq!(positions.begin_sweep(), at(9), "two before it are open");
        positions.end_sweep().await.unwrap();
        settle(&positions, &chat, 10, true).await;
        settle(&positions, &chat, 11, false).await;

        let next = ChannelPositions::load(state).await.unwrap();
        assert_eq!(next.begin_sweep(), at(10));
        // Something new is stored before the history is read.
        for position in [13, 11, 12] {
            next.hand_out(&chat, position).await.unwrap();
            settle(&next, &chat, position, true).await;
            assert_eq!(next.begin_sweep(), at(10), "the gap is not swept yet");
        }
        next.end_sweep().await.unwrap();
        assert_eq!(next.begin_sweep(), at(13));
    }
}
