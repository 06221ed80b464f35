//! Holds one file against the schema.

use std::collections::BTreeMap;

use crate::nearest::nearest;
use crate::place::SourcePlace;
use crate::problem::ConfigProblem;
use crate::reader::NodeReader;
use crate::schema::{SCHEMA, SchemaKey};
use crate::shape::ValueShape;
use crate::tree::{MapEntry, NodeContent, ScalarNode, YamlNode};
use crate::value::SettingValue;
use crate::wording::short;

/// Guessing at each takes time, and a file with more of them is not one of ours.
const MOST_STRANGERS: usize = 1000;

/// What one file says.
#[derive(Default)]
pub(crate) struct CheckedFile {
    /// By the path at which it stands, which may be another than its key's own.
    pub(crate) found: BTreeMap<String, (SettingValue, SourcePlace)>,
    /// Top-level scalars named like variables.
    pub(crate) exports: BTreeMap<String, (String, SourcePlace)>,
    pub(crate) unused: Vec<UnusedEntry>,
    pub(crate) problems: Vec<ConfigProblem>,
}

/// A key without meaning here, and what stands below it.
pub(crate) struct UnusedEntry {
    pub(crate) path: String,
    pub(crate) place: SourcePlace,
    /// It is empty or switched off.
    pub(crate) is_idle: bool,
    /// It says that it is enabled.
    pub(crate) is_switched_on: bool,
    /// The names directly below it.
    pub(crate) names: Vec<String>,
}

impl UnusedEntry {
    fn new(path: String, entry: &MapEntry) -> Self {
        Self {
            path,
            place: entry.name_place.clone(),
            is_idle: entry.value.is_idle(),
            is_switched_on: entry.value.is_switched_on(),
            names: entry.value.names(),
        }
    }
}

impl CheckedFile {
    pub(crate) fn holds_secrets(&self) -> bool {
        let exported = |name: &String| {
            let key = SCHEMA.for_variable(name);
            key.is_some_and(|key| matches!(key.shape, ValueShape::Secret))
        };
        self.found.values().any(|(value, _)| value.holds_secret())
            || self.exports.keys().any(exported)
    }
}

/// How a name that nobody knows is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownKeys {
    /// One that is near to a known one is an error: a misspelt rule would protect nobody.
    PointOutSlips,
    /// For files that nobody edits any more.
    LetThrough,
}

pub(crate) fn check(
    root: &YamlNode,
    strictness: UnknownKeys,
    variable: &dyn Fn(&str) -> Option<String>,
) -> CheckedFile {
    let mut walk = CheckWalk {
        strictness,
        reader: NodeReader {
            variable,
            problems: Vec::new(),
            unknown_fields: Vec::new(),
        },
        checked: CheckedFile::default(),
        strangers: 0,
    };
    match &root.content {
        NodeContent::Map(entries) => walk.section("", entries),
        _ => walk.reader.problems.push(
            ConfigProblem::error(format!("expected a map at the top, found {}", root.kind()))
                .at(&root.place)
                .help(
                    "a configuration is lines of `key: value`; `hermetic config init` writes one",
                ),
        ),
    }
    walk.finish()
}

struct CheckWalk<'a> {
    strictness: UnknownKeys,
    reader: NodeReader<'a>,
    checked: CheckedFile,
    strangers: usize,
}

