//! Every key we use, declared once.
//!
//! Reading, defaults, the variables that mirror a key, the guess at a misspelt one, the printed
//! listing, the JSON Schema and the guide's tables all come from this table, so that they cannot
//! disagree. One file for each section.

mod acp;
mod agent;
mod approvals;
mod budgets;
mod egress;
mod gateway;
mod lost;
mod mcp;
mod memory;
mod model;
mod not_yet;
mod platforms;
mod schedules;
mod session;
mod terminal;
mod unused;
mod variables;
mod web;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{LazyLock, OnceLock};

use crate::shape::{ListItem, ValueShape};

pub(crate) use not_yet::why as why_without_effect;

/// One key.
#[derive(Debug)]
pub(crate) struct SchemaKey {
    /// Dotted, as in `terminal.backend`. A name in capitals is a variable without a key.
    pub(crate) path: String,
    /// Other places where it may stand, the strongest first; `path` beats them all.
    pub(crate) also: Vec<String>,
    pub(crate) shape: ValueShape,
    /// As it would be written in a variable; empty if there is none.
    pub(crate) fallback: &'static str,
    pub(crate) variable: Option<String>,
    pub(crate) stronger: KeyPrecedence,
    pub(crate) about: &'static str,
}

/// Who wins where both speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyPrecedence {
    File,
    Variable,
}

pub(crate) struct Schema {
    pub(crate) keys: Vec<SchemaKey>,
    by_path: HashMap<String, usize>,
    by_variable: HashMap<String, usize>,
    /// The names that may stand below each section, used by us or not. Gathered when a name has to be guessed:
    /// `hermetic exec` need not wait for it.
    sections: OnceLock<SectionNames>,
    unused: BTreeSet<&'static str>,
}

type SectionNames = BTreeMap<String, BTreeSet<String>>;

pub(crate) static SCHEMA: LazyLock<Schema> = LazyLock::new(Schema::build);

impl Schema {
    pub(crate) fn key(&self, path: &str) -> Option<&SchemaKey> {
        self.by_path.get(path).map(|index| &self.keys[*index])
    }

    pub(crate) fn for_variable(&self, name: &str) -> Option<&SchemaKey> {
        self.by_variable.get(name).map(|index| &self.keys[*index])
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.by_variable.keys().map(String::as_str)
    }

    /// Asked of every map in a file. Gathering all sections for that would be half of what `hermetic exec` does
    /// before its command runs.
    pub(crate) fn is_section(&self, path: &str) -> bool {
        if let Some(sections) = self.sections.get() {
            return sections.contains_key(path);
        }
        let used = self.by_path.keys().map(String::as_str);
        let mut all = used.chain(self.unused.iter().copied());
        all.any(|key| is_below(key, path))
    }

    pub(crate) fn knows(&self, path: &str) -> bool {
        self.key(path).is_some() || self.is_section(path) || self.is_unused(path)
    }

    /// A key of the original system that has no meaning here.
    pub(crate) fn is_unused(&self, path: &str) -> bool {
        self.unused.contains(path)
    }

    /// What is missed by whoever wrote this key; nothing for one that is not missed.
    pub(crate) fn missed(&self, path: &str, is_switched_on: bool) -> Option<&'static str> {
        lost::feature(path, is_switched_on)
    }

    /// What belongs into a section, as declared.
    pub(crate) fn used_in(&self, section: &str) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for key in &self.keys {
            let below = key
                .path
                .strip_prefix(section)
                .and_then(|rest| rest.strip_prefix('.'));
            let name = below.and_then(|below| below.split('.').next());
            names.extend(name.filter(|name| !names.contains(name)));
        }
        names
    }

    pub(crate) fn children(&self, section: &str) -> impl Iterator<Item = &str> {
        self.sections()
            .get(section)
            .into_iter()
            .flatten()
            .map(String::as_str)
    }

    fn sections(&self) -> &SectionNames {
        self.sections.get_or_init(|| {
            let mut sections = SectionNames::new();
            let paths = self.by_path.keys().map(String::as_str);
            for path in paths.chain(unused::KEYS.iter().copied()) {
                add_to_sections(&mut sections, path);
            }
            sections
        })
    }

    /// The one place where a key of this unmistakable name belongs.
    pub(crate) fn home_of(&self, name: &str) -> Option<&str> {
        if !name.contains('_') {
            return None;
        }
        let mut homes = self.keys.iter().filter(|key| {
            key.path
                .split_once('.')
                .is_some_and(|(_, leaf)| leaf == name)
        });
        match (homes.next(), homes.next()) {
            (Some(key), None) => Some(&key.path),
            _ => None,
        }
    }

    fn build() -> Self {
        let mut keys = Vec::new();
        keys.extend(terminal::keys());
        keys.extend(gateway::keys());
        keys.extend(egress::keys());
        keys.extend(approvals::keys());
        keys.extend(agent::keys());
        keys.extend(schedules::keys());
        keys.extend(session::keys());
        keys.extend(model::keys());
        keys.extend(budgets::keys());
        keys.extend(mcp::keys());
        keys.extend(web::keys());
        keys.extend(acp::keys());
        keys.extend(memory::keys());
        keys.extend(platforms::keys());
        keys.extend(variables::keys());

        let mut schema = Self {
            keys: Vec::new(),
            by_path: HashMap::new(),
            by_variable: HashMap::new(),
            sections: OnceLock::new(),
            unused: unused::KEYS.iter().copied().collect(),
        };
        for (index, key) in keys.iter().enumerate() {
            for path in std::iter::once(&key.path).chain(&key.also) {
                schema.by_path.insert(path.clone(), index);
            }
            if let Some(variable) = &key.variable {
                schema.by_variable.insert(variable.clone(), index);
            }
        }
        schema.keys = keys;
        schema
    }
}

