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
    Kubernetes,
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

/// What a backend says of itself, also before one is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendDescription {
    pub kind: BackendKind,
    pub boundary: Boundary,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("unknown backend {name:?}; known: {}", BackendKind::names().join(", "))]
pub struct UnknownBackend {
    pub name: String,
}

impl BackendKind {
    pub const ALL: [Self; 8] = [
        Self::Native,
        Self::Docker,
        Self::Singularity,
        Self::Ssh,
        Self::Modal,
        Self::Daytona,
        Self::Kubernetes,
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
            Self::Kubernetes => "kubernetes",
            Self::Local => "local",
        }
    }

    pub fn names() -> [&'static str; 8] {
        Self::ALL.map(Self::name)
    }
}

impl BackendDescription {
    /// One whose sandboxes are a boundary.
    pub const fn sealed(kind: BackendKind) -> Self {
        let boundary = Boundary::Sealed;
        Self { kind, boundary }
    }

    /// One whose commands act on a machine that somebody cares about. Doubt belongs here.
    pub const fn judged(kind: BackendKind) -> Self {
        let boundary = Boundary::Judged;
        Self { kind, boundary }
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
