//! Installing, replacing and removing an agent.
//!
//! Everything is made aside and becomes visible by one rename, so that whoever is interrupted, and whoever comes
//! at the same time, leaves or finds either the old one or the new one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with, statvfs, syncfs};
use thiserror::Error;

use crate::checksums::{self, ChecksumError};
use crate::fetcher::{self, PackageClient, StagingFolders, WantedVersion};
use crate::fetcher_failure::FetchError;
use crate::folder::{
    AgentFolder, CHECKSUMS, FolderError, INSTALLED, InstalledAgent, STAGING, TREE, remove_all,
};
use crate::preset::{AgentPreset, PackageRegistry, PackageSource};
use crate::presets::{NODE, NODE_MEGABYTES, NODE_PROGRAM, PRESETS};

/// The name under which the interpreter lies among the agents.
pub(crate) const NODE_NAME: &str = "node";

/// What happens while a person waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallProgress<'a> {
    /// Another one installs at the moment.
    Waits,
    /// So many bytes are on the disk.
    Fetches {
        what: &'a str,
        bytes: u64,
    },
    SumsUp {
        what: &'a str,
    },
}

/// The reason why an agent was not installed. What was there before is there still.
#[derive(Debug, Error)]
pub enum InstallError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("this is a machine of another kind than x86-64 Linux, for which the agents are built")]
    Machine,
    #[error("about {needed} MB are needed in {}, and {free} MB are free", folder.display())]
    NoRoom {
        needed: u64,
        free: u64,
        folder: PathBuf,
    },
    #[error("{version:?} is no version")]
    Version { version: String },
    #[error("{package} holds no {program}")]
    NoProgram { package: String, program: String },
}

impl InstallError {
    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Fetch(error) => error.remedy(),
            Self::Machine => "use our own agent, or run hermetic on such a machine",
            Self::NoRoom { .. } => "make room there, or move the home",
            Self::Version { .. } => "write it as 1.2.3",
            Self::NoProgram { .. } => {
                "this version is made otherwise; leave --version out for the one that was tried"
            }
            Self::Folder(FolderError::File { source, .. }) if is_full(source) => {
                FetchError::DiskFull.remedy()
            }
            Self::Folder(_) => {
                "see whether the home can be written; `hermetic agents remove` makes room"
            }
        }
    }
}

/// Installs an agent, and the interpreter it needs, in place of what is there.
pub fn install(
    folder: &AgentFolder,
    preset: &AgentPreset,
    version: Option<&str>,
    client: &PackageClient,
    tell: &mut dyn FnMut(InstallProgress<'_>),
) -> Result<InstalledAgent, InstallError> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
        return Err(InstallError::Machine);
    }
    let wanted = match version {
        None => WantedVersion::Locked,
        Some(version) => WantedVersion::Named(checked_version(version)?),
    };
    let lock = folder.lock(|| tell(InstallProgress::Waits))?;
    // Only now: what lies aside without the lock may be what somebody else is making.
    folder.sweep()?;
    let has_node = folder
        .installed(NODE_NAME)?
        .is_some_and(|node| node.version == NODE.version);
    let fetches_node = preset.needs_node() && !has_node;
    let node = if fetches_node { NODE_MEGABYTES } else { 0 };
    check_room(folder, preset.megabytes + node)?;
    if fetches_node {
        // First: interrupted in between, there is an interpreter too many and no agent that cannot start.
        let job = InstallJob {
            name: NODE_NAME,
            source: &NODE,
            version: WantedVersion::Locked,
            program: NODE_PROGRAM,
            client,
        };
        job.run(folder, &lock, tell)?;
    }
    let job = InstallJob {
        name: preset.name,
        source: &preset.source,
        version: wanted,
        program: preset.program,
        client,
    };
    job.run(folder, &lock, tell)
}

/// Removes an agent, and the interpreter with the last one that needs it. `false` where it was not there.
pub fn remove(folder: &AgentFolder, preset: &AgentPreset) -> Result<bool, InstallError> {
    let _lock = folder.lock(|| ())?;
    folder.sweep()?;
    let mut was_there = folder.root().join(preset.name).exists();
    take_away(folder, preset.name)?;
    let is_needed = |other: &&AgentPreset| {
        other.needs_node() && folder.root().join(other.name).join(INSTALLED).exists()
    };
    if !PRESETS.iter().any(|other| is_needed(&other)) {
        take_away(folder, NODE_NAME)?;
    }
    was_there |= folder.remove_previous(preset.name)?;
    Ok(was_there)
}

/// One package on its way into the folder.
struct InstallJob<'a> {
    name: &'a str,
    source: &'a PackageSource,
    version: WantedVersion<'a>,
    program: &'a str,
    client: &'a PackageClient,
}

