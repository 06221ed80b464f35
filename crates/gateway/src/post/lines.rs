//! Replies to one place leave in the order they were written.
//!
//! A reply that has to wait holds up those behind it in its own line, and no other line. A late file has a
//! line to itself.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermetic_store::DeliveryRow;
use hermetic_types::{ConversationKey, Place, Platform};
use tokio::time::Instant;

use super::attempt::Letter;

/// Whose line it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Door {
    pub(super) platform: Platform,
    pub(super) place: Place,
    /// The line of this file alone.
    pub(super) late_file: Option<DeliveryRow>,
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
    /// Of a late file's line: whose file it is, and its path.
    late: Option<(ConversationKey, String)>,
    /// What is being sent is not to be tried again.
    given_up: bool,
}

impl Lines {
    pub(super) fn push(&self, letter: Letter) {
        let mut lines = self.lock();
        let line = lines.entry(letter.door()).or_default();
        line.late = letter.late_file();
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

    /// The letter stays first, and nothing leaves here before `until`. `false` if it was given up
    /// meanwhile.
    pub(super) fn wait(&self, letter: Letter, until: Instant) -> bool {
        let mut lines = self.lock();
        let door = letter.door();
        let line = lines.entry(door.clone()).or_default();
        if line.given_up {
            lines.remove(&door);
            return false;
        }
        line.late = letter.late_file();
        line.at_work = false;
        line.not_before = Some(until);
        line.letters.push_front(letter);
        true
    }

    /// Takes a conversation's late files out: those that wait, and the paths of all of them. One that is
    /// being sent at this moment is not tried again.
    pub(super) fn give_up_late_files(
        &self,
        conversation: &ConversationKey,
    ) -> (Vec<Letter>, Vec<String>) {
        let mut lines = self.lock();
        let (mut letters, mut paths) = (Vec::new(), Vec::new());
        lines.retain(|_, line| {
            let Some((_, path)) = line
                .late
                .as_ref()
                .filter(|(whose, _)| whose == conversation)
            else {
                return true;
            };
            paths.push(path.clone());
            letters.extend(line.letters.drain(..));
            line.given_up = line.at_work;
            line.at_work
        });
        (letters, paths)
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
        assert!(lines.wait(first, now + MINUTE));
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
