//! What is known of one agent, as data.

use crate::presets::PRESETS;

/// Somebody else's agent, as it is installed and started here.
#[derive(Clone, Copy, Debug)]
pub struct AgentPreset {
    /// The name by which people choose it.
    pub name: &'static str,
    /// What people call it: `Claude Code`.
    pub title: &'static str,
    pub source: PackageSource,
    /// The bytes it takes on the disk, roughly, without Node.
    pub megabytes: u64,
    /// The program inside its folder, and what runs it.
    pub program: &'static str,
    pub interpreter: Interpreter,
    pub arguments: &'static [&'static str],
    /// Variables for it, and none of them secret: telemetry and updates off.
    pub variables: &'static [(&'static str, &'static str)],
    /// Settings files in its home.
    pub files: &'static [PresetFile],
    pub keys: &'static [PresetKey],
    pub required: RequiredKeys,
    /// Hosts it needs besides those of its keys.
    pub hosts: &'static [&'static str],
    pub authenticate: Option<&'static str>,
    pub session_mode: Option<&'static str>,
    /// What it keeps in its home, which stays with the conversation's files.
    pub state: &'static [&'static str],
}

/// What runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpreter {
    /// The kernel.
    Itself,
    /// The Node that is installed beside it.
    Node,
    /// The sandbox's own Python, which has to be of the version that the packages were fetched for. The
    /// program is this module.
    Python { module: &'static str },
}

/// Where a package comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageRegistry {
    Npm,
    PyPi,
}

/// A package of npm or PyPI, with all it depends on, and the checksum of each.
#[derive(Clone, Copy, Debug)]
pub struct PackageSource {
    pub registry: PackageRegistry,
    pub package: &'static str,
    pub version: &'static str,
    /// A `package-lock.json`, or requirements with hashes.
    pub lock: &'static str,
    /// Parts of the tree that are never used here.
    pub unneeded: &'static [&'static str],
}

#[derive(Clone, Copy, Debug)]
pub struct PresetFile {
    pub path: &'static str,
    pub content: &'static str,
}

/// A key for a model: where it comes from, what the agent calls it, and where it goes.
#[derive(Clone, Copy, Debug)]
pub struct PresetKey {
    /// The variable in `.env` or the environment that holds it.
    pub variable: &'static str,
    /// The variable inside that holds the placeholder.
    pub inside: &'static str,
    pub host: &'static str,
    pub header: &'static str,
    pub scheme: &'static str,
    pub paths: &'static [&'static str],
}

/// Which of its keys an agent cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredKeys {
    All,
    Any,
}

impl AgentPreset {
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Every name there is, for people.
    pub fn known() -> String {
        let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
        names.join(", ")
    }

    pub fn needs_node(&self) -> bool {
        self.interpreter == Interpreter::Node
    }
}

impl PresetKey {
    /// What stands inside in place of the key.
    pub fn placeholder(&self) -> String {
        format!("hermetic-placeholder-{}", self.inside.to_ascii_lowercase())
    }
}
