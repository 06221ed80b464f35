//! How far each channel is stored, for platforms that do not hand an event over again.
//!
//! Such a platform has a history instead: after a gap the adapter reads it from the channel's position
//! on and hands out what it finds, under the same update ids as live events have. Whether an event is
//! done is decided by the gateway's ledger alone, so a position may lag behind and never runs ahead: from
//! a gap to the end of its sweep it stands still, because live events come meanwhile and what was lost
//! lies before them.
//!
//! Strangers leave nothing: a channel in which only they spoke is forgotten again, and beyond
//! [`MOST_CHANNELS`] the one goes in which nothing was said for the longest time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_types::ChatId;

use crate::{
    AdapterState, AdapterStateError, ReceiptWaiter, RecentKeys, SaveDurability, Signature,
};

/// A number that grows with every event of a channel, such as a message's id or its time.
pub type Position = u64;

/// Channels of one account whose positions are kept. Each is a row, and a history to read after a gap.
pub const MOST_CHANNELS: usize = 10_000;
/// Channels of strangers that are known as such.
const MOST_UNWELCOME: usize = 1000;
/// Events between others after which a position is written: a sweep reads so many more at the most.
const PASSED_IN_A_ROW: u32 = 20;

/// What the keys of positions begin with.
const PREFIX: &str = "position:";

/// The positions of one account's channels.
#[derive(Debug)]
pub struct ChannelPositions {
    state: Arc<dyn AdapterState>,
    channels: Mutex<PositionTable>,
}

#[derive(Debug)]
struct PositionTable {
    by_id: HashMap<ChatId, ChannelPosition>,
    /// There is a gap, and what was lost in it is not handed out yet.
    has_gap: bool,
    /// Where everybody was turned away. Nothing is written for them.
    unwelcome: RecentKeys<ChatId>,
    most: usize,
}

#[derive(Debug, Default)]
struct ChannelPosition {
    /// Everything up to here is stored.
    stored: Option<Position>,
    /// Events behind it that were handed out, and whether each is stored.
    handed_out: BTreeMap<Position, bool>,
    /// The last event that was not for us.
    passed: Option<Position>,
    /// How many of them there were since the position was written.
    passed_in_a_row: u32,
    /// Somebody spoke here who may, or did before this process began.
    welcome: bool,
    /// It has a row.
    kept: bool,
}

impl ChannelPositions {
    /// As the last process left them. A start is a gap.
    pub async fn load(state: Arc<dyn AdapterState>) -> Result<Self, AdapterStateError> {
        Self::load_at_most(state, MOST_CHANNELS).await
    }

    async fn load_at_most(
        state: Arc<dyn AdapterState>,
        most: usize,
    ) -> Result<Self, AdapterStateError> {
        let mut by_id = HashMap::new();
        for (key, value) in state.load_all(PREFIX).await? {
            let chat = key.strip_prefix(PREFIX).and_then(|id| ChatId::new(id).ok());
            // One that cannot be read is one that is not known: the channel begins anew.
            if let (Some(chat), Ok(stored)) = (chat, value.parse()) {
                let channel = ChannelPosition {
                    stored: Some(stored),
                    welcome: true,
                    kept: true,
                    ..ChannelPosition::default()
                };
                by_id.insert(chat, channel);
            }
        }
        Ok(Self {
            state,
            channels: Mutex::new(PositionTable {
                by_id,
                has_gap: true,
                unwelcome: RecentKeys::new(MOST_UNWELCOME),
                most,
            }),
        })
    }

