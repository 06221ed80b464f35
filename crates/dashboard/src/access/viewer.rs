//! Somebody who looks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What somebody may do here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DashboardRole {
    /// May look and act.
    Operator,
    /// May look.
    Viewer,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is no role; known: operator, viewer")]
pub struct InvalidRole(String);

/// Somebody who was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Viewer {
    /// As the audit record names them.
    pub(crate) who: String,
    pub(crate) role: DashboardRole,
    /// What has to come back with every act. Nothing for programs: no browser sends their token unasked.
    pub(crate) csrf: Option<String>,
}

impl Viewer {
    pub(crate) fn new(who: String, role: DashboardRole) -> Self {
        Self {
            who,
            role,
            csrf: None,
        }
    }

    pub(crate) fn may_act(&self) -> bool {
        self.role == DashboardRole::Operator
    }
}

impl DashboardRole {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Viewer => "viewer",
        }
    }
}

impl fmt::Display for DashboardRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DashboardRole {
    type Err = InvalidRole;

    fn from_str(text: &str) -> Result<Self, InvalidRole> {
        match text {
            "operator" => Ok(Self::Operator),
            "viewer" => Ok(Self::Viewer),
            _ => Err(InvalidRole(text.to_owned())),
        }
    }
}
