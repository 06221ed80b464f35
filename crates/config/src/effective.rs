//! Who wins: every key's value and where it came from.

use std::collections::BTreeMap;

use crate::check::CheckedFile;
use crate::dotenv::DotenvLine;
use crate::inputs::ConfigInputs;
use crate::origin::SettingOrigin;
use crate::place::SourcePlace;
use crate::problem::ConfigProblem;
use crate::schema::{KeyPrecedence, SCHEMA, SchemaKey, why_without_effect};
use crate::shape::ValueShape;
use crate::value::SettingValue;

/// One key as it counts.
#[derive(Clone, Debug)]
pub struct EffectiveSetting {
    key: &'static SchemaKey,
    value: Option<SettingValue>,
    origin: SettingOrigin,
    /// Where a file says it.
    pub(crate) place: Option<SourcePlace>,
}

impl EffectiveSetting {
    /// Why it does nothing although somebody wrote it. What only repeats the default is let be.
    pub fn why_without_effect(&self) -> Option<&'static str> {
        // First: most settings are nobody's, and the list of reasons is long.
        if self.origin == SettingOrigin::Default {
            return None;
        }
        let why = why_without_effect(&self.key.path)?;
        let said = |value: Option<&SettingValue>| {
            value
                .filter(|value| !value.is_empty())
                .map(SettingValue::shown)
        };
        let default = fallback(self.key);
        let is_said = said(self.value.as_ref()) != said(default.as_ref());
        is_said.then_some(why)
    }

    /// Why it does nothing, whatever stands there and whoever wrote it.
    pub fn idle_because(&self) -> Option<&'static str> {
        why_without_effect(&self.key.path)
    }

    /// [`Self::why_without_effect`] as a warning, at its place.
    pub(crate) fn without_effect(&self) -> Option<ConfigProblem> {
        let why = self.why_without_effect()?;
        let name = self.name();
        let problem =
            ConfigProblem::warning(format!("{name} has no effect yet: {why}")).of_key(name);
        Some(match (&self.place, &self.origin) {
            (Some(place), _) => problem.at(place),
            (None, SettingOrigin::Managed { file, line } | SettingOrigin::File { file, line }) => {
                problem.in_line(file, *line)
            }
            (None, SettingOrigin::DotEnv { file, line, .. }) => problem.in_line(file, *line),
            (None, SettingOrigin::Variable { name }) => problem.in_variable(name),
            (None, SettingOrigin::Default) => problem,
        })
    }

    /// The dotted name, or the variable's where there is no key.
    pub fn name(&self) -> &str {
        &self.key.path
    }

    /// `None` where nothing is written and there is no default.
    pub fn value(&self) -> Option<&SettingValue> {
        self.value.as_ref()
    }

    pub fn origin(&self) -> &SettingOrigin {
        &self.origin
    }

    pub fn about(&self) -> &str {
        self.key.about
    }

    pub fn variable(&self) -> Option<&str> {
        self.key.variable.as_deref()
    }
}

/// The sources, strongest first where nothing else is said:
/// the administrator's file, the user's file, variables, the legacy file.
/// Keys that a variable overrules swap the middle two.
pub(crate) struct SettingSources<'a> {
    pub(crate) inputs: &'a ConfigInputs,
    pub(crate) managed: &'a CheckedFile,
    pub(crate) file: &'a CheckedFile,
    pub(crate) legacy: &'a CheckedFile,
    pub(crate) dotenv: &'a BTreeMap<String, DotenvLine>,
}

