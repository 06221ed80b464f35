//! What goes wrong with keys.

use std::error::Error;

use thiserror::Error;

#[derive(Debug, Error)]
#[cfg_attr(
    not(feature = "e2ee"),
    expect(dead_code, reason = "a build without encryption meets none of it")
)]
pub(crate) enum CipherError {
    #[error("the keys for encrypted rooms failed")]
    Keys(#[source] Box<dyn Error + Send + Sync>),
    #[error("the homeserver's answer about keys cannot be read")]
    Answer,
    #[error("the file is not the one that was sent")]
    File,
}

/// Why an event stays unread.
#[derive(Debug, Error)]
#[cfg_attr(
    not(feature = "e2ee"),
    expect(dead_code, reason = "a build without encryption meets none of it")
)]
pub(crate) enum Undecryptable {
    /// It may come yet.
    #[error("its key has not come")]
    NoKey,
    #[error("it comes from a device that its owner did not sign")]
    Untrusted,
    #[error("it cannot be decrypted")]
    Garbled,
    #[error(transparent)]
    Store(CipherError),
}

#[cfg(feature = "e2ee")]
impl CipherError {
    pub(crate) fn keys(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Keys(Box::new(error))
    }
}
