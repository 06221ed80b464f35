//! Rules as they are written in a configuration file.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::presets::{RulePreset, UnknownPreset};
use super::rule::{HostRule, InvalidRule};
use super::{CompiledRules, RuleTableKind};

/// The rules of one conversation, before they are compiled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RulesText {
    /// `allowlist` where nothing is said.
    pub mode: Option<RuleMode>,
    pub allow: Vec<RuleText>,
    pub deny: Vec<RuleText>,
    pub presets: Vec<String>,
}

/// What happens to hosts that no rule speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleMode {
    #[default]
    Allowlist,
    /// Every public host on its usual port, minus what is denied.
    Open,
    Closed,
}

/// A rule as it is written: a line, or a host with ranges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RuleText {
    Line(String),
    #[serde(rename_all = "lowercase")]
    Ranged {
        host: String,
        addresses: Vec<IpNet>,
    },
}

/// Everything that is wrong with a set of rules, so that a person fixes it in one go.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}", .problems.join("; "))]
pub struct InvalidRules {
    pub problems: Vec<String>,
}

impl RulesText {
    pub fn allowing<S: Into<String>>(hosts: impl IntoIterator<Item = S>) -> Self {
        let allow = hosts
            .into_iter()
            .map(|host| RuleText::Line(host.into()))
            .collect();
        Self {
            allow,
            ..Self::default()
        }
    }

    /// These rules and those of a narrower scope: a platform, a conversation. The mode of the
    /// narrower scope wins only where it is stricter.
    pub fn and(mut self, more: &Self) -> Self {
        self.mode = match (self.mode, more.mode) {
            (Some(wide), Some(narrow)) => Some(wide.stricter(narrow)),
            (wide, narrow) => wide.or(narrow.map(|mode| RuleMode::default().stricter(mode))),
        };
        self.allow.extend_from_slice(&more.allow);
        self.deny.extend_from_slice(&more.deny);
        self.presets.extend_from_slice(&more.presets);
        self
    }

    pub(super) fn compile(&self) -> Result<CompiledRules, InvalidRules> {
        let mut rules = CompiledRules {
            mode: self.mode.unwrap_or_default(),
            ..CompiledRules::default()
        };
        let mut problems = Vec::new();
        for (list, texts) in [
            (RuleTableKind::Allow, &self.allow),
            (RuleTableKind::Deny, &self.deny),
        ] {
            for text in texts {
                match text.parse() {
                    Ok(rule) => rules.insert(list, rule, None),
                    Err(error) => problems.push(error.to_string()),
                }
            }
        }
        for name in &self.presets {
            match RulePreset::named(name) {
                Ok(preset) => preset
                    .rules()
                    .for_each(|rule| rules.insert(RuleTableKind::Allow, rule, Some(preset.name()))),
                Err(UnknownPreset { .. }) => {
                    problems.push(UnknownPreset { name: name.clone() }.to_string());
                }
            }
        }
        if problems.is_empty() {
            Ok(rules)
        } else {
            Err(InvalidRules { problems })
        }
    }
}

impl RuleMode {
    fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Closed, _) | (_, Self::Closed) => Self::Closed,
            (Self::Open, Self::Open) => Self::Open,
            (Self::Open, Self::Allowlist) | (Self::Allowlist, _) => Self::Allowlist,
        }
    }
}

impl RuleText {
    fn parse(&self) -> Result<HostRule, InvalidRule> {
        match self {
            Self::Line(text) => HostRule::parse(text),
            Self::Ranged { host, addresses } => HostRule::parse(host)?.with_ranges(addresses),
        }
    }
}

impl From<&str> for RuleText {
    fn from(text: &str) -> Self {
        Self::Line(text.to_owned())
    }
}
