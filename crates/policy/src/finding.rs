//! What was seen in a command, in words a person can decide on.

use serde::Serialize;

/// What kind of harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    Destruction,
    Disk,
    Database,
    Container,
    Cloud,
    Privilege,
    Persistence,
    SecretRead,
    Exfiltration,
    RemoteCode,
    ReverseShell,
    LogTampering,
    Firewall,
    Kernel,
    SecurityTool,
    Service,
    Process,
    Power,
    ForkBomb,
    SystemFile,
    OwnFiles,
    VersionControl,
    /// A program smuggled in through an argument of another.
    Injection,
    /// The command hides what it does.
    Disguise,
    /// Which file it reads, writes, deletes or runs only running would tell.
    Unknown,
}

/// How far a finding goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A person may allow it.
    Dangerous,
    /// Nobody may, on a backend that is no boundary.
    Floor,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub category: Category,
    pub severity: Severity,
    /// In plain words: "deletes everything under /".
    pub reason: String,
}

impl Finding {
    pub(crate) fn dangerous(category: Category, reason: impl Into<String>) -> Self {
        Self {
            category,
            severity: Severity::Dangerous,
            reason: reason.into(),
        }
    }

    pub(crate) fn floor(category: Category, reason: impl Into<String>) -> Self {
        Self {
            category,
            severity: Severity::Floor,
            reason: reason.into(),
        }
    }
}
