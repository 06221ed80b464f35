//! Guesses at a credential, counted.
//!
//! Whoever has an origin say a text learns from what is starred in it, or comes late, whether a part of the
//! credential stands there. That cannot be had without telling: an echo has to be taken out. So an answer
//! to a guess costs something. Every part that was seen to be acted on counts once for a conversation, and
//! after a few *different* ones the conversation has lost the credential, until an operator gives it back.
//! A letter learnt is another part, so that no more letters are learnt than parts are allowed; an origin
//! that echoes the same part in every answer, or the whole, costs nothing.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// A part of a secret, by where a search first and last starred it, or how far it was there where it was only
/// held back: never by where a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GuessedPart {
    pub(super) automaton: usize,
    pub(super) first: u32,
    pub(super) last: u32,
}

/// Different parts of one credential that a conversation may have acted on. Of a short secret fewer: each
/// is worth a letter of it.
const MOST_PARTS: usize = 8;
const FEWEST_PARTS: usize = 3;
const LETTERS_FOR_A_PART: usize = 4;

/// The parts of one credential that were acted on, in whichever conversation.
#[derive(Debug, Default)]
pub(crate) struct SharedParts(Mutex<HashSet<GuessedPart>>);

/// Counts what one conversation was told of one credential.
#[derive(Debug)]
pub(crate) struct GuessCounter {
    most: usize,
    parts: Mutex<HashSet<GuessedPart>>,
    shared: Arc<SharedParts>,
    exhausted: watch::Sender<bool>,
    /// Whether a person was told that it is.
    told: AtomicBool,
    /// Whether it is written where an operator can take it out.
    written: AtomicBool,
}

impl GuessCounter {
    /// For a secret of so many letters.
    pub(crate) fn new(letters: usize, shared: Arc<SharedParts>) -> Arc<Self> {
        Arc::new(Self {
            most: (letters / LETTERS_FOR_A_PART).clamp(FEWEST_PARTS, MOST_PARTS),
            parts: Mutex::default(),
            shared,
            exhausted: watch::Sender::new(false),
            told: AtomicBool::new(false),
            written: AtomicBool::new(false),
        })
    }

    pub(super) fn count(&self, part: GuessedPart) {
        let is_news = {
            let mut all = locked(&self.shared.0);
            // Many conversations of one person are no more guesses each: what nobody has seen before
            // costs the whole credential once as much is known as two may learn.
            all.insert(part) && all.len() > 2 * self.most
        };
        // After the other lock was let go: nobody ever holds both.
        let mut parts = locked(&self.parts);
        if parts.len() < self.most {
            parts.insert(part);
        }
        if is_news || parts.len() >= self.most {
            self.exhausted.send_replace(true);
        }
    }

    /// Whether the conversation has lost the credential.
    pub(crate) fn is_exhausted(&self) -> bool {
        *self.exhausted.borrow()
    }

    /// Returns when the conversation loses the credential.
    pub(crate) async fn exhausted(&self) {
        let mut exhausted = self.exhausted.subscribe();
        // The sender lives as long as this.
        let _ = exhausted.wait_for(|exhausted| *exhausted).await;
    }

    /// Whether nobody was told of the loss; asked once.
    pub(crate) fn is_news(&self) -> bool {
        !self.told.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn note_written(&self) {
        self.written.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_written(&self) -> bool {
        self.written.load(Ordering::SeqCst)
    }

    /// Whether anything was counted.
    pub(crate) fn is_untouched(&self) -> bool {
        locked(&self.parts).is_empty() && !self.is_exhausted()
    }

    /// How many different parts were counted.
    #[cfg(test)]
    pub(super) fn counted(&self) -> usize {
        locked(&self.parts).len()
    }

    /// The conversation has the credential again, and begins anew: what others learnt would otherwise take it
    /// away once more at the first part.
    pub(crate) fn lift(&self) {
        locked(&self.shared.0).clear();
        locked(&self.parts).clear();
        self.told.store(false, Ordering::SeqCst);
        self.written.store(false, Ordering::SeqCst);
        self.exhausted.send_replace(false);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
