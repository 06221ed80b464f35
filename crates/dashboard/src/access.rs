//! Who looks, and what they may do.
//!
//! Somebody gets in by a one-time link, which whoever can read the home's key makes; by a password; by the
//! word of a reverse proxy that knows a secret; or, for programs, by a token. What follows is a session of
//! bounded length, known to the browser by a cookie and to us by its hash. Names in `Host` and `Origin` are
//! held against a list before anything else, so that a page of somebody else's cannot use a browser to get
//! here, whatever it makes its own name resolve to.

mod attempts;
mod book;
mod guard;
mod key;
mod pass;
mod settings;
mod viewer;

use hermetic_store::{DocumentRows, StoreError};
use hermetic_types::{SharedClock, Timestamp};
use subtle::ConstantTimeEq as _;

pub(crate) use attempts::AttemptLimit;
pub(crate) use book::{SESSION_LENGTH, SessionBook};
pub(crate) use guard::{cookie, guard, is_secure, is_still_in, secure_headers, session_cookie};
pub use key::{AccessKey, KeyError};
pub(crate) use pass::{PassKind, SignedPass, read_pass};
pub use pass::{access_link, access_token};
pub use settings::{AccessSettings, ProxyAccess, is_loopback_host};
pub(crate) use viewer::Viewer;
pub use viewer::{DashboardRole, InvalidRole};

/// The way in.
#[derive(Debug)]
pub(crate) struct DashboardAccess {
    pub(crate) settings: AccessSettings,
    pub(crate) sessions: SessionBook,
    pub(crate) attempts: AttemptLimit,
    clock: SharedClock,
}

/// Why somebody was not let in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnterRefused {
    #[error("This link is not valid, or it was used before, or its time is over.")]
    Link,
    #[error("That is not the password.")]
    Password,
    #[error("Too many wrong passwords. Wait a minute.")]
    TooMany,
    #[error("The key of the dashboard cannot be read, so nobody gets in.")]
    Key(#[from] KeyError),
    #[error("Nobody can sign in at this moment: the store does not answer.")]
    Store(#[from] StoreError),
}

impl DashboardAccess {
    pub(crate) fn new(
        settings: AccessSettings,
        documents: DocumentRows,
        clock: SharedClock,
    ) -> Self {
        Self {
            sessions: SessionBook::new(documents),
            attempts: AttemptLimit::default(),
            settings,
            clock,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whom this link would let in. Looking does not use it up.
    pub(crate) async fn look_at_link(&self, link: &str) -> Result<Viewer, EnterRefused> {
        let (_, pass) = self.link_pass(link)?;
        match self.sessions.is_used(&pass.nonce).await? {
            true => Err(EnterRefused::Link),
            false => Ok(link_viewer(&pass)),
        }
    }

    /// The cookie of a new session for whoever holds this link, which is used up by that.
    pub(crate) async fn enter_by_link(&self, link: &str) -> Result<(String, Viewer), EnterRefused> {
        let (key, pass) = self.link_pass(link)?;
        let once = Some((pass.nonce.as_str(), pass.until));
        let opened = self
            .sessions
            .open(&key, link_viewer(&pass), once, self.now());
        opened.await?.ok_or(EnterRefused::Link)
    }

    fn link_pass(&self, link: &str) -> Result<(AccessKey, SignedPass), EnterRefused> {
        // Not made here: without a key no link was ever signed.
        let key = AccessKey::load(&self.settings.state)?.ok_or(EnterRefused::Link)?;
        let pass = read_pass(&key, link, self.now()).filter(|pass| pass.kind == PassKind::Link);
        Ok((key, pass.ok_or(EnterRefused::Link)?))
    }

    /// The same for whoever knows the password.
    pub(crate) async fn enter_by_password(
        &self,
        password: &str,
    ) -> Result<(String, Viewer), EnterRefused> {
        let Some(expected) = &self.settings.password else {
            return Err(EnterRefused::Password);
        };
        let now = self.now();
        // Before the comparison: if the right one were still heard, guessing could go on.
        if !self.attempts.is_open(now) {
            return Err(EnterRefused::TooMany);
        }
        // Hashed first, so that the time it takes says nothing about how long the right one is.
        let (given, right) = (key::digest(password), key::digest(expected.expose()));
        if !bool::from(given.ct_eq(&right)) {
            self.attempts.failed(now);
            return Err(EnterRefused::Password);
        }
        // A password needs no link, so nobody may ever have made a key.
        let key = AccessKey::load_or_create(&self.settings.state)?;
        // Apart from whoever was named "password" in a link.
        let viewer = Viewer::new("password:operator".to_owned(), DashboardRole::Operator);
        let opened = self.sessions.open(&key, viewer, None, now).await?;
        opened.ok_or(EnterRefused::Password)
    }
}

fn link_viewer(pass: &SignedPass) -> Viewer {
    Viewer::new(format!("dashboard:{}", pass.name), pass.role)
}
