//! What is needed to start somebody else's agent, as plain data.
//!
//! Presets, installed packages and the operator's own commands all end as an [`AgentProgram`]. Whoever
//! starts one knows nothing of where it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use hermetic_store::AgentSettings;
use hermetic_types::{BackendKind, Secret};
use thiserror::Error;

/// What is needed to start somebody else's agent inside a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentProgram {
    /// The name by which people choose it: `claude`.
    pub name: String,
    /// The program and its arguments, as seen inside.
    pub command: Vec<String>,
    /// On top of the sandbox's own environment. Whatever runs inside can read it: never a secret.
    pub environment: BTreeMap<String, String>,
    /// Folders of the host that the program needs, read-only inside.
    pub mounts: Vec<ProgramMount>,
    /// Folders that are written into a sandbox which cannot be shown any, once.
    pub uploads: Vec<ProgramUpload>,
    /// Hosts that a conversation with this agent may reach on top of its own, as in
    /// `gateway.egress.allow`.
    pub hosts: Vec<String>,
    /// Secrets that the proxy puts in on the way out.
    pub credentials: Vec<ProgramCredential>,
    /// Files below the home folder inside, which hold this before the program starts. What else is in them stays.
    pub files: Vec<ProgramFile>,
    /// The mode that a new session is set to, where the agent offers it.
    pub session_mode: Option<String>,
    /// The model that a new session is set to, where the agent offers it.
    pub session_model: Option<String>,
    /// The id of the method for `authenticate`; it is not called where absent.
    pub authenticate: Option<String>,
}

impl AgentProgram {
    /// What a new session is set to where nobody chose otherwise.
    pub(crate) fn settings(&self) -> AgentSettings {
        AgentSettings {
            mode: self.session_mode.clone(),
            model: self.session_model.clone(),
        }
    }
}

/// A folder of the host, seen read-only inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramMount {
    pub outside: PathBuf,
    pub inside: PathBuf,
}

/// A folder of the host that is copied into the sandbox. Where the command names `inside`, its place there is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramUpload {
    pub name: String,
    pub outside: PathBuf,
    pub inside: PathBuf,
    /// Tells one version from another: the checksum of all checksums.
    pub mark: String,
}

/// A secret for one host. The program finds a placeholder for it in its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCredential {
    pub host: String,
    /// The header it goes into: `x-api-key`, `authorization`.
    pub header: String,
    /// The word before the value (`Bearer`), `basic`, or nothing for the value alone.
    pub scheme: String,
    /// The request paths that get it (`/v1/messages`); every path of the host where empty.
    pub paths: Vec<String>,
    /// The variable inside that holds the placeholder.
    pub variable: String,
    /// The value itself, resolved by whoever made the program; it stays outside.
    pub secret: Secret,
}

/// A settings file of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    /// Relative to the home folder inside, without `..`.
    pub path: PathBuf,
    /// Whatever runs inside can read it: never a secret.
    pub content: String,
}

/// The agents that can be chosen by name.
///
/// `program` is asked each time one is started, so that what was installed or removed since is seen.
/// It reads files at most, and answers at once. The backend is that of the conversation: what is shown to the
/// sandboxes of one is copied into those of another, and a third can have neither.
pub trait AgentPrograms: Send + Sync + fmt::Debug {
    /// Every name that can be chosen, whether it can be used at the moment on this backend or not.
    fn list(&self, backend: BackendKind) -> Vec<AgentListing>;

    /// Those that can be started on one of these backends, now or as soon as they are installed. Their hosts and
    /// keys are made ready when a gateway starts; their other fields say nothing yet.
    fn foreseen(&self, backends: &[BackendKind]) -> Vec<AgentProgram> {
        let mut found = Vec::<AgentProgram>::new();
        for &backend in backends {
            for agent in self.list(backend) {
                let is_there = found.iter().any(|one| one.name == agent.name);
                let program = self.program(&agent.name, backend).ok();
                found.extend(program.filter(|_| !is_there));
            }
        }
        found
    }

    /// The program of that name, as a sandbox of this backend can start it.
    fn program(&self, name: &str, backend: BackendKind) -> Result<AgentProgram, AgentUnavailable>;
}

/// One line of the list of agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentListing {
    pub name: String,
    /// What it is, in a few words: `Claude Code 0.99.1`.
    pub about: String,
    /// Why it cannot be used at the moment, and what to do; nothing where it can.
    pub missing: Option<String>,
}

/// The reason why an agent cannot be started. Its words may be shown in a chat.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AgentUnavailable {
    #[error("there is no agent called {name:?}; known: {known}")]
    Unknown { name: String, known: String },
    /// It is known, and something is missing; the words say what, and what to do.
    #[error("{name} cannot be used: {why}")]
    Missing { name: String, why: String },
}
