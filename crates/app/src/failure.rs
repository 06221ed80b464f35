//! Why something could not be done: one line of what happened, one of what to do.

use std::error::Error;
use std::fmt;
use std::path::Path;

use hermetic_access::{ApproveError, PairingError};
use hermetic_audit::{AppendError, WalkError};
use hermetic_config::{BackendDoubt, ConfigProblems, NoHome};
use hermetic_egress::BookError;
use hermetic_gateway::ServeError;
use hermetic_sandbox::{BackendError, CreateError};
use hermetic_session::SettleError;
use hermetic_store::StoreError;
use hermetic_warden::client::WardenCallError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum AppFailure {
    #[error("{0}")]
    Config(ConfigProblems),
    #[error("{0}")]
    Backend(BackendDoubt),
    #[error("{what}")]
    Other { what: String, remedy: String },
}

impl AppFailure {
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Other {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// Something about a file that the system refused.
    pub fn file(verb: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::new(
            format!("cannot {verb} {}: {error}", path.display()),
            "check the path, its permissions and the space left",
        )
    }

    /// An error with its causes, in one line.
    pub fn caused(error: &dyn Error, remedy: impl Into<String>) -> Self {
        let mut what = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Transparent errors repeat the text of their cause.
            if !what.ends_with(&text) {
                what = format!("{what}: {text}");
            }
            cause = error.source();
        }
        Self::new(what, remedy)
    }

    /// The same for something that speaks TLS, or what lies behind it: a small system may trust nobody at all,
    /// and then no setting helps.
    pub(crate) fn of_client(self) -> Self {
        match hermetic_egress::has_authorities() {
            true => self,
            false => Self::new(
                "this machine has no certificates of authorities, so nothing can be asked by https",
                "apt-get install ca-certificates, or name a file of them in SSL_CERT_FILE",
            ),
        }
    }

    /// The same, and what it happened to.
    pub fn during(self, doing: impl fmt::Display) -> Self {
        match self {
            Self::Other { what, remedy } => Self::new(format!("{doing}: {what}"), remedy),
            other => other,
        }
    }

    pub fn remedy(&self) -> &str {
        match self {
            Self::Config(_) => "mend it and run `hermetic config check`",
            Self::Backend(doubt) => doubt.remedy(),
            Self::Other { remedy, .. } => remedy,
        }
    }
}

impl From<hermetic_dashboard::KeyError> for AppFailure {
    fn from(error: hermetic_dashboard::KeyError) -> Self {
        Self::caused(&error, "look at hermetic/dashboard.key in the home")
    }
}

impl From<ConfigProblems> for AppFailure {
    fn from(problems: ConfigProblems) -> Self {
        Self::Config(problems)
    }
}

impl From<BackendDoubt> for AppFailure {
    fn from(doubt: BackendDoubt) -> Self {
        Self::Backend(doubt)
    }
}

impl From<NoHome> for AppFailure {
    fn from(no_home: NoHome) -> Self {
        Self::new(no_home.to_string(), "set HERMES_HOME, or pass --home")
    }
}

impl From<BackendError> for AppFailure {
    fn from(error: BackendError) -> Self {
        let remedy = match &error {
            BackendError::Unavailable { remedy, .. } => remedy.clone(),
            BackendError::NoSuchSandbox { .. } => "see `hermetic sandbox list`".to_owned(),
            BackendError::Refused { .. } => "change what was asked for".to_owned(),
            BackendError::Failed { .. } => {
                "`hermetic doctor` tells what this host lacks".to_owned()
            }
        };
        Self::caused(&error, remedy)
    }
}

impl From<CreateError> for AppFailure {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Start(error) => error.into(),
            CreateError::Greet(error) => {
                Self::caused(&error, "try again; if it persists, report it")
            }
        }
    }
}

impl From<StoreError> for AppFailure {
    fn from(error: StoreError) -> Self {
        Self::caused(
            &error,
            "check the state folder's permissions and the space left",
        )
    }
}

impl From<WardenCallError> for AppFailure {
    fn from(error: WardenCallError) -> Self {
        Self::caused(&error, "try again; destroy the sandbox if it persists")
    }
}

impl From<AppendError> for AppFailure {
    fn from(error: AppendError) -> Self {
        let remedy = match &error {
            AppendError::Io { .. } => "check its permissions and the space left",
            AppendError::Busy { .. } => "end whoever holds it",
            AppendError::Broken { .. } => {
                "look with `hermetic audit verify`; move it aside and a new file goes on"
            }
            AppendError::NoKey { .. } => {
                "without it nobody could tell a forged record; `hermetic audit verify` shows what is there"
            }
            AppendError::TooLong { .. } => "report this as a bug",
        };
        Self::caused(&error, remedy)
    }
}

impl From<ServeError> for AppFailure {
    fn from(error: ServeError) -> Self {
        let remedy = match &error {
            ServeError::Proof { source, .. } => source.remedy().to_owned(),
            ServeError::Settle(SettleError::List(BackendError::Unavailable { remedy, .. })) => {
                remedy.clone()
            }
            ServeError::LeaseLost(_) | ServeError::Adoption(_) => {
                "start it again: it stands by, or serves if nobody else does; if this \
                                         comes again, look at the database and at the way to it"
                    .to_owned()
            }
            ServeError::NoChatLeft => "the log says why; look at the platform's token".to_owned(),
            ServeError::Settle(SettleError::Ledger(error)) | ServeError::Resume(error) => {
                error.remedy().to_owned()
            }
            ServeError::Settle(SettleError::List(_)) => {
                "`hermetic doctor` tells what this host lacks".to_owned()
            }
        };
        Self::caused(&error, remedy)
    }
}

impl From<WalkError> for AppFailure {
    fn from(error: WalkError) -> Self {
        let remedy = match &error {
            WalkError::Io { .. } => "check the path and its permissions",
            WalkError::Tampered { .. } => {
                "keep a copy; compare with a backup; move it aside and a new file goes on"
            }
        };
        Self::caused(&error, remedy)
    }
}

impl From<BookError> for AppFailure {
    fn from(error: BookError) -> Self {
        let remedy = match &error {
            BookError::Line { .. } => "mend that line; until then nothing may leave",
            BookError::File { .. } | BookError::TooLarge { .. } => {
                "check the file, its permissions and the space left"
            }
        };
        Self::caused(&error, remedy)
    }
}

impl From<PairingError> for AppFailure {
    fn from(error: PairingError) -> Self {
        let remedy = match &error {
            PairingError::Approve(ApproveError::NoSuchCode { .. }) => {
                "compare it with what they were sent, letter by letter; a code is good for an hour, \
                 on its own platform (`hermetic pairing list`)"
            }
            PairingError::Approve(ApproveError::Locked { .. }) => {
                "wait until then; who is in stays in"
            }
            _ => "check the state folder's permissions and the space left",
        };
        Self::caused(&error, remedy)
    }
}