impl InstallJob<'_> {
    fn run(
        &self,
        folder: &AgentFolder,
        lock: &File,
        tell: &mut dyn FnMut(InstallProgress<'_>),
    ) -> Result<InstalledAgent, InstallError> {
        let staging = folder.root().join(format!("{STAGING}{}", self.name));
        let made = self.make(&staging, lock, tell).and_then(|installed| {
            put_in_place(folder, self.name, &staging)?;
            Ok(installed)
        });
        // Whatever is left of it: the one that failed, or the one it took the place of.
        let _ = fs::remove_dir_all(&staging);
        made
    }

    fn make(
        &self,
        staging: &Path,
        lock: &File,
        tell: &mut dyn FnMut(InstallProgress<'_>),
    ) -> Result<InstalledAgent, InstallError> {
        let (tree, scratch) = (staging.join(TREE), staging.join("scratch"));
        for path in [&tree, &scratch] {
            fs::create_dir_all(path).map_err(|error| at("create", path, error))?;
        }
        let folders = StagingFolders {
            tree: &tree,
            scratch: &scratch,
        };
        let look = || {
            tell(InstallProgress::Fetches {
                what: self.name,
                bytes: size_of(staging),
            });
        };
        let python = match self.source.registry {
            PackageRegistry::Npm => None,
            PackageRegistry::PyPi => Some(fetcher::python_of(self.client)?),
        };
        fetcher::fetch(self.client, self.source, self.version, &folders, lock, look)?;
        tell(InstallProgress::SumsUp { what: self.name });
        remove_all(&scratch)?;
        for part in self.source.unneeded {
            remove_all(&tree.join(part))?;
        }
        // Before it is summed up, where a link is an error.
        checksums::make_plain(&tree).map_err(FolderError::from)?;
        if !tree.join(self.program).is_file() {
            return Err(InstallError::NoProgram {
                package: self.source.package.to_owned(),
                program: self.program.to_owned(),
            });
        }
        let sums = checksums::sum_up(&tree).map_err(FolderError::from)?;
        let list = checksums::write_list(&sums);
        let installed = InstalledAgent {
            package: self.source.package.to_owned(),
            version: match self.version {
                WantedVersion::Locked => self.source.version.to_owned(),
                WantedVersion::Named(version) => version.to_owned(),
            },
            files: sums.len(),
            bytes: size_of(&tree),
            checksum: checksums::sum_of_text(&list),
            python,
        };
        write(&staging.join(CHECKSUMS), list.as_bytes())?;
        let record = serde_json::to_vec_pretty(&installed).unwrap_or_default();
        write(&staging.join(INSTALLED), &record)?;
        Ok(installed)
    }
}

/// The one before stays until the next change, because sandboxes that run still see it.
fn put_in_place(folder: &AgentFolder, name: &str, staging: &Path) -> Result<(), FolderError> {
    let place = folder.root().join(name);
    let root = File::open(folder.root()).map_err(|error| at("open", folder.root(), error))?;
    // What is renamed must be on the disk before its name is.
    syncfs(&root).map_err(|error| at("write", folder.root(), error.into()))?;
    let previous = folder.place_for_previous(name)?;
    if !place.exists() {
        fs::rename(staging, &place).map_err(|error| at("rename", staging, error))?;
    } else {
        // In one step, so that nobody who starts one meanwhile finds none.
        let exchanged = renameat_with(CWD, staging, CWD, &place, RenameFlags::EXCHANGE);
        match exchanged {
            Ok(()) => {
                fs::rename(staging, &previous).map_err(|error| at("rename", staging, error))?;
            }
            // Not every file system can: for a moment there is none, and nothing starts.
            Err(_) => {
                fs::rename(&place, &previous).map_err(|error| at("rename", &place, error))?;
                fs::rename(staging, &place).map_err(|error| at("rename", staging, error))?;
            }
        }
    }
    syncfs(&root).map_err(|error| at("write", folder.root(), error.into()))
}

/// Out of sight first: whoever looks meanwhile finds all of it or nothing.
fn take_away(folder: &AgentFolder, name: &str) -> Result<(), FolderError> {
    let place = folder.root().join(name);
    let aside = folder.root().join(format!("{STAGING}{name}"));
    match fs::rename(&place, &aside) {
        Ok(()) => remove_all(&aside),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(at("rename", &place, error)),
    }
}

fn checked_version(version: &str) -> Result<&str, InstallError> {
    const LONGEST: usize = 64;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
    // A version, and no tag, range or address: npm would take each of them in its place.
    let begins = version.starts_with(|c: char| c.is_ascii_digit());
    match begins && version.len() <= LONGEST && version.bytes().all(is_plain) {
        true => Ok(version),
        false => Err(InstallError::Version {
            version: version.chars().take(LONGEST).collect(),
        }),
    }
}

/// The archives and what is unpacked from them lie beside each other for a while.
fn check_room(folder: &AgentFolder, megabytes: u64) -> Result<(), InstallError> {
    let needed = megabytes + megabytes / 2;
    let found =
        statvfs(folder.root()).map_err(|error| at("look at", folder.root(), error.into()))?;
    let free = found.f_bavail.saturating_mul(found.f_frsize) / 1_000_000;
    match free < needed {
        true => Err(InstallError::NoRoom {
            needed,
            free,
            folder: folder.root().to_owned(),
        }),
        false => Ok(()),
    }
}

/// What a folder takes, as far as it can be read.
fn size_of(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => folders.push(entry.path()),
                Ok(found) => bytes += found.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
    let failed = |error| at("write", path, error);
    let mut file = File::create(path).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.sync_all().map_err(failed)
}

fn at(verb: &'static str, path: &Path, source: io::Error) -> FolderError {
    FolderError::File {
        verb,
        path: path.to_owned(),
        source,
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

impl From<ChecksumError> for InstallError {
    fn from(error: ChecksumError) -> Self {
        Self::Folder(error.into())
    }
}
