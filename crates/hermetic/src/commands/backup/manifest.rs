//! What stands at the end of a backup: which files are in it, and by which sums they are known.

use std::path::PathBuf;

use hermetic_config::HomeFolder;
use hermetic_types::SandboxId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::folder_reader::{DEEPEST, LeftOutFile, is_plain};

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
pub(super) const FORM: u32 = 3;

/// Each archive has the earliest form that says what is in it, so that a program of before can read it.
pub(super) fn form_of(files: &[PackedFile]) -> u32 {
    let forms = files.iter().map(|file| match &*file.name {
        name if FILES_OF_FORM_ONE.contains(&name) => 1,
        name if is_workspace(name) => 2,
        _ => FORM,
    });
    forms.max().unwrap_or(1)
}

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
    /// What lies in the folders of the installation and is not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files_left_out: Vec<LeftOutFile>,
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
    /// Of files in folders, where a script of a skill may be executable. All others are their owner's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<u32>,
}

/// The files that an installation consists of, by their names in the archive. Beside these and what is in
/// [`FOLDERS`] nothing is packed, and nothing else is taken out of an archive, whatever is in it.
pub(super) fn all_files() -> impl Iterator<Item = &'static str> {
    FILES_OF_FORM_ONE.into_iter().chain(LATER_FILES)
}

const FILES_OF_FORM_ONE: [&str; 12] = [
    "home/config.yaml",
    "home/.env",
    "home/gateway.json",
    "state/installation",
    STORE,
    RECORD,
    RECORD_KEY,
    RECORD_HEAD,
    "state/egress.rules",
    "state/egress.jsonl",
    "state/egress-ca.key",
    "state/egress-ca.pem",
];

/// The character, prices of models, and which image at Modal has whose files.
const LATER_FILES: [&str; 3] = [
    "home/SOUL.md",
    "home/models.txt",
    "home/modal_snapshots.json",
];

/// Packed with everything in them: memories and skills of before, skills that a person approved, and logins at
/// MCP servers.
pub(super) const FOLDERS: [&str; 4] = [
    "home/memories",
    "home/skills",
    "state/skills",
    "state/mcp-logins",
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

/// The place of a file of an installation, below one of its two folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FilePlace {
    /// Beside the configuration: shared with Hermes.
    Home(PathBuf),
    /// In the folder that is ours.
    State(PathBuf),
}

impl FilePlace {
    /// The place of a known file, or of any in a known folder.
    pub(super) fn of(name: &str) -> Option<Self> {
        let is_known = all_files().any(|known| known == name) || is_in_folder(name);
        is_known.then(|| Self::below(name)).flatten()
    }

    pub(super) fn of_folder(name: &str) -> Option<Self> {
        FOLDERS.contains(&name).then(|| Self::below(name)).flatten()
    }

    fn below(name: &str) -> Option<Self> {
        match name.split_once('/')? {
            ("home", below) => Some(Self::Home(below.into())),
            ("state", below) => Some(Self::State(below.into())),
            _ => None,
        }
    }

    pub(super) fn within(&self, home: &HomeFolder) -> PathBuf {
        match self {
            Self::Home(below) => home.root().join(below),
            Self::State(below) => home.state().join(below),
        }
    }
}

/// Whether a name is one of a file in a folder: each of its parts is a plain one, so it leads nowhere else.
pub(super) fn is_in_folder(name: &str) -> bool {
    let below = FOLDERS
        .iter()
        .find_map(|folder| name.strip_prefix(folder)?.strip_prefix('/'));
    below.is_some_and(|below| below.split('/').count() <= DEEPEST && below.split('/').all(is_plain))
}
