//! One gateway for each home, and what others can know about it.
//!
//! The kernel's lock on `gateway.lock` is the truth: it goes with the process, however that ends.
//! `gateway_state.json` only describes. While the lock is held it tells what runs; afterwards it
//! tells how the last one ended, if that one had time to say so.

mod description;

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use hermetic_config::HomeFolder;
use thiserror::Error;

pub(crate) use description::{GatewayState, KeptLimit, LifeStage, PlatformState};

/// Held for as long as a gateway runs.
#[derive(Debug)]
pub(crate) struct GatewayLock {
    /// Closing it lets go of the lock.
    _file: File,
    folder: PathBuf,
}

/// What an onlooker sees.
#[derive(Debug)]
pub(crate) enum ObservedGateway {
    /// With what the last one said of itself.
    Stopped(Option<GatewayState>),
    /// The description may be missing: the lock comes first.
    Running(Option<GatewayState>),
    /// Somebody else's home, perhaps.
    Unknown(io::Error),
}

#[derive(Debug, Error)]
pub(crate) enum LockError {
    #[error("a gateway is running for this home already")]
    Taken { pid: Option<u32> },
    #[error("cannot use {}: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl GatewayLock {
    pub(crate) fn take(home: &HomeFolder) -> Result<Self, LockError> {
        let file = lock(home)?;
        let folder = home.state();
        // What the last one said does not describe this one.
        let _ = fs::remove_file(folder.join(DESCRIPTION));
        Ok(Self {
            _file: file,
            folder,
        })
    }

    pub(crate) fn describe(&self, state: &GatewayState) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(state)?;
        self.put(PID, format!("{}\n", state.pid).as_bytes())?;
        self.put(DESCRIPTION, &text)
    }

    /// Written aside and moved into place, so that no reader sees half of it.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.folder.join(name);
        let aside = path.with_extension("new");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&aside)?;
        // Not synced: after a power cut no gateway runs, whatever stands there.
        file.write_all(bytes)?;
        fs::rename(aside, path)
    }
}

impl Drop for GatewayLock {
    fn drop(&mut self) {
        // While the lock is still held, which goes with the file after this: later it could be the
        // next one's.
        let _ = fs::remove_file(self.folder.join(PID));
    }
}

const DESCRIPTION: &str = "gateway_state.json";
const PID: &str = "gateway.pid";

/// As long as it lives no gateway of this home runs or begins. For who does by hand what a gateway does by
/// itself: to look whether one runs would not keep it from beginning a moment later.
#[derive(Debug)]
pub(crate) struct NoGateway {
    _file: File,
}

impl NoGateway {
    pub(crate) fn hold(home: &HomeFolder) -> Result<Self, LockError> {
        lock(home).map(|file| Self { _file: file })
    }
}

fn lock(home: &HomeFolder) -> Result<File, LockError> {
    let folder = home.state();
    let refused = |path: &Path, source| LockError::Io {
        path: path.to_owned(),
        source,
    };
    make_folder(&folder).map_err(|error| refused(&folder, error))?;
    let path = folder.join("gateway.lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| refused(&path, error))?;
    match lock_patiently(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LockError::Taken {
            pid: described(&folder).map(|state| state.pid),
        }),
        Err(TryLockError::Error(error)) => Err(refused(&path, error)),
    }
}

/// Only for who owns the home.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Looks without touching: nothing is made, nothing stays locked.
pub(crate) fn look(home: &HomeFolder) -> ObservedGateway {
    let folder = home.state();
    let file = match File::open(folder.join("gateway.lock")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return ObservedGateway::Stopped(None);
        }
        Err(error) => return ObservedGateway::Unknown(error),
    };
    // A shared lock, so that two who look at once do not take each other for a gateway.
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => ObservedGateway::Running(described(&folder)),
        Ok(()) => ObservedGateway::Stopped(described(&folder)),
        Err(TryLockError::Error(error)) => ObservedGateway::Unknown(error),
    }
}

/// Somebody who only looks holds the lock for an instant; a gateway holds it for good.
fn lock_patiently(file: &File) -> Result<(), TryLockError> {
    for _ in 0..10 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
            settled => return settled,
        }
    }
    file.try_lock()
}

fn described(folder: &Path) -> Option<GatewayState> {
    let text = fs::read_to_string(folder.join(DESCRIPTION)).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(pid: u32) -> GatewayState {
        GatewayState {
            pid,
            ..GatewayState::of_this_process("r".into(), "native".into(), None)
        }
    }

    #[test]
    fn one_home_has_one_gateway() {
        let folder = tempfile::tempdir().unwrap();
        let home = HomeFolder::at(folder.path());
        assert!(matches!(look(&home), ObservedGateway::Stopped(None)));

        let lock = GatewayLock::take(&home).unwrap();
        assert!(matches!(look(&home), ObservedGateway::Running(None)));
        let state = state(4711);
        lock.describe(&state).unwrap();
        assert!(matches!(
            GatewayLock::take(&home),
            Err(LockError::Taken { pid: Some(4711) })
        ));
        assert!(matches!(look(&home), ObservedGateway::Running(Some(seen)) if seen == state));

        drop(lock);
        assert!(matches!(look(&home), ObservedGateway::Stopped(Some(_))));
        let next = GatewayLock::take(&home).unwrap();
        assert!(
            matches!(look(&home), ObservedGateway::Running(None)),
            "what an earlier one said is not believed"
        );
        drop(next);
    }

    #[test]
    fn no_gateway_begins_while_somebody_keeps_it_away() {
        let folder = tempfile::tempdir().unwrap();
        let home = HomeFolder::at(folder.path());
        let lock = GatewayLock::take(&home).unwrap();
        lock.describe(&state(4711)).unwrap();
        assert!(matches!(
            NoGateway::hold(&home),
            Err(LockError::Taken { pid: Some(4711) })
        ));
        drop(lock);
        let held = NoGateway::hold(&home).unwrap();
        assert!(GatewayLock::take(&home).is_err());
        drop(held);
        // What the last one said of itself is there still.
        assert!(matches!(look(&home), ObservedGateway::Stopped(Some(_))));
        GatewayLock::take(&home).unwrap();
    }

    #[test]
    fn half_a_description_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let home = HomeFolder::at(folder.path());
        drop(GatewayLock::take(&home).unwrap());
        fs::write(home.state().join(DESCRIPTION), "{").unwrap();
        assert!(matches!(look(&home), ObservedGateway::Stopped(None)));
    }
}
