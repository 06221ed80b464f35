//! Where a value came from.

use std::fmt;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// Pinned by the machine's administrator.
    Managed {
        file: PathBuf,
        line: usize,
    },
    File {
        file: PathBuf,
        line: usize,
    },
    Variable {
        name: String,
    },
    DotEnv {
        name: String,
        file: PathBuf,
        line: usize,
    },
    Default,
}

impl SettingOrigin {
    /// Somebody wrote it, wherever.
    pub fn is_written(&self) -> bool {
        *self != Self::Default
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Managed { file, line } => write!(f, "{}:{line} (managed)", file.display()),
            Self::File { file, line } => write!(f, "{}:{line}", file.display()),
            Self::Variable { name } => write!(f, "the variable {name}"),
            Self::DotEnv { name, file, line } => write!(f, "{name} in {}:{line}", file.display()),
            Self::Default => f.write_str("default"),
        }
    }
}
