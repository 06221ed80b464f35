//! From what is installed to what can be started.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hermetic_acp::{
    AgentListing, AgentProgram, AgentPrograms, AgentUnavailable, ProgramCredential, ProgramFile,
    ProgramMount, ProgramUpload,
};
use hermetic_types::{BackendKind, Secret};

use crate::fetcher::PYTHON_LIBRARY;
use crate::folder::{AgentFolder, InstalledAgent};
use crate::install::NODE_NAME;
use crate::preset::{AgentPreset, Interpreter, PresetKey, RequiredKeys};
use crate::presets::{NODE_PROGRAM, PRESETS};

/// Where agents are seen inside, each in a folder of its name.
const INSIDE: &str = "/agents";

/// Runs a module out of its folder. In an environment variable the folder would be every Python's that the agent
/// starts.
const START_MODULE: &str = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); \
     runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)";

/// The presets, with what is installed of them and the keys that the operator has.
#[derive(Clone, Debug)]
pub struct InstalledPrograms {
    folder: AgentFolder,
    keys: BTreeMap<String, Secret>,
    backends: BackendReach,
}

/// How the sandboxes of a backend come by an agent.
pub type BackendReach = fn(BackendKind) -> ProgramBackend;

/// Whether the sandboxes can be shown a folder of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramBackend {
    Near,
    /// They cannot, and are given a copy of it: files are written into them.
    Copied,
    /// It cannot; the words say why, and what to do.
    Far(String),
}

impl InstalledPrograms {
    /// `keys` are the values of the variables that presets name, where they are set.
    pub fn new(
        folder: AgentFolder,
        keys: BTreeMap<String, Secret>,
        backends: BackendReach,
    ) -> Self {
        Self {
            folder,
            keys,
            backends,
        }
    }

    /// What is needed to start the program, apart from its keys: enough to see whether it starts at all.
    pub fn without_keys(
        &self,
        preset: &AgentPreset,
        backend: BackendKind,
    ) -> Result<AgentProgram, AgentUnavailable> {
        let reach = (self.backends)(backend);
        if let ProgramBackend::Far(why) = reach {
            return Err(missing(preset, why));
        }
        let installed = self.installed(preset)?;
        let mut program = self.assembled(preset, installed.python.as_deref());
        if reach == ProgramBackend::Copied {
            let mounts = std::mem::take(&mut program.mounts).into_iter();
            program.uploads = mounts.filter_map(|mount| self.copied(mount)).collect();
        }
        Ok(program)
    }

    /// In place of what a sandbox nearby would be shown.
    fn copied(&self, mount: ProgramMount) -> Option<ProgramUpload> {
        let name = mount.inside.file_name()?.to_str()?.to_owned();
        // It was there a moment ago; where it is gone, the start says what is missing.
        let installed = self.folder.installed(&name).ok().flatten()?;
        Some(ProgramUpload {
            name,
            outside: mount.outside,
            inside: mount.inside,
            mark: installed.checksum,
        })
    }

    /// From the preset, whether it is installed or not.
    fn assembled(&self, preset: &AgentPreset, python: Option<&str>) -> AgentProgram {
        let inside = |name: &str| PathBuf::from(INSIDE).join(name);
        let mount = |name: &str| ProgramMount {
            outside: self.folder.tree(name),
            inside: inside(name),
        };
        let path = |name: &str, program: &str| inside(name).join(program).display().to_string();
        let mut command = Vec::new();
        let mut mounts = vec![mount(preset.name)];
        match preset.interpreter {
            Interpreter::Itself => command.push(path(preset.name, preset.program)),
            Interpreter::Node => {
                command.push(path(NODE_NAME, NODE_PROGRAM));
                mounts.push(mount(NODE_NAME));
                command.push(path(preset.name, preset.program));
            }
            Interpreter::Python { module } => {
                // Compiled parts are for one version, so no other may take its place.
                let version = python.unwrap_or("3");
                command.push(format!("python{version}"));
                // Neither the working directory nor packages of the home come before its own.
                command.extend(["-P", "-s", "-c", START_MODULE].map(str::to_owned));
                command.extend([path(preset.name, PYTHON_LIBRARY), module.to_owned()]);
            }
        }
        command.extend(preset.arguments.iter().map(|&word| word.to_owned()));
        let variables = preset.variables.iter();
        AgentProgram {
            name: preset.name.to_owned(),
            command,
            environment: variables
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            mounts,
            uploads: Vec::new(),
            hosts: preset.hosts.iter().map(|&host| host.to_owned()).collect(),
            credentials: Vec::new(),
            files: preset
                .files
                .iter()
                .map(|file| ProgramFile {
                    path: file.path.into(),
                    content: file.content.to_owned(),
                })
                .collect(),
            session_mode: preset.session_mode.map(str::to_owned),
            session_model: None,
            authenticate: preset.authenticate.map(str::to_owned),
        }
    }