/// Whether a key stands in a section, at any depth.
fn is_below(key: &str, section: &str) -> bool {
    section.is_empty()
        || key
            .strip_prefix(section)
            .is_some_and(|rest| rest.starts_with('.'))
}

fn add_to_sections(sections: &mut SectionNames, path: &str) {
    let mut rest = path;
    loop {
        let (section, name) = rest.rsplit_once('.').unwrap_or(("", rest));
        sections
            .entry(section.to_owned())
            .or_default()
            .insert(name.to_owned());
        if section.is_empty() {
            return;
        }
        rest = section;
    }
}

/// A key of the file without a variable; the words below add the rest.
fn key(
    path: impl Into<String>,
    shape: ValueShape,
    fallback: &'static str,
    about: &'static str,
) -> SchemaKey {
    SchemaKey {
        path: path.into(),
        also: Vec::new(),
        shape,
        fallback,
        variable: None,
        stronger: KeyPrecedence::File,
        about,
    }
}

impl SchemaKey {
    /// Mirrored by a variable, which the file overrules.
    fn mirrored_by(mut self, variable: impl Into<String>) -> Self {
        self.variable = Some(variable.into());
        self
    }

    /// Mirrored by a variable that overrules the file.
    fn overruled_by(mut self, variable: impl Into<String>) -> Self {
        self.stronger = KeyPrecedence::Variable;
        self.mirrored_by(variable)
    }

    fn also_at(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.also.extend(paths.into_iter().map(Into::into));
        self
    }
}

const DAY: i64 = 86_400;
const YEAR: i64 = 365 * DAY;

/// At least one second.
const fn seconds(most: i64) -> ValueShape {
    ValueShape::Whole { least: 1, most }
}

const fn count(least: i64, most: i64) -> ValueShape {
    ValueShape::Whole { least, most }
}

const TEXTS: ValueShape = texts(ListItem::Any);
const COMMA_TEXTS: ValueShape = ValueShape::Texts {
    commas: true,
    item: ListItem::Any,
};

const fn texts(item: ListItem) -> ValueShape {
    ValueShape::Texts {
        commas: false,
        item,
    }
}

const BACKENDS: ValueShape = ValueShape::OneOf(&[
    "native",
    "docker",
    "singularity",
    "ssh",
    "modal",
    "daytona",
    "kubernetes",
    "local",
]);

#[cfg(test)]
mod tests {
    use hermetic_types::BackendKind;

    use super::*;

    #[test]
    fn every_default_is_a_value_of_its_own_key() {
        for key in &SCHEMA.keys {
            if let Err(mismatch) = key.shape.read_text(key.fallback) {
                panic!("{}: {}", key.path, mismatch.what);
            }
        }
    }

    #[test]
    fn no_place_and_no_variable_means_two_things() {
        let mut paths = BTreeSet::new();
        let mut variables = BTreeSet::new();
        for key in &SCHEMA.keys {
            for path in std::iter::once(&key.path).chain(&key.also) {
                assert!(paths.insert(path), "{path} is declared twice");
                assert!(!SCHEMA.is_unused(path), "{path} is used and unused");
            }
            if let Some(variable) = &key.variable {
                assert!(variables.insert(variable), "{variable} is declared twice");
            }
        }
    }

    #[test]
    fn a_section_is_one_before_and_after_all_are_gathered() {
        let (fresh, gathered) = (Schema::build(), Schema::build());
        let sections = gathered.sections();
        let keys = fresh.by_path.keys().map(String::as_str);
        for key in keys.chain(unused::KEYS.iter().copied()) {
            let ends = key.match_indices('.').map(|(at, _)| at);
            for end in ends.chain([0, 1, key.len() - 1, key.len()]) {
                let Some(path) = key.get(..end) else { continue };
                assert_eq!(
                    fresh.is_section(path),
                    sections.contains_key(path),
                    "{path}"
                );
                assert_eq!(gathered.is_section(path), fresh.is_section(path), "{path}");
            }
        }
        assert!(fresh.sections.get().is_none());
    }

    #[test]
    fn the_backends_are_those_that_exist() {
        let ValueShape::OneOf(names) = BACKENDS else {
            panic!("a choice");
        };
        assert_eq!(names, BackendKind::names());
    }
}
