//! Which files an agent has seen, and as what.
//!
//! A file that was read and has changed since is written to with a warning. A read that would show
//! what was shown already says so instead, once: who asks again has lost it and gets it in full.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermetic_types::SandboxId;
use hermetic_warden::protocol::{ByteString, FileVersion};

/// Beyond this the oldest are forgotten, which costs a warning and no more.
const MOST_FILES: usize = 4096;
const MOST_WINDOWS: usize = 32;

#[derive(Debug, Default)]
pub(super) struct SeenFiles(Mutex<SeenEntries>);

/// First line and number of lines.
pub(super) type LineWindow = (usize, usize);

type SeenFileKey = (SandboxId, ByteString);

#[derive(Debug, Default)]
struct SeenEntries {
    files: HashMap<SeenFileKey, SeenFile>,
    order: VecDeque<SeenFileKey>,
}

#[derive(Debug)]
struct SeenFile {
    stamp: FileVersion,
    shown: Vec<LineWindow>,
}

impl SeenFiles {
    /// As what the file was last seen or written.
    pub(super) fn stamp(&self, sandbox: &SandboxId, path: &ByteString) -> Option<FileVersion> {
        let shelf = self.shelf();
        let known = shelf.files.get(&(sandbox.clone(), path.clone()))?;
        Some(known.stamp)
    }

    /// Whether this part of this very file was shown. Forgets it, so that the next asking is in
    /// earnest.
    pub(super) fn take_shown(
        &self,
        sandbox: &SandboxId,
        path: &ByteString,
        stamp: FileVersion,
        window: LineWindow,
    ) -> bool {
        let mut shelf = self.shelf();
        let Some(known) = shelf.files.get_mut(&(sandbox.clone(), path.clone())) else {
            return false;
        };
        if known.stamp != stamp {
            return false;
        }
        let before = known.shown.len();
        known.shown.retain(|shown| *shown != window);
        known.shown.len() < before
    }

    pub(super) fn note_shown(
        &self,
        sandbox: &SandboxId,
        path: &ByteString,
        stamp: FileVersion,
        window: LineWindow,
    ) {
        let mut shelf = self.shelf();
        let known = shelf.known(sandbox, path, stamp);
        if known.shown.len() < MOST_WINDOWS && !known.shown.contains(&window) {
            known.shown.push(window);
        }
    }

    pub(super) fn note_written(&self, sandbox: &SandboxId, path: &ByteString, stamp: FileVersion) {
        self.shelf().known(sandbox, path, stamp);
    }

    fn shelf(&self) -> MutexGuard<'_, SeenEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SeenEntries {
    fn known(
        &mut self,
        sandbox: &SandboxId,
        path: &ByteString,
        stamp: FileVersion,
    ) -> &mut SeenFile {
        let key = (sandbox.clone(), path.clone());
        if !self.files.contains_key(&key) {
            self.order.push_back(key.clone());
            if self.order.len() > MOST_FILES
                && let Some(oldest) = self.order.pop_front()
            {
                self.files.remove(&oldest);
            }
        }
        let known = self.files.entry(key).or_insert(SeenFile {
            stamp,
            shown: Vec::new(),
        });
        if known.stamp != stamp {
            known.stamp = stamp;
            known.shown.clear();
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(size: u64) -> FileVersion {
        FileVersion {
            inode: 1,
            size,
            modified: 0,
            modified_nanos: 0,
        }
    }

    #[test]
    fn what_was_shown_is_not_shown_again_until_asked_twice_or_changed() {
        let (seen, sandbox, path) = (SeenFiles::default(), SandboxId::random(), "/a".into());
        seen.note_shown(&sandbox, &path, stamp(1), (1, 500));
        assert!(!seen.take_shown(&sandbox, &path, stamp(1), (2, 500)));
        assert!(!seen.take_shown(&sandbox, &path, stamp(2), (1, 500)));
        assert!(seen.take_shown(&sandbox, &path, stamp(1), (1, 500)));
        assert!(!seen.take_shown(&sandbox, &path, stamp(1), (1, 500)));
        assert!(!seen.take_shown(&SandboxId::random(), &path, stamp(1), (1, 500)));
    }

    #[test]
    fn it_forgets_the_oldest() {
        let (seen, sandbox) = (SeenFiles::default(), SandboxId::random());
        for number in 0..=MOST_FILES {
            let path = format!("/{number}").as_str().into();
            seen.note_written(&sandbox, &path, stamp(1));
        }
        assert_eq!(seen.stamp(&sandbox, &"/0".into()), None);
        assert_eq!(seen.stamp(&sandbox, &"/1".into()), Some(stamp(1)));
    }
}
