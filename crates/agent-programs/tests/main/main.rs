//! Installing, with the npm of this machine and with stand-ins for it.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed"
)]

mod catalog;
mod folder;
mod python_index;
mod registry;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use hermetic_agent_programs::{
    AgentFolder, AgentPreset, InstallError, InstalledAgent, Interpreter, PackageClient,
    PackageRegistry, PackageSource, PresetKey, RequiredKeys, install,
};
use tempfile::TempDir;

/// A package of one file.
const PROGRAM: &str = "node_modules/small/index.js";

/// A home, and an npm that is a script of the test's.
pub(crate) struct Lab {
    home: TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn folder(&self) -> AgentFolder {
        AgentFolder::in_state(self.home.path())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// An npm that does this in the folder it is started in.
    pub(crate) fn npm(&self, name: &str, script: &str) -> PackageClient {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\nset -e\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        PackageClient::new(&path)
    }

    /// One that fetches a file with these words.
    pub(crate) fn npm_with(&self, words: &str) -> PackageClient {
        let script = format!("mkdir -p node_modules/small; echo '{words}' > {PROGRAM}");
        self.npm(&format!("npm-{words}"), &script)
    }

    pub(crate) fn install(&self, npm: &PackageClient) -> Result<InstalledAgent, InstallError> {
        let preset = small_preset(&small_lock("sha512-x"));
        install(&self.folder(), &preset, None, npm, &mut |_| ())
    }

    /// What is in the program's file.
    pub(crate) fn words(&self) -> String {
        fs::read_to_string(self.folder().tree("small").join(PROGRAM)).unwrap()
    }

    /// Every name in the folder of agents.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder().root()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub(crate) fn small_lock(integrity: &str) -> String {
    format!(
        r#"{{"name":"agent","lockfileVersion":3,"requires":true,"packages":{{
            "":{{"name":"agent","dependencies":{{"small":"1.0.0"}}}},
            "node_modules/small":{{"version":"1.0.0","integrity":"{integrity}"}}}}}}"#
    )
}

/// A preset is data for the life of the program, so a test's is too.
pub(crate) fn small_preset(lock: &str) -> AgentPreset {
    AgentPreset {
        name: "small",
        title: "Small",
        source: PackageSource {
            registry: PackageRegistry::Npm,
            package: "small",
            version: "1.0.0",
            lock: Box::leak(lock.to_owned().into_boxed_str()),
            unneeded: &[],
        },
        megabytes: 1,
        program: PROGRAM,
        interpreter: Interpreter::Itself,
        arguments: &[],
        variables: &[],
        files: &[],
        keys: &[PresetKey {
            variable: "SMALL_API_KEY",
            inside: "SMALL_API_KEY",
            host: "small.test",
            header: "authorization",
            scheme: "Bearer",
            paths: &["/v1"],
        }],
        required: RequiredKeys::All,
        hosts: &[],
        authenticate: None,
        session_mode: None,
        state: &[],
    }
}
