//! Where the rows are that last.

use std::fmt;
use std::path::PathBuf;

use hermetic_config::Config;
use hermetic_store::PostgresAddress;
use hermetic_types::Secret;

use crate::AppFailure;

/// A file in the state folder, or a PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePlace {
    File(PathBuf),
    Postgres(PostgresAddress),
}

impl StorePlace {
    /// The one that `gateway.store` names.
    pub fn of(config: &Config) -> Result<Self, AppFailure> {
        let written = config.gateway().store.as_ref();
        match written.map(|written| written.expose().trim()) {
            None | Some("") => Ok(Self::file(config)),
            Some(address) => address.parse().map(Self::Postgres).map_err(|error| {
                AppFailure::new(
                    format!("gateway.store cannot be used: {error}"),
                    "write postgres://user:password@host/database, or leave it out for a file",
                )
            }),
        }
    }

    /// The password in the address, which must never be shown.
    pub(crate) fn password(config: &Config) -> Option<Secret> {
        match Self::of(config).ok()? {
            Self::File(_) => None,
            Self::Postgres(address) => address.password().map(Secret::new),
        }
    }

    /// The file of this home, whether or not it is the one in use.
    pub fn file(config: &Config) -> Self {
        Self::File(config.home().state().join("state.db"))
    }
}

/// Without a password.
impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Postgres(address) => write!(f, "{address}"),
        }
    }
}
