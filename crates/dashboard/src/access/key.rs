//! The key by which links and tokens are signed: a file that only the operator's account can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// Signs what lets people in. Whoever can read its file is the operator.
#[derive(Clone)]
pub struct AccessKey([u8; 32]);

#[derive(Debug, Error)]
pub enum KeyError {
    #[error("cannot use {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("others on this machine can read {}; chmod 600 it, or remove it for a new one", path.display())]
    Shared { path: PathBuf },
    #[error("{} is no key; remove it for a new one", path.display())]
    NotAKey { path: PathBuf },
    #[error("no random numbers from the system: {0}")]
    Random(getrandom::Error),
}

const FILE: &str = "dashboard.key";

impl AccessKey {
    /// The key of this state folder, if there is one.
    pub fn load(state: &Path) -> Result<Option<Self>, KeyError> {
        let path = state.join(FILE);
        let io = |source| KeyError::Io {
            path: path.clone(),
            source,
        };
        let file = match fs::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        // Of the file that was opened, whatever its name stands for by now.
        if file.metadata().map_err(io)?.mode() & 0o077 != 0 {
            return Err(KeyError::Shared { path });
        }
        let mut text = String::new();
        file.take(100).read_to_string(&mut text).map_err(io)?;
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).ok();
        let key = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        match key {
            Some(key) => Ok(Some(Self(key))),
            None => Err(KeyError::NotAKey { path }),
        }
    }

    /// The key of this state folder, made where there is none.
    pub fn load_or_create(state: &Path) -> Result<Self, KeyError> {
        if let Some(key) = Self::load(state)? {
            return Ok(key);
        }
        match Self::write(state, true) {
            Err(KeyError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                // Somebody else was faster, and theirs counts.
                Self::load(state)?.ok_or(KeyError::NotAKey {
                    path: state.join(FILE),
                })
            }
            written => written,
        }
    }

    /// Makes another key. What was signed by the one before is void, and so are the sessions.
    pub fn replace(state: &Path) -> Result<Self, KeyError> {
        Self::write(state, false)
    }

    fn write(state: &Path, as_first: bool) -> Result<Self, KeyError> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(KeyError::Random)?;
        let path = state.join(FILE);
        // A name that nobody can have put a link at, and that nobody else writes to meanwhile.
        let aside = state.join(format!("{FILE}.new-{}", random_text()?));
        let written = (|| {
            let mut file = OpenOptions::new()
                .create_new(true)
                .write(true)
                .mode(0o600)
                .open(&aside)?;
            file.write_all(URL_SAFE_NO_PAD.encode(key).as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            match as_first {
                // Fails where one is there already, so that of two who make the first one wins.
                true => {
                    let linked = fs::hard_link(&aside, &path);
                    fs::remove_file(&aside)?;
                    linked
                }
                false => fs::rename(&aside, &path),
            }
        })();
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
        match written {
            Ok(()) => Ok(Self(key)),
            Err(source) => Err(KeyError::Io { path, source }),
        }
    }

    pub(super) fn sign(&self, text: &str) -> String {
        URL_SAFE_NO_PAD.encode(mac(&self.0, text))
    }

    /// Names the key without giving it away.
    pub fn fingerprint(&self) -> String {
        self.sign("fingerprint")
    }
}

impl std::fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

/// A proof of a text by a secret.
pub(super) fn mac(secret: &[u8], text: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length will do");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

pub(super) fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// A text that nobody can guess.
pub(super) fn random_text() -> Result<String, KeyError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(KeyError::Random)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_that_others_can_read_lets_nobody_in() {
        let folder = tempfile::tempdir().unwrap();
        assert!(AccessKey::load(folder.path()).unwrap().is_none());
        let key = AccessKey::load_or_create(folder.path()).unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let again = AccessKey::load_or_create(folder.path()).unwrap();
        assert_eq!(key.fingerprint(), again.fingerprint());
        let other = AccessKey::replace(folder.path()).unwrap();
        assert_ne!(key.fingerprint(), other.fingerprint());
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = AccessKey::load(folder.path());
        assert!(matches!(refused, Err(KeyError::Shared { .. })));
        fs::write(&path, "short").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let refused = AccessKey::load_or_create(folder.path());
        assert!(matches!(refused, Err(KeyError::NotAKey { .. })));
    }
}
