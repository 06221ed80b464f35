//! The machines that are shipped for.

use std::env::consts::ARCH;
use std::str::FromStr;

use super::elf::ElfMachine;
use crate::failure::ChoreFailure;

/// A kind of machine, by the names that each tool has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DistTarget {
    X86_64,
    Aarch64,
}

impl DistTarget {
    pub(crate) const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// The machine that this runs on.
    pub(crate) fn host() -> Result<Self, ChoreFailure> {
        ARCH.parse()
    }

    pub(crate) fn is_host(self) -> bool {
        self.name() == ARCH
    }

    /// As `uname -m` says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// As rustc says it.
    pub(crate) fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-gnu",
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// As Debian's folders and compilers have it.
    pub(crate) fn gnu(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux-gnu",
            Self::Aarch64 => "aarch64-linux-gnu",
        }
    }

    /// As Debian's packages and container images have it.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// As the names of Debian's packages have it, in which an underscore has another meaning.
    pub(crate) fn package(self) -> String {
        self.gnu().replace('_', "-")
    }

    pub(crate) fn elf(self) -> ElfMachine {
        match self {
            Self::X86_64 => ElfMachine::X86_64,
            Self::Aarch64 => ElfMachine::Aarch64,
        }
    }
}

impl FromStr for DistTarget {
    type Err = ChoreFailure;

    fn from_str(text: &str) -> Result<Self, ChoreFailure> {
        let known = Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|target| [target.name(), target.triple(), target.debian()].contains(&text))
            .ok_or_else(|| ChoreFailure::Usage(format!("no target {text:?}; known: {known}")))
    }
}
