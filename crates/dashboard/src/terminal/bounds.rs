//! Terminals that are open, and how many may be.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hermetic_types::RunId;
use hermetic_warden::client::StdinStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::TerminalSize;

/// Terminals of one person at once.
const MOST_EACH: usize = 4;

/// Terminals of everybody. Each holds a connection of the port that everybody shares, and a shell in a sandbox.
const MOST_TERMINALS: usize = 16;

/// A terminal in which nobody typed for so long is closed, whatever it prints: its sandbox is kept for its sake.
pub(super) const LONGEST_SILENCE: Duration = Duration::from_secs(15 * 60);

/// What one request may type. A paste that is longer comes in several.
pub(super) const MOST_KEYS: usize = 8 << 10;

/// How long keys wait for a program that does not read.
pub(super) const KEYS_TIMEOUT: Duration = Duration::from_secs(5);

/// Every open terminal, by its name.
#[derive(Debug, Default)]
pub(crate) struct TerminalSeats {
    open: Mutex<HashMap<RunId, TerminalSeat>>,
}

/// One open terminal, as requests about it see it.
#[derive(Debug)]
struct TerminalSeat {
    who: String,
    /// Absent until the shell has started.
    handle: Option<TerminalHandle>,
}

/// The way to a shell that runs.
#[derive(Clone, Debug)]
pub(super) struct TerminalHandle {
    pub(super) stdin: StdinStream,
    pub(super) orders: mpsc::Sender<TerminalOrder>,
    /// Held while keys are written, so that two requests do not mix.
    pub(super) typing: Arc<tokio::sync::Mutex<()>>,
    pub(super) typed_at: Arc<Mutex<Instant>>,
}

/// What a terminal is told besides keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TerminalOrder {
    Resize(TerminalSize),
    Close,
}

/// A place among the open ones, given back when it is dropped.
#[derive(Debug)]
pub(super) struct SeatGuard {
    seats: Arc<TerminalSeats>,
    id: RunId,
}

/// Whose bound was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeatsTaken {
    ByYou,
    ByAll,
}

impl TerminalSeats {
    pub(super) fn take(self: &Arc<Self>, who: &str) -> Result<SeatGuard, SeatsTaken> {
        let mut open = self.open();
        if open.values().filter(|seat| seat.who == who).count() >= MOST_EACH {
            return Err(SeatsTaken::ByYou);
        }
        if open.len() >= MOST_TERMINALS {
            return Err(SeatsTaken::ByAll);
        }
        let (id, who) = (RunId::random(), who.to_owned());
        open.insert(id.clone(), TerminalSeat { who, handle: None });
        Ok(SeatGuard {
            seats: Arc::clone(self),
            id,
        })
    }

    /// The terminal of this name, if it is this person's.
    pub(super) fn find(&self, id: &str, who: &str) -> Option<TerminalHandle> {
        let open = self.open();
        let mut own = open.iter().filter(|(_, seat)| seat.who == who);
        let (_, seat) = own.find(|(name, _)| name.as_str() == id)?;
        seat.handle.clone()
    }

    fn open(&self) -> MutexGuard<'_, HashMap<RunId, TerminalSeat>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SeatGuard {
    pub(super) fn id(&self) -> &RunId {
        &self.id
    }

    pub(super) fn started(&self, handle: TerminalHandle) {
        if let Some(seat) = self.seats.open().get_mut(&self.id) {
            seat.handle = Some(handle);
        }
    }
}

impl Drop for SeatGuard {
    fn drop(&mut self) {
        self.seats.open().remove(&self.id);
    }
}

impl TerminalHandle {
    /// A person is there.
    pub(super) fn note_typing(&self) {
        *lock(&self.typed_at) = Instant::now();
    }

    /// Hands these keys to the shell. False where the program does not take them in time.
    pub(super) async fn write(&self, keys: Bytes) -> bool {
        let writing = async {
            // Within the same time: who waits behind keys that nobody takes gives up like them.
            let _turn = self.typing.lock().await;
            self.stdin.write(&keys).await.is_ok()
        };
        tokio::time::timeout(KEYS_TIMEOUT, writing)
            .await
            .unwrap_or(false)
    }
}

pub(super) fn lock(at: &Mutex<Instant>) -> MutexGuard<'_, Instant> {
    at.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_bounded_for_each_and_for_all_and_come_back() {
        let seats = Arc::new(TerminalSeats::default());
        let ada: Vec<_> = (0..MOST_EACH).map(|_| seats.take("ada").unwrap()).collect();
        assert_eq!(seats.take("ada").unwrap_err(), SeatsTaken::ByYou);
        let others: Vec<_> = (MOST_EACH..MOST_TERMINALS)
            .map(|number| seats.take(&format!("{}", number / 2)).unwrap())
            .collect();
        assert_eq!(seats.take("late").unwrap_err(), SeatsTaken::ByAll);
        drop(ada);
        drop(seats.take("late").unwrap());
        drop(others);
        assert!(seats.open().is_empty());
    }

    #[test]
    fn a_terminal_is_found_by_its_owner_and_not_before_it_runs() {
        let seats = Arc::new(TerminalSeats::default());
        let seat = seats.take("ada").unwrap();
        assert!(seats.find(seat.id().as_str(), "ada").is_none());
        assert!(seats.find(seat.id().as_str(), "bob").is_none());
        assert!(seats.find("", "ada").is_none());
    }
}
