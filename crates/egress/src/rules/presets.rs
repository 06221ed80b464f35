//! Named sets of hosts that a person can read before using: `presets/*.txt`, one rule a line.

use thiserror::Error;

use super::rule::HostRule;

/// A named set of rules that comes with us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RulePreset {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

/// The error of a preset that does not exist.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "there is no egress preset {name:?}; known are {}",
    RulePreset::names()
)]
pub struct UnknownPreset {
    pub name: String,
}

const PRESETS: &[RulePreset] = &[
    RulePreset {
        name: "python",
        about: "pip and uv: packages from PyPI",
        text: include_str!("../../presets/python.txt"),
    },
    RulePreset {
        name: "node",
        about: "npm, yarn and pnpm: packages and Node.js itself",
        text: include_str!("../../presets/node.txt"),
    },
    RulePreset {
        name: "rust",
        about: "cargo and rustup: crates and toolchains",
        text: include_str!("../../presets/rust.txt"),
    },
    RulePreset {
        name: "debian",
        about: "apt: Debian and Ubuntu archives",
        text: include_str!("../../presets/debian.txt"),
    },
    RulePreset {
        name: "github",
        about: "GitHub: git over https and ssh, API, releases",
        text: include_str!("../../presets/github.txt"),
    },
    RulePreset {
        name: "llm",
        about: "APIs of model providers",
        text: include_str!("../../presets/llm.txt"),
    },
];

impl RulePreset {
    pub fn all() -> &'static [Self] {
        PRESETS
    }

    pub fn named(name: &str) -> Result<Self, UnknownPreset> {
        let found = PRESETS.iter().find(|preset| preset.name == name);
        found.copied().ok_or_else(|| UnknownPreset {
            name: name.to_owned(),
        })
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn about(&self) -> &'static str {
        self.about
    }

    /// The rules as written, without comments.
    pub fn lines(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = HostRule> + use<> {
        // A test parses every line of every preset, so nothing is dropped here.
        self.lines().filter_map(|line| HostRule::parse(line).ok())
    }

    fn names() -> String {
        PRESETS
            .iter()
            .map(Self::name)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_every_preset_is_a_rule() {
        for preset in RulePreset::all() {
            assert!(preset.lines().count() > 0, "{} is empty", preset.name());
            for line in preset.lines() {
                HostRule::parse(line).unwrap_or_else(|error| panic!("{}: {error}", preset.name()));
            }
            assert_eq!(preset.rules().count(), preset.lines().count());
        }
    }

    #[test]
    fn an_unknown_preset_lists_the_known_ones() {
        insta::assert_snapshot!(
            RulePreset::named("pyhton").unwrap_err(),
            @r#"there is no egress preset "pyhton"; known are python, node, rust, debian, github, llm"#
        );
    }
}