impl CheckWalk<'_> {
    fn section(&mut self, section: &str, entries: &[MapEntry]) {
        for entry in entries {
            let path = if section.is_empty() {
                entry.name.clone()
            } else {
                format!("{section}.{}", entry.name)
            };
            if entry.name.contains('.') && SCHEMA.knows(&path) {
                self.dotted(&path, entry);
            } else if let Some(key) = SCHEMA.key(&path) {
                self.key(path, key, &entry.value);
            } else if SCHEMA.is_unused(&path) {
                self.checked.unused.push(UnusedEntry::new(path, entry));
            } else if SCHEMA.is_section(&path) {
                self.subsection(&path, entry);
            } else if let (true, Some(scalar)) = (section.is_empty(), exported(entry)) {
                let export = (scalar.text.clone(), entry.value.place.clone());
                self.checked.exports.insert(path, export);
            } else {
                self.unknown(section, path, entry);
            }
        }
    }

    /// `terminal.backend: x` in one line would count for nothing in the original system, and could
    /// contradict what stands inside the section.
    fn dotted(&mut self, path: &str, entry: &MapEntry) {
        let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
        self.reader.problems.push(
            ConfigProblem::error("a key with dots is not taken apart")
                .at(&entry.name_place)
                .of_key(path)
                .help(format!(
                    "write `{name}:` in its own line below `{section}:`"
                )),
        );
    }

    fn subsection(&mut self, path: &str, entry: &MapEntry) {
        match &entry.value.content {
            NodeContent::Map(entries) => self.section(path, entries),
            NodeContent::Null => {}
            // `model: name` is short for `model: {default: name}`.
            NodeContent::Scalar(_) if path == "model" => {
                if let Some(value) = self.reader.read(path, &ValueShape::Text, &entry.value) {
                    let found = (value, entry.value.place.clone());
                    self.checked.found.insert("model.default".to_owned(), found);
                }
            }
            // `streaming: true` is short for `streaming: {enabled: true}`.
            NodeContent::Scalar(_) if path == "streaming" => {
                if let Some(value) = self.reader.read(path, &ValueShape::Flag, &entry.value) {
                    let found = (value, entry.value.place.clone());
                    self.checked
                        .found
                        .insert("streaming.enabled".to_owned(), found);
                }
            }
            NodeContent::Scalar(_) | NodeContent::List(_) => {
                let known: Vec<&str> = SCHEMA.used_in(path).into_iter().take(8).collect();
                self.reader.problems.push(
                    ConfigProblem::error(format!("expected a map, found {}", entry.value.kind()))
                        .at(&entry.value.place)
                        .of_key(path)
                        .help(format!("keys that belong here: {}, …", known.join(", "))),
                );
            }
        }
    }

    fn key(&mut self, path: String, key: &SchemaKey, node: &YamlNode) {
        if let Some(value) = self.reader.read(&path, &key.shape, node) {
            self.checked.found.insert(path, (value, node.place.clone()));
        }
    }

    fn unknown(&mut self, section: &str, path: String, entry: &MapEntry) {
        self.strangers += 1;
        if self.strangers > MOST_STRANGERS {
            if self.strangers == MOST_STRANGERS + 1 {
                self.reader.problems.push(
                    ConfigProblem::error(format!(
                        "more than {MOST_STRANGERS} keys that nobody knows"
                    ))
                    .at(&entry.name_place)
                    .help("is this the right file?"),
                );
            }
            return;
        }
        if self.strictness == UnknownKeys::PointOutSlips {
            let slip_of = slip_of(section, &entry.name);
            let help = match (slip_of, misplaced(section, &entry.name)) {
                (Some(near), _) => Some(format!("did you mean `{near}`?")),
                (None, Some(home)) => Some(format!("it belongs at `{home}`")),
                (None, None) => None,
            };
            if let Some(help) = help {
                self.reader.problems.push(
                    ConfigProblem::error(format!("unknown key `{}`", short(&entry.name)))
                        .at(&entry.name_place)
                        .of_key(path)
                        .help(help),
                );
                return;
            }
        }
        self.checked.unused.push(UnusedEntry::new(path, entry));
    }

    fn finish(self) -> CheckedFile {
        let mut checked = self.checked;
        checked.problems = self.reader.problems;
        let fields = self.reader.unknown_fields.into_iter();
        checked
            .unused
            .extend(fields.map(|(path, place)| UnusedEntry {
                path,
                place,
                is_idle: false,
                is_switched_on: false,
                names: Vec::new(),
            }));
        checked
    }
}

/// The key that a name is a slip of. One of a key without meaning here has none either.
fn slip_of(section: &str, name: &str) -> Option<&'static str> {
    if section.is_empty() && looks_like_variable(name) {
        return nearest(name, SCHEMA.variables());
    }
    nearest(name, SCHEMA.children(section)).filter(|near| {
        let path = [section, near].join(".");
        !SCHEMA.is_unused(path.trim_start_matches('.'))
    })
}

/// Only where our own sections meet: a stranger's section may use any name.
fn misplaced(section: &str, name: &str) -> Option<&'static str> {
    matches!(
        section,
        "" | "terminal" | "gateway" | "approvals" | "gateway.egress"
    )
    .then(|| SCHEMA.home_of(name))
    .flatten()
}

fn exported(entry: &MapEntry) -> Option<&ScalarNode> {
    match &entry.value.content {
        NodeContent::Scalar(scalar) if SCHEMA.for_variable(&entry.name).is_some() => Some(scalar),
        _ => None,
    }
}

fn looks_like_variable(name: &str) -> bool {
    name.contains('_')
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}
