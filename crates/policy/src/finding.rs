//! What was seen in a command, in words a person can decide on.

use serde::Serialize;

/// The kind of harm that a command would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HarmCategory {
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
pub enum HarmSeverity {
    /// A person may allow it.
    Dangerous,
    /// Nobody may, on a backend that is no boundary.
    Floor,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HarmFinding {
    pub category: HarmCategory,
    pub severity: HarmSeverity,
    /// In plain words: "deletes everything under /".
    pub reason: String,
}

impl HarmFinding {
    pub(crate) fn dangerous(category: HarmCategory, reason: impl Into<String>) -> Self {
        Self {
            category,
            severity: HarmSeverity::Dangerous,
            reason: reason.into(),
        }
    }

    pub(crate) fn floor(category: HarmCategory, reason: impl Into<String>) -> Self {
        Self {
            category,
            severity: HarmSeverity::Floor,
            reason: reason.into(),
        }
    }
}
