//! What stands at the end of a backup: which files are in it, and by which sums they are known.

use std::path::PathBuf;

use hermetic_types::SandboxId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The name of the manifest's own entry, with its sum. It is the last of the archive: without it the file
/// was cut off.
pub(super) fn name(text: &[u8]) -> String {
    format!("{NAME}{}", sum(Sha256::digest(text)))
}

/// How the manifest's own entry begins.
pub(super) const NAME: &str = "manifest.sha256-";

pub(super) fn sum(digest: impl AsRef<[u8]>) -> String {
    let bytes = digest.as_ref().iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Archives of a later form are refused.
pub(super) const FORM: u32 = 2;

/// Without files of sandboxes it is as the first program wrote it, and is read by it.
pub(super) const FORM_WITHOUT_WORKSPACES: u32 = 1;

/// No manifest is longer, though it names every sandbox.
pub(super) const LONGEST: u64 = 16 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackupManifest {
    pub(crate) form: u32,
    /// The version of the program that made it.
    pub(crate) program: String,
    /// Seconds since 1970.
    pub(crate) made_at: u64,
    /// Where it was made, to notice that the original is still there.
    pub(crate) home: PathBuf,
    pub(crate) installation: String,
    /// The latest change that the store went through.
    pub(crate) store_version: i64,
    pub(crate) files: Vec<PackedFile>,
    /// Files of the installation that lie elsewhere and are not in it.
    pub(crate) left_out: Vec<PathBuf>,
    /// Sandboxes whose kept files are in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) workspaces: Vec<PackedWorkspace>,
    /// Sandboxes whose kept files were wanted and are not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) workspaces_left_out: Vec<LeftOutWorkspace>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackedWorkspace {
    pub(crate) sandbox: SandboxId,
    pub(crate) conversation: String,
    pub(crate) backend: String,
    pub(crate) bytes: u64,
    /// Something changed while it was read, or could not be read: what the packing said first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) doubt: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftOutWorkspace {
    pub(crate) sandbox: SandboxId,
    pub(crate) conversation: String,
    pub(crate) backend: String,
    pub(crate) why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackedFile {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// The files that an installation consists of, by their names in the archive. Nothing else is packed, and
/// nothing else is taken out of an archive, whatever is in it.
pub(super) const FILES: [(&str, FilePlace); 12] = [
    ("home/config.yaml", FilePlace::Home("config.yaml")),
    ("home/.env", FilePlace::Home(".env")),
    ("home/gateway.json", FilePlace::Home("gateway.json")),
    ("state/installation", FilePlace::State("installation")),
    (STORE, FilePlace::State("state.db")),
    (RECORD, FilePlace::State("audit.jsonl")),
    (RECORD_KEY, FilePlace::State("audit.key")),
    (RECORD_HEAD, FilePlace::State("audit.head")),
    ("state/egress.rules", FilePlace::State("egress.rules")),
    ("state/egress.jsonl", FilePlace::State("egress.jsonl")),
    ("state/egress-ca.key", FilePlace::State("egress-ca.key")),
    ("state/egress-ca.pem", FilePlace::State("egress-ca.pem")),
];

pub(super) const STORE: &str = "state/state.db";
pub(super) const RECORD: &str = "state/audit.jsonl";
pub(super) const RECORD_KEY: &str = "state/audit.key";
pub(super) const RECORD_HEAD: &str = "state/audit.head";

/// The name under which a sandbox's files are packed.
pub(super) fn workspace_name(sandbox: &SandboxId) -> String {
    format!("workspaces/{sandbox}.tar")
}

/// Whether a name is one of those: what is in such a file is looked at in a sandbox only.
pub(super) fn is_workspace(name: &str) -> bool {
    let id = name.strip_prefix("workspaces/");
    let id = id.and_then(|name| name.strip_suffix(".tar"));
    id.is_some_and(|id| id.parse::<SandboxId>().is_ok())
}

/// Where a file of an installation belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilePlace {
    /// Beside the configuration: shared with Hermes.
    Home(&'static str),
    /// In the folder that is ours.
    State(&'static str),
}

pub(super) fn place_of(name: &str) -> Option<FilePlace> {
    let mut files = FILES.iter();
    files
        .find(|(known, _)| *known == name)
        .map(|(_, place)| *place)
}