impl SettingSources<'_> {
    /// The text of a variable: `.env` before the environment, then top-level scalars of the file.
    pub(crate) fn variable(&self, name: &str) -> Option<(String, SettingOrigin)> {
        let named = || name.to_owned();
        if let Some(line) = self.dotenv.get(name).filter(|line| !line.value.is_empty()) {
            let origin = SettingOrigin::DotEnv {
                name: named(),
                file: self.inputs.home.dotenv_file(),
                line: line.number,
            };
            return Some((line.value.clone(), origin));
        }
        if let Some(value) = self
            .inputs
            .variables
            .get(name)
            .filter(|value| !value.is_empty())
        {
            return Some((value.clone(), SettingOrigin::Variable { name: named() }));
        }
        let (text, place) = self.file.exports.get(name)?;
        Some((text.clone(), of_file(place)))
    }

    pub(crate) fn settle(&self, problems: &mut Vec<ConfigProblem>) -> Vec<EffectiveSetting> {
        SCHEMA
            .keys
            .iter()
            .map(|key| self.settle_key(key, problems))
            .collect()
    }

    fn settle_key(
        &self,
        key: &'static SchemaKey,
        problems: &mut Vec<ConfigProblem>,
    ) -> EffectiveSetting {
        let candidate = self
            .by_managed(key)
            .or_else(|| match key.stronger {
                KeyPrecedence::File => self
                    .by_file(key)
                    .or_else(|| self.by_variable(key, problems)),
                KeyPrecedence::Variable => self
                    .by_variable(key, problems)
                    .or_else(|| self.by_file(key)),
            })
            .or_else(|| self.by_legacy(key));
        match candidate {
            Some(SettingCandidate {
                value,
                origin,
                place,
            }) => EffectiveSetting {
                key,
                value: Some(value),
                origin,
                place,
            },
            None => EffectiveSetting {
                key,
                value: fallback(key),
                origin: SettingOrigin::Default,
                place: None,
            },
        }
    }

    fn by_managed(&self, key: &SchemaKey) -> Option<SettingCandidate> {
        let (value, place) = found(self.managed, key)?;
        let origin = SettingOrigin::Managed {
            file: place.source.path().to_owned(),
            line: place.line,
        };
        Some(SettingCandidate::new(value, origin, place))
    }

    fn by_file(&self, key: &SchemaKey) -> Option<SettingCandidate> {
        found(self.file, key)
            .map(|(value, place)| SettingCandidate::new(value, of_file(place), place))
    }

    fn by_legacy(&self, key: &SchemaKey) -> Option<SettingCandidate> {
        found(self.legacy, key)
            .map(|(value, place)| SettingCandidate::new(value, of_file(place), place))
    }

    fn by_variable(
        &self,
        key: &SchemaKey,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<SettingCandidate> {
        let name = key.variable.as_deref()?;
        // Not taken for unset, or a bound that somebody wrote would silently not hold.
        if self
            .inputs
            .unreadable
            .iter()
            .any(|unreadable| unreadable == name)
        {
            problems.push(
                ConfigProblem::error("its value is not UTF-8 text")
                    .in_variable(name)
                    .of_key(&key.path),
            );
            return None;
        }
        let (text, origin) = self.variable(name)?;
        match key.shape.read_text(&text) {
            Ok(value) => value.map(|value| SettingCandidate {
                value,
                origin,
                place: None,
            }),
            Err(mismatch) => {
                let problem = mismatch.into_problem().of_key(&key.path);
                problems.push(match &origin {
                    SettingOrigin::DotEnv { name, file, line } => problem
                        .in_line(file, *line)
                        .help(format!("it is set by {name}")),
                    SettingOrigin::File { file, line } => problem.in_line(file, *line),
                    _ => problem.in_variable(name),
                });
                None
            }
        }
    }
}

/// What one source says of a key.
struct SettingCandidate {
    value: SettingValue,
    origin: SettingOrigin,
    place: Option<SourcePlace>,
}

impl SettingCandidate {
    fn new(value: &SettingValue, origin: SettingOrigin, place: &SourcePlace) -> Self {
        Self {
            value: value.clone(),
            origin,
            place: Some(place.clone()),
        }
    }
}

/// The strongest of the places where it may stand.
fn found<'a>(checked: &'a CheckedFile, key: &SchemaKey) -> Option<&'a (SettingValue, SourcePlace)> {
    std::iter::once(&key.path)
        .chain(&key.also)
        .find_map(|path| checked.found.get(path))
}

/// A key that one file sets in two places: one of them is not used, and somebody should know.
pub(crate) fn doubled(checked: &CheckedFile) -> Vec<ConfigProblem> {
    let mut problems = Vec::new();
    for key in SCHEMA.keys.iter().filter(|key| !key.also.is_empty()) {
        let mut places = std::iter::once(&key.path)
            .chain(&key.also)
            .filter_map(|path| checked.found.get(path).map(|(_, place)| (path, place)));
        let Some((winner, _)) = places.next() else {
            continue;
        };
        for (path, place) in places {
            problems.push(
                ConfigProblem::warning(format!("`{winner}` says the same and wins"))
                    .at(place)
                    .of_key(path)
                    .help("keep one of them"),
            );
        }
    }
    problems
}

fn of_file(place: &SourcePlace) -> SettingOrigin {
    SettingOrigin::File {
        file: place.source.path().to_owned(),
        line: place.line,
    }
}

fn fallback(key: &SchemaKey) -> Option<SettingValue> {
    if let (ValueShape::Texts { .. }, "") = (&key.shape, key.fallback) {
        return Some(SettingValue::Texts(Vec::new()));
    }
    key.shape
        .read_text(key.fallback)
        .expect("a test reads every default of the schema")
}
