//! Somebody else's agents: which there are, how they are fetched, and what each needs.
//!
//! An [`AgentPreset`] is data. [`AgentFolder`] keeps what was installed of it, with the checksum of every file.
//! Nothing of an agent runs on this machine, neither when it is installed nor later: it is fetched with its
//! scripts switched off, and seen read-only inside a sandbox. [`InstalledPrograms`] makes of both what is
//! needed to start one there.

#![forbid(unsafe_code)]

mod catalog;
mod checksums;
mod fetcher;
mod fetcher_failure;
mod folder;
mod install;
mod preset;
mod presets;

pub use catalog::{BackendReach, InstalledPrograms, ProgramBackend};
pub use checksums::{ChecksumError, TreeDifference};
pub use fetcher::PackageClient;
pub use fetcher_failure::FetchError;
pub use folder::{AgentFolder, FolderError, InstalledAgent};
pub use install::{InstallError, InstallProgress, install, remove};
pub use preset::{
    AgentPreset, Interpreter, PackageRegistry, PackageSource, PresetFile, PresetKey, RequiredKeys,
};
pub use presets::{NODE, PRESETS};