    /// Begins a sweep, before anything is heard again: the channels whose histories are read, each from
    /// the event after this one.
    pub fn begin_sweep(&self) -> Vec<(ChatId, Position)> {
        let mut channels = self.lock();
        // Set before the histories are read: a live event that is stored meanwhile must not move
        // the position past what the gap swallowed.
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
            // In the same step as the moves: events that were stored during the sweep count from
            // here on.
            channels.has_gap = false;
            let all = channels.by_id.iter_mut();
            all.filter_map(|(chat, channel)| {
                let position = channel.advance()?;
                // Taken as kept before it is written. If the write fails the row has an older
                // position or none, and the next move writes it again.
                channel.kept = true;
                Some((chat.clone(), position))
            })
            .collect()
        };
        for (chat, position) in moved {
            self.save(&chat, position, SaveDurability::Soon).await?;
        }
        Ok(())
    }

    /// Notes an event before it is handed out, in whatever order events come. A channel that is new is
    /// on the disk when this returns, or the first thing said there could not be swept.
    pub async fn hand_out(&self, chat: &ChatId, at: Position) -> Result<(), AdapterStateError> {
        let (begun, forgotten) = {
            let mut channels = self.lock();
            let forgotten = channels.make_room_for(chat);
            let is_unwelcome = channels.unwelcome.contains(chat);
            let channel = channels.by_id.entry(chat.clone()).or_default();
            // One before the first event, so that a sweep after a crash brings this one too.
            channel.stored.get_or_insert(at.saturating_sub(1));
            // One from behind the position is stored already; its update id will tell.
            if channel.stored.is_some_and(|stored| at > stored) {
                channel.handed_out.insert(at, false);
            }
            // Not twice for each message of a stranger. One that could not be written is tried again.
            let begun = channel.stored.filter(|_| !channel.kept && !is_unwelcome);
            (begun, forgotten)
        };
        // Before the new row is written, so that there are never more rows than channels may be.
        if let Some(forgotten) = forgotten {
            self.state.remove(&key(&forgotten)).await?;
        }
        if let Some(begun) = begun {
            self.save(chat, begun, SaveDurability::OnDisk).await?;
            if let Some(channel) = self.lock().by_id.get_mut(chat) {
                channel.kept = true;
            }
        }
        Ok(())
    }

    /// Moves a channel's position past an event that was not for us, or a sweep would read all of what
    /// others said between each other. Such events come in order. Where nobody speaks to us nothing is
    /// known, and that stays so. Written now and then: a sweep that begins a little too early finds what
    /// it knows.
    pub async fn pass_over(&self, chat: &ChatId, at: Position) -> Result<(), AdapterStateError> {
        let moved = {
            let mut channels = self.lock();
            let has_gap = channels.has_gap;
            let Some(channel) = channels.by_id.get_mut(chat) else {
                return Ok(());
            };
            channel.passed = channel.passed.max(Some(at));
            let moved = if has_gap { None } else { channel.advance() };
            channel.passed_in_a_row += 1;
            let is_due = channel.kept && channel.passed_in_a_row >= PASSED_IN_A_ROW;
            moved
                .filter(|_| is_due)
                .inspect(|_| channel.passed_in_a_row = 0)
        };
        match moved {
            Some(position) => self.save(chat, position, SaveDurability::Soon).await,
            None => Ok(()),
        }
    }

    /// Whether this channel has a position.
    pub fn knows(&self, chat: &ChatId) -> bool {
        self.lock().by_id.contains_key(chat)
    }

    /// Waits for the receipt and moves the channel's position, if that is possible. Whether the event is
    /// stored; one that is not holds the position until a sweep brings it again.
    pub async fn settle(
        &self,
        chat: &ChatId,
        at: Position,
        receipt: ReceiptWaiter,
    ) -> Result<bool, AdapterStateError> {
        // Not signed: it stays in the list as handed out, and everything behind it waits for the
        // sweep that brings it again.
        let Some(signature) = receipt.signature().await else {
            return Ok(false);
        };
        let (moved, is_over) = self.note_signed(chat, at, signature);
        if is_over {
            self.state.remove(&key(chat)).await?;
        }
        if let Some(position) = moved {
            // A position of a moment ago costs a sweep a few events that are known.
            self.save(chat, position, SaveDurability::Soon).await?;
        }
        Ok(true)
    }

    /// The channel's new position, if it moved, and whether its row is to go: only strangers spoke there.
    fn note_signed(
        &self,
        chat: &ChatId,
        at: Position,
        signature: Signature,
    ) -> (Option<Position>, bool) {
        let mut channels = self.lock();
        let has_gap = channels.has_gap;
        let Some(channel) = channels.by_id.get_mut(chat) else {
            return (None, false);
        };
        if let Some(stored) = channel.handed_out.get_mut(&at) {
            *stored = true;
        }
        channel.welcome |= signature == Signature::Stored;
        if channel.welcome {
            // The first word of somebody who was a stranger before moves it, too.
            let moved = if has_gap { None } else { channel.advance() };
            channel.kept |= moved.is_some();
            return (moved, false);
        }
        if channel.handed_out.values().any(|stored| !stored) {
            return (None, false);
        }
        let had_row = channel.kept;
        // Only strangers, and all of what they said is settled. Known as such from now on, so that
        // their next word costs no write.
        channels.by_id.remove(chat);
        channels.unwelcome.note(chat.clone(), ());
        (None, had_row)
    }

    async fn save(
        &self,
        chat: &ChatId,
        position: Position,
        saving: SaveDurability,
    ) -> Result<(), AdapterStateError> {
        let position = position.to_string();
        self.state.save(&key(chat), &position, saving).await
    }

    fn lock(&self) -> MutexGuard<'_, PositionTable> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(chat: &ChatId) -> String {
    format!("{PREFIX}{chat}")
}

impl PositionTable {
    /// Forgets the channel in which nothing was said for the longest time, if there is one too many and
    /// this is not one of them. Positions of one platform are times, or grow like them.
    fn make_room_for(&mut self, chat: &ChatId) -> Option<ChatId> {
        if self.by_id.len() < self.most || self.by_id.contains_key(chat) {
            return None;
        }
        let silent = self
            .by_id
            .iter()
            .filter(|(_, channel)| channel.handed_out.is_empty());
        // Never one with an event under way: its receipt would come to a channel that is not there,
        // and the position of the new one would begin behind it.
        let oldest = silent.min_by_key(|(_, channel)| channel.stored)?.0.clone();
        let kept = self
            .by_id
            .remove(&oldest)
            .is_some_and(|channel| channel.kept);
        kept.then_some(oldest)
    }
}

