//! What was read, as a whole.

use std::path::PathBuf;

use crate::effective::Setting;
use crate::home::Home;
use crate::origin::Origin;
use crate::problem::Problem;
use crate::settings::{
    Agent, Approvals, Egress, Gateway, Model, Parts, Platforms, Security, Sessions, Terminal,
};

/// One configuration, read once and never changed: what is used, shown and warned about is the
/// same.
#[derive(Clone, Debug)]
pub struct Config {
    home: Home,
    parts: Parts,
    settings: Vec<Setting>,
    warnings: Vec<Problem>,
    unused: Vec<Unused>,
}

/// A key in a file that has no meaning here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    pub key: String,
    pub file: PathBuf,
    pub line: usize,
}

impl Config {
    pub(crate) fn new(
        home: Home,
        parts: Parts,
        settings: Vec<Setting>,
        warnings: Vec<Problem>,
        unused: Vec<Unused>,
    ) -> Self {
        Self {
            home,
            parts,
            settings,
            warnings,
            unused,
        }
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    pub fn terminal(&self) -> &Terminal {
        &self.parts.terminal
    }

    pub fn gateway(&self) -> &Gateway {
        &self.parts.gateway
    }

    pub fn egress(&self) -> &Egress {
        &self.parts.egress
    }

    pub fn approvals(&self) -> &Approvals {
        &self.parts.approvals
    }

    pub fn security(&self) -> &Security {
        &self.parts.security
    }

    pub fn agent(&self) -> &Agent {
        &self.parts.agent
    }

    pub fn sessions(&self) -> &Sessions {
        &self.parts.sessions
    }

    pub fn model(&self) -> &Model {
        &self.parts.model
    }

    pub fn platforms(&self) -> &Platforms {
        &self.parts.platforms
    }

    /// Every key in the order of the schema, with its value and origin.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    pub fn unused(&self) -> &[Unused] {
        &self.unused
    }

    /// Where the value of a key came from; `None` for a name that is no key.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.settings
            .iter()
            .find(|setting| setting.name() == key)
            .map(Setting::origin)
    }
}
