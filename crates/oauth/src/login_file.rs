//! Where a login is kept: a file for each server, in a folder that only the operator's account can read.
//!
//! Whoever changes a file holds the lock beside it, so that of two gateways that refresh at once the second
//! finds what the first was given. A refresh token may be good for one use: room for what replaces it is
//! made before it is spent, and the new one stands on the disk before anybody uses it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermetic_types::{Secret, Timestamp};
use rustix::fs::{FlockOperation, Gid, Uid, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio::time::{Instant, sleep};

use crate::challenge::AuthChallenge;
use crate::scope::ScopeSet;
use crate::token::{ClientIdentity, expose};

/// A file, at most. Tokens are bounded at a quarter of it.
const LARGEST_FILE: usize = 64 * 1024;
/// Longer than a refresh by somebody else may take.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Error)]
pub enum LoginFileError {
    #[error("cannot {act} {}: {source}", path.display())]
    Io {
        act: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("others on this machine can read {}; chmod 600 it, or remove it and log in again", path.display())]
    Shared { path: PathBuf },
    #[error("{} is no login; remove it and log in again", path.display())]
    NotALogin { path: PathBuf },
    #[error("somebody else holds {} for long; is a gateway stuck?", path.display())]
    Locked { path: PathBuf },
}

/// The file of one server.
#[derive(Clone, Debug)]
pub struct LoginFile {
    folder: PathBuf,
    path: PathBuf,
}

/// What a person may know about a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginSummary {
    /// The server it is for.
    pub server: String,
    pub issuer: String,
    pub scope: Option<String>,
    pub since: Timestamp,
    /// Until when the token of now holds; absent where nobody said.
    pub expires: Option<Timestamp>,
    /// Whether it is renewed without anybody.
    pub is_renewed: bool,
    /// Scopes that the server has asked for since.
    pub wanted: Option<String>,
}

/// All that a file holds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LoginState {
    /// What the server last said when it wanted a login.
    pub(crate) challenge: Option<AuthChallenge>,
    pub(crate) login: Option<KeptLogin>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeptLogin {
    /// The address that the token is sent to, and no other.
    pub(crate) server: String,
    pub(crate) resource: String,
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    pub(crate) client: ClientIdentity,
    /// Whether the client was registered on the way.
    pub(crate) is_registered: bool,
    pub(crate) redirect: String,
    #[serde(serialize_with = "expose_one")]
    pub(crate) access: Secret,
    #[serde(serialize_with = "expose")]
    pub(crate) refresh: Option<Secret>,
    pub(crate) since_seconds: i64,
    pub(crate) expires_seconds: Option<i64>,
    pub(crate) scope: Option<ScopeSet>,
}

/// The right to change a file, until it is dropped.
#[derive(Debug)]
pub(crate) struct LockedFile {
    file: LoginFile,
    _lock: File,
}

/// A file aside that is as large as any login, on the disk already.
#[derive(Debug)]
pub(crate) struct ReservedRoom {
    file: File,
    aside: PathBuf,
}

impl LoginFile {
    /// `folder` is made when something is written.
    pub fn new(folder: impl Into<PathBuf>, server: &str) -> Self {
        let folder = folder.into();
        let path = folder.join(format!("{}.json", file_name(server)));
        Self { folder, path }
    }

    pub fn summary(&self) -> Result<Option<LoginSummary>, LoginFileError> {
        let state = self.load()?;
        let wanted = state.challenge.as_ref().and_then(AuthChallenge::scope);
        Ok(state.login.map(|login| LoginSummary {
            expires: login.expires(),
            scope: login.scope.as_ref().map(ScopeSet::as_text),
            since: Timestamp::from_seconds(login.since_seconds),
            is_renewed: login.refresh.is_some(),
            server: login.server,
            issuer: login.issuer,
            wanted,
        }))
    }

    /// The secrets in it, for whoever hides them.
    pub fn secrets(&self) -> Result<Vec<Secret>, LoginFileError> {
        Ok(self
            .load()?
            .login
            .map_or_else(Vec::new, |login| login.secrets()))
    }

