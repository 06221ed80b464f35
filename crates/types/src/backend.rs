//! Where commands may run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    Native,
    Docker,
    Singularity,
    Ssh,
    Modal,
    Daytona,
    Local,
}

/// Whether leaving the sandbox takes more than a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// What runs there can only hurt the sandbox itself.
    Sealed,
    /// What runs there acts on a machine somebody cares about: commands are judged first.
    Judged,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("unknown backend {name:?}; known: {}", BackendKind::names().join(", "))]
pub struct UnknownBackend {
    pub name: String,
}

impl BackendKind {
    pub const ALL: [Self; 7] = [
        Self::Native,
        Self::Docker,
        Self::Singularity,
        Self::Ssh,
        Self::Modal,
        Self::Daytona,
        Self::Local,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Docker => "docker",
            Self::Singularity => "singularity",
            Self::Ssh => "ssh",
            Self::Modal => "modal",
            Self::Daytona => "daytona",
            Self::Local => "local",
        }
    }

    pub fn names() -> [&'static str; 7] {
        Self::ALL.map(Self::name)
    }

    pub fn boundary(self) -> Boundary {
        match self {
            Self::Ssh | Self::Local => Boundary::Judged,
            Self::Native | Self::Docker | Self::Singularity | Self::Modal | Self::Daytona => {
                Boundary::Sealed
            }
        }
    }
}

impl FromStr for BackendKind {
    type Err = UnknownBackend;

    fn from_str(name: &str) -> Result<Self, UnknownBackend> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownBackend {
                name: name.to_owned(),
            })
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