    /// The same with its keys, as far as they are set.
    fn with_keys(
        &self,
        preset: &AgentPreset,
        backend: BackendKind,
    ) -> Result<AgentProgram, AgentUnavailable> {
        let program = self.without_keys(preset, backend)?;
        self.add_keys(preset, program)
    }

    fn add_keys(
        &self,
        preset: &AgentPreset,
        mut program: AgentProgram,
    ) -> Result<AgentProgram, AgentUnavailable> {
        for key in preset.keys {
            let Some(secret) = self.keys.get(key.variable) else {
                continue;
            };
            program
                .environment
                .insert(key.inside.to_owned(), key.placeholder());
            program.hosts.push(key.host.to_owned());
            program.credentials.push(credential(key, secret));
        }
        let lacks = match preset.required {
            RequiredKeys::All => program.credentials.len() < preset.keys.len(),
            RequiredKeys::Any => program.credentials.is_empty(),
        };
        match lacks {
            true => Err(missing(preset, no_key(preset))),
            false => Ok(program),
        }
    }

    fn installed(&self, preset: &AgentPreset) -> Result<InstalledAgent, AgentUnavailable> {
        let say = |why: String| missing(preset, why);
        let install = format!(
            "it is not installed; `hermetic agents install {}`",
            preset.name
        );
        let read = |name: &str| {
            let found = self.folder.installed(name);
            found.map_err(|error| say(format!("{error}; `hermetic agents update {}`", preset.name)))
        };
        let agent = read(preset.name)?.ok_or_else(|| say(install.clone()))?;
        if preset.needs_node() && read(NODE_NAME)?.is_none() {
            return Err(say(install));
        }
        Ok(agent)
    }
}

impl AgentPrograms for InstalledPrograms {
    fn list(&self, backend: BackendKind) -> Vec<AgentListing> {
        let listing = |preset: &AgentPreset| {
            let installed = self.installed(preset);
            let version = match &installed {
                Ok(installed) => installed.version.as_str(),
                Err(_) => preset.source.version,
            };
            let missing = match self.with_keys(preset, backend) {
                Ok(_) => None,
                Err(AgentUnavailable::Missing { why, .. }) => Some(why),
                Err(other) => Some(other.to_string()),
            };
            AgentListing {
                name: preset.name.to_owned(),
                about: format!("{} {version}", preset.title),
                missing,
            }
        };
        PRESETS.iter().map(listing).collect()
    }

    /// Nobody who never installed one is given an authority and rules for them.
    fn foreseen(&self, backends: &[BackendKind]) -> Vec<AgentProgram> {
        let is_far =
            |&backend: &BackendKind| matches!((self.backends)(backend), ProgramBackend::Far(_));
        if backends.iter().all(is_far) || !self.folder.root().is_dir() {
            return Vec::new();
        }
        let presets = PRESETS.iter();
        presets
            .filter_map(|preset| self.add_keys(preset, self.assembled(preset, None)).ok())
            .collect()
    }

    fn program(&self, name: &str, backend: BackendKind) -> Result<AgentProgram, AgentUnavailable> {
        let preset = AgentPreset::named(name).ok_or_else(|| AgentUnavailable::Unknown {
            name: name.chars().take(80).collect(),
            known: AgentPreset::known(),
        })?;
        self.with_keys(preset, backend)
    }
}

fn credential(key: &PresetKey, secret: &Secret) -> ProgramCredential {
    ProgramCredential {
        host: key.host.to_owned(),
        header: key.header.to_owned(),
        scheme: key.scheme.to_owned(),
        paths: key.paths.iter().map(|&path| path.to_owned()).collect(),
        variable: key.inside.to_owned(),
        secret: secret.clone(),
    }
}

fn no_key(preset: &AgentPreset) -> String {
    let names: Vec<_> = preset.keys.iter().map(|key| key.variable).collect();
    let wanted = match preset.required {
        RequiredKeys::All => names.join(" and "),
        RequiredKeys::Any => names.join(" or "),
    };
    format!(
        "it needs {wanted} in .env. A subscription, with its login in a browser, cannot be used: the login would \
         lie in the sandbox, where everything that runs could read it. Make an API key instead"
    )
}

fn missing(preset: &AgentPreset, why: String) -> AgentUnavailable {
    AgentUnavailable::Missing {
        name: preset.name.to_owned(),
        why,
    }
}