    /// Removes the login; `false` where there was none.
    pub async fn forget(&self) -> Result<bool, LoginFileError> {
        if !self.path.exists() {
            return Ok(false);
        }
        let locked = self.lock().await?;
        match fs::remove_file(&locked.file.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed("remove", error)),
        }
    }

    pub(crate) fn load(&self) -> Result<LoginState, LoginFileError> {
        let opened = OpenOptions::new()
            .read(true)
            // A link could lead to a file of another's, whose rights are the ones that would be
            // looked at below.
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&self.path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(LoginState::default());
            }
            Err(error) => return Err(self.failed("open", error)),
        };
        let about = file
            .metadata()
            .map_err(|error| self.failed("read", error))?;
        // Looked at on the file that was opened: by its name it might be another by now.
        if about.mode() & 0o077 != 0 {
            return Err(LoginFileError::Shared {
                path: self.path.clone(),
            });
        }
        let mut text = Vec::new();
        let read = file.take(LARGEST_FILE as u64 + 1).read_to_end(&mut text);
        read.map_err(|error| self.failed("read", error))?;
        let text = hermetic_types::Secret::new(String::from_utf8_lossy(&text));
        match text.expose().len() > LARGEST_FILE {
            true => Err(self.not_a_login()),
            false => serde_json::from_str(text.expose()).map_err(|_| self.not_a_login()),
        }
    }

    /// Waits until nobody else changes it.
    pub(crate) async fn lock(&self) -> Result<LockedFile, LoginFileError> {
        self.make_folder()
            .map_err(|error| self.failed("make a folder for", error))?;
        let path = self.path.with_extension("lock");
        let failed = |source| LoginFileError::Io {
            act: "lock",
            path: path.clone(),
            source,
        };
        let lock = private(&path).map_err(failed)?;
        self.give_to_owner(&lock).map_err(failed)?;
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            // Tried again and not waited for: the other may be a gateway that hangs, and this runs
            // on a thread that others need.
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
            if Instant::now() >= deadline {
                return Err(LoginFileError::Locked { path });
            }
            sleep(LOCK_PAUSE).await;
        }
        Ok(LockedFile {
            file: self.clone(),
            _lock: lock,
        })
    }

    fn make_folder(&self) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(&self.folder) {
            Ok(()) => self.give_to_owner(&File::open(&self.folder)?),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What root makes in the home of another is theirs: their gateway has to read it.
    fn give_to_owner(&self, made: impl AsFd) -> io::Result<()> {
        let above = self.folder.parent().unwrap_or(&self.folder);
        let owner = fs::metadata(above)?;
        if rustix::process::geteuid().is_root() && owner.uid() != 0 {
            let (uid, gid) = (Uid::from_raw(owner.uid()), Gid::from_raw(owner.gid()));
            rustix::fs::fchown(made, Some(uid), Some(gid))?;
        }
        Ok(())
    }

    fn failed(&self, act: &'static str, source: io::Error) -> LoginFileError {
        LoginFileError::Io {
            act,
            path: self.path.clone(),
            source,
        }
    }

    fn not_a_login(&self) -> LoginFileError {
        LoginFileError::NotALogin {
            path: self.path.clone(),
        }
    }
}

impl LockedFile {
    pub(crate) fn load(&self) -> Result<LoginState, LoginFileError> {
        self.file.load()
    }

    /// Fails where the disk is full, before anything was spent.
    pub(crate) fn reserve(&self) -> Result<ReservedRoom, LoginFileError> {
        let aside = self.file.path.with_extension("new");
        let reserved = || {
            let mut file = private(&aside)?;
            self.file.give_to_owner(&file)?;
            file.set_len(0)?;
            // Written full and not only lengthened: a hole in a file takes no room until it is
            // filled.
            file.write_all(&vec![b' '; LARGEST_FILE])?;
            file.sync_all()?;
            Ok(file)
        };
        match reserved() {
            Ok(file) => Ok(ReservedRoom { file, aside }),
            Err(error) => {
                let _ = fs::remove_file(&aside);
                Err(self.file.failed("make room for", error))
            }
        }
    }

    pub(crate) fn write(
        &self,
        room: &ReservedRoom,
        state: &LoginState,
    ) -> Result<(), LoginFileError> {
        let failed = |error| self.file.failed("write", error);
        let text = serde_json::to_string(state).map_err(|error| failed(error.into()))?;
        let text = Secret::new(text);
        if text.expose().len() > LARGEST_FILE {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        let mut file = &room.file;
        let mut written = || {
            file.rewind()?;
            file.write_all(text.expose().as_bytes())?;
            // Shortened after it is written, so that the room is never given up before the login
            // stands in it.
            file.set_len(text.expose().len() as u64)?;
            file.sync_all()?;
            fs::rename(&room.aside, &self.file.path)?;
            File::open(&self.file.folder)?.sync_all()
        };
        written().map_err(failed)
    }

    /// Both at once, where nothing is spent.
    pub(crate) fn replace(&self, state: &LoginState) -> Result<(), LoginFileError> {
        self.write(&self.reserve()?, state)
    }
}

impl Drop for ReservedRoom {
    fn drop(&mut self) {
        // Gone already where it was used.
        let _ = fs::remove_file(&self.aside);
    }
}

impl KeptLogin {
    pub(crate) fn expires(&self) -> Option<Timestamp> {
        self.expires_seconds.map(Timestamp::from_seconds)
    }

    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let mut secrets = vec![self.access.clone()];
        secrets.extend(self.refresh.clone());
        secrets.extend(self.client.secret.clone());
        secrets
    }
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// The name itself where it can be one of a file, else what is left of it and a digest.
fn file_name(server: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let plain: String = server.chars().filter(|c| is_plain(*c)).take(100).collect();
    if plain == server && !plain.is_empty() {
        return plain;
    }
    let digest = Sha256::digest(server);
    let digits: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{plain}.{digits}")
}

fn expose_one<S: serde::Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    secret.expose().serialize(serializer)
}
