//! Everything outside that a configuration is made of, gathered in one place so that tests can
//! bring their own.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::home::HomeFolder;

const MANAGED: &str = "/etc/hermes/config.yaml";

#[derive(Clone, Debug)]
pub struct ConfigInputs {
    pub home: HomeFolder,
    /// The administrator's file, whose values nothing overrules.
    pub managed: PathBuf,
    pub variables: BTreeMap<String, String>,
    /// Variables whose value is not text.
    pub unreadable: Vec<String>,
}

#[derive(Debug, Error)]
#[error("neither HERMES_HOME nor HOME says where the configuration is")]
pub struct NoHome;

impl ConfigInputs {
    /// From the process's own environment; `home` overrules `HERMES_HOME`.
    pub fn of_process(home: Option<&Path>) -> Result<Self, NoHome> {
        let mut variables = BTreeMap::new();
        let mut unreadable = Vec::new();
        for (name, value) in env::vars_os() {
            let Ok(name) = name.into_string() else {
                continue;
            };
            match value.into_string() {
                Ok(value) => {
                    variables.insert(name, value);
                }
                Err(_) => unreadable.push(name),
            }
        }
        let root = match home {
            Some(home) => home.to_owned(),
            None => default_root(&variables)?,
        };
        Ok(Self {
            home: HomeFolder::at(std::path::absolute(&root).unwrap_or(root)),
            managed: MANAGED.into(),
            variables,
            unreadable,
        })
    }
}

fn default_root(variables: &BTreeMap<String, String>) -> Result<PathBuf, NoHome> {
    let written = |name| variables.get(name).filter(|value| !value.is_empty());
    match (written("HERMES_HOME"), written("HOME")) {
        (Some(root), _) => Ok(root.into()),
        (None, Some(home)) => Ok(Path::new(home).join(".hermes")),
        (None, None) => Err(NoHome),
    }
}
