//! Replies to one place leave in the order they were written.
//!
//! A reply that has to wait holds up those behind it in its own line, and no other line.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermetic_types::{Place, Platform};
use tokio::time::Instant;

use super::attempt::Letter;

/// Whose line it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Door {
    pub(super) platform: Platform,
    pub(super) place: Place,
}

#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<HashMap<Door, Line>>);

/// It exists while a letter is in it.
#[derive(Debug, Default)]
struct Line {
    letters: VecDeque<Letter>,
    /// Somebody sends the letter that was first.
    at_work: bool,
    not_before: Option<Instant>,
}

impl Lines {
    pub(super) fn push(&self, letter: Letter) {
        let mut lines = self.lock();
        let line = lines.entry(letter.door()).or_default();
        line.letters.push_back(letter);
    }

    /// The letter to send next, unless somebody is at it or it is too early. Whoever takes it
    /// returns with [`done`](Self::done) or [`wait`](Self::wait).
    pub(super) fn take(&self, door: &Door, now: Instant) -> Option<Letter> {
        let mut lines = self.lock();
        let line = lines.get_mut(door)?;
        if line.at_work || line.not_before.is_some_and(|until| until > now) {
            return None;
        }
        let letter = line.letters.pop_front()?;
        line.at_work = true;
        Some(letter)
    }

    pub(super) fn done(&self, door: &Door) {
        let mut lines = self.lock();
        if let Some(line) = lines.get_mut(door) {
            line.at_work = false;
            line.not_before = None;
            if line.letters.is_empty() {
                lines.remove(door);
            }
        }
    }

    /// The letter stays first, and nothing leaves here before `until`.
    pub(super) fn wait(&self, letter: Letter, until: Instant) {
        let mut lines = self.lock();
        let line = lines.entry(letter.door()).or_default();
        line.at_work = false;
        line.not_before = Some(until);
        line.letters.push_front(letter);
    }

    /// Whether something waits here or is being sent.
    pub(super) fn is_busy(&self, door: &Door) -> bool {
        self.lock().contains_key(door)
    }

    /// Lines whose time has come.
    pub(super) fn ripe(&self, now: Instant) -> Vec<Door> {
        let lines = self.lock();
        let ripe = lines
            .iter()
            .filter(|(_, line)| !line.at_work && line.not_before.is_none_or(|until| until <= now));
        ripe.map(|(door, _)| door.clone()).collect()
    }

    /// When the next line's time comes.
    pub(super) fn next(&self) -> Option<Instant> {
        let lines = self.lock();
        let waiting = lines.values().filter(|line| !line.at_work);
        waiting.filter_map(|line| line.not_before).min()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Door, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn one_that_waits_is_not_overtaken_in_its_own_line() {
        let lines = Lines::default();
        let now = Instant::now();
        let [alice, bob] = [7, 8].map(Letter::to_nobody);
        let (door, other) = (alice.door(), bob.door());
        lines.push(alice.clone());
        let first = lines.take(&door, now).unwrap();
        lines.push(alice);
        lines.push(bob);
        assert!(lines.take(&door, now).is_none(), "two at once");
        lines.wait(first, now + MINUTE);
        assert!(lines.take(&door, now).is_none(), "overtaken");
        assert!(lines.take(&other, now).is_some(), "held up by another");
        lines.done(&other);
        assert_eq!(lines.next(), Some(now + MINUTE));
        assert_eq!(lines.ripe(now + MINUTE), std::slice::from_ref(&door));
        for _ in 0..2 {
            assert!(lines.take(&door, now + MINUTE).is_some());
            lines.done(&door);
        }
        assert!(!lines.is_busy(&door) && !lines.is_busy(&other));
    }
}