impl ChannelPosition {
    /// Past every event before which nothing is open; the new position, if it moved.
    fn advance(&mut self) -> Option<Position> {
        let before = self.stored;
        while let Some(first) = self.handed_out.first_entry().filter(|first| *first.get()) {
            self.stored = Some(first.remove_entry().0);
        }
        // What was passed over counts as far as nothing before it is open.
        let open = self.handed_out.first_key_value();
        let passed = match open {
            Some((open, _)) => self.passed.map(|passed| passed.min(open.saturating_sub(1))),
            None => self.passed,
        };
        self.stored = self.stored.max(passed.filter(|_| self.stored.is_some()));
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

    #[tokio::test]
    async fn chatter_moves_the_position_of_a_known_channel_and_of_no_other() {
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let positions = ChannelPositions::load(Arc::clone(&state)).await.unwrap();
        positions.end_sweep().await.unwrap();
        speaks(&positions, 1, 10, Signature::Stored).await;
        let chat = ChatId::from(1);
        for at in 11..=110 {
            positions.pass_over(&chat, at).await.unwrap();
            positions.pass_over(&ChatId::from(2), at).await.unwrap();
        }
        assert!(!positions.knows(&ChatId::from(2)));
        assert_eq!(positions.begin_sweep(), [(chat.clone(), 110)]);
        assert_eq!(rows(&state).await, ["position:1"]);
        let next = ChannelPositions::load(Arc::clone(&state)).await.unwrap();
        let [(_, kept)] = next.begin_sweep()[..] else {
            panic!("one channel is known");
        };
        assert!((90..=110).contains(&kept), "{kept} lags too much");

        // In a gap it stands still, and it never passes what is open.
        positions.pass_over(&chat, 111).await.unwrap();
        assert_eq!(positions.begin_sweep(), [(chat.clone(), 110)]);
        positions.hand_out(&chat, 113).await.unwrap();
        positions.pass_over(&chat, 120).await.unwrap();
        positions.end_sweep().await.unwrap();
        assert_eq!(positions.begin_sweep(), [(chat.clone(), 112)]);
        settle(&positions, &chat, 113, true).await;
        positions.end_sweep().await.unwrap();
        assert_eq!(positions.begin_sweep(), [(chat, 120)]);
    }

    async fn rows(state: &Arc<dyn AdapterState>) -> Vec<String> {
        let rows = state.load_all(PREFIX).await.unwrap();
        rows.into_iter().map(|(key, _)| key).collect()
    }

    async fn speaks(positions: &ChannelPositions, chat: i64, at: Position, signature: Signature) {
        let chat = ChatId::from(chat);
        positions.hand_out(&chat, at).await.unwrap();
        let (receipt, counterfoil) = Receipt::pair();
        match signature {
            Signature::Stored => receipt.stored(),
            Signature::TurnedAway => receipt.turned_away(),
        }
        assert!(positions.settle(&chat, at, counterfoil).await.unwrap());
    }

    #[tokio::test]
    async fn strangers_leave_no_rows_and_who_is_let_in_later_gets_one() {
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let positions = ChannelPositions::load(Arc::clone(&state)).await.unwrap();
        positions.end_sweep().await.unwrap();
        let chat = ChatId::from(1);
        // On the disk while nobody knows who it is: a crash now must not lose it.
        positions.hand_out(&chat, 4).await.unwrap();
        assert_eq!(rows(&state).await, ["position:1"]);
        for stranger in 1..=3 {
            speaks(&positions, stranger, 5, Signature::TurnedAway).await;
        }
        assert_eq!(
            rows(&state).await,
            ["position:1"],
            "one of them is not decided"
        );
        let (receipt, counterfoil) = Receipt::pair();
        receipt.turned_away();
        positions.settle(&chat, 4, counterfoil).await.unwrap();
        assert_eq!(rows(&state).await, [""; 0]);
        speaks(&positions, 2, 6, Signature::Stored).await;
        speaks(&positions, 2, 7, Signature::TurnedAway).await;
        assert_eq!(rows(&state).await, ["position:2"]);
        assert_eq!(positions.begin_sweep(), [(ChatId::from(2), 7)]);
    }

    #[tokio::test]
    async fn beyond_the_most_the_most_silent_channel_goes() {
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let positions = ChannelPositions::load_at_most(Arc::clone(&state), 3).await;
        let positions = positions.unwrap();
        positions.end_sweep().await.unwrap();
        for (chat, at) in [(1, 10), (2, 20), (3, 30), (1, 40), (4, 50)] {
            speaks(&positions, chat, at, Signature::Stored).await;
        }
        assert_eq!(
            rows(&state).await,
            ["position:1", "position:3", "position:4"]
        );
    }
}
