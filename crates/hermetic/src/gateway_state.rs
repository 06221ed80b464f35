//! One gateway for each home, and what others can know about it.
//!
//! The kernel's lock on `gateway.lock` is the truth: it goes with the process, however that ends.
//! `gateway_state.json` only describes, and is believed only while the lock is held.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hermetic_config::Home;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Held for as long as a gateway runs.
#[derive(Debug)]
pub(crate) struct GatewayLock {
    /// Closing it lets go of the lock.
    _file: File,
    state: PathBuf,
}

/// What a running gateway says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GatewayState {
    pub(crate) pid: u32,
    /// Seconds since 1970.
    pub(crate) started: u64,
    pub(crate) run: String,
    pub(crate) version: String,
    pub(crate) backend: String,
    pub(crate) image: Option<String>,
    pub(crate) platforms: Vec<String>,
}

/// What an onlooker sees.
#[derive(Debug)]
pub(crate) enum Seen {
    Stopped,
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
    pub(crate) fn take(home: &Home) -> Result<Self, LockError> {
        let folder = home.state();
        let refused = |path: &Path, source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|error| refused(&folder, error))?;
        let path = folder.join("gateway.lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| refused(&path, error))?;
        match lock_patiently(&file) {
            Ok(()) => Ok(Self {
                _file: file,
                state: folder.join("gateway_state.json"),
            }),
            Err(TryLockError::WouldBlock) => Err(LockError::Taken {
                pid: described(&folder).map(|state| state.pid),
            }),
            Err(TryLockError::Error(error)) => Err(refused(&path, error)),
        }
    }

    /// Written aside and moved into place, so that no reader sees half of it.
    pub(crate) fn describe(&self, state: &GatewayState) -> io::Result<()> {
        let aside = self.state.with_extension("new");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&aside)?;
        serde_json::to_writer_pretty(&mut file, state)?;
        file.flush()?;
        fs::rename(aside, &self.state)
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

impl Drop for GatewayLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.state);
    }
}

impl GatewayState {
    pub(crate) fn now() -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs())
    }
}

/// Looks without touching: nothing is made, nothing stays locked.
pub(crate) fn look(home: &Home) -> Seen {
    let folder = home.state();
    let file = match File::open(folder.join("gateway.lock")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Seen::Stopped,
        Err(error) => return Seen::Unknown(error),
    };
    // A shared lock, so that two who look at once do not take each other for a gateway.
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Seen::Running(described(&folder)),
        Ok(()) => Seen::Stopped,
        Err(TryLockError::Error(error)) => Seen::Unknown(error),
    }
}

fn described(folder: &Path) -> Option<GatewayState> {
    let text = fs::read_to_string(folder.join("gateway_state.json")).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_home_has_one_gateway() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert!(matches!(look(&home), Seen::Stopped));

        let lock = GatewayLock::take(&home).unwrap();
        assert!(matches!(look(&home), Seen::Running(None)));
        let state = GatewayState {
            pid: 4711,
            started: 1,
            run: "r".into(),
            version: "0".into(),
            backend: "native".into(),
            image: None,
            platforms: vec![],
        };
        lock.describe(&state).unwrap();
        assert!(matches!(
            GatewayLock::take(&home),
            Err(LockError::Taken { pid: Some(4711) })
        ));
        assert!(matches!(look(&home), Seen::Running(Some(seen)) if seen == state));

        drop(lock);
        assert!(matches!(look(&home), Seen::Stopped));
        assert!(GatewayLock::take(&home).is_ok());
    }

    #[test]
    fn a_description_without_a_lock_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        drop(GatewayLock::take(&home).unwrap());
        fs::write(home.state().join("gateway_state.json"), "{").unwrap();
        assert!(matches!(look(&home), Seen::Stopped));
    }
}
