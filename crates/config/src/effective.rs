//! Who wins: every key's value and where it came from.

use std::collections::BTreeMap;

use crate::check::Checked;
use crate::dotenv::Line;
use crate::inputs::Inputs;
use crate::origin::Origin;
use crate::place::Place;
use crate::problem::Problem;
use crate::schema::{Key, SCHEMA, Stronger, why_without_effect};
use crate::shape::Shape;
use crate::value::Value;

/// One key as it counts.
#[derive(Clone, Debug)]
pub struct Setting {
    key: &'static Key,
    value: Option<Value>,
    origin: Origin,
    /// Where a file says it.
    pub(crate) place: Option<Place>,
}

impl Setting {
    /// That somebody wrote it, and it does nothing. What only repeats the default is let be.
    pub(crate) fn without_effect(&self) -> Option<Problem> {
        let why = why_without_effect(&self.key.path)?;
        let said =
            |value: Option<&Value>| value.filter(|value| !value.is_empty()).map(Value::shown);
        let default = fallback(self.key);
        if self.origin == Origin::Default || said(self.value.as_ref()) == said(default.as_ref()) {
            return None;
        }
        let name = self.name();
        let problem = Problem::warning(format!("{name} has no effect yet: {why}")).of_key(name);
        Some(match (&self.place, &self.origin) {
            (Some(place), _) => problem.at(place),
            (None, Origin::Managed { file, line } | Origin::File { file, line }) => {
                problem.in_line(file, *line)
            }
            (None, Origin::DotEnv { file, line, .. }) => problem.in_line(file, *line),
            (None, Origin::Variable { name }) => problem.in_variable(name),
            (None, Origin::Default) => problem,
        })
    }

    /// The dotted name, or the variable's where there is no key.
    pub fn name(&self) -> &str {
        &self.key.path
    }

    /// `None` where nothing is written and there is no default.
    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    pub fn origin(&self) -> &Origin {
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
pub(crate) struct Sources<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) managed: &'a Checked,
    pub(crate) file: &'a Checked,
    pub(crate) legacy: &'a Checked,
    pub(crate) dotenv: &'a BTreeMap<String, Line>,
}

impl Sources<'_> {
    /// The text of a variable: `.env` before the environment, then top-level scalars of the file.
    pub(crate) fn variable(&self, name: &str) -> Option<(String, Origin)> {
        let named = || name.to_owned();
        if let Some(line) = self.dotenv.get(name).filter(|line| !line.value.is_empty()) {
            let origin = Origin::DotEnv {
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
            return Some((value.clone(), Origin::Variable { name: named() }));
        }
        let (text, place) = self.file.exports.get(name)?;
        Some((text.clone(), of_file(place)))
    }

    pub(crate) fn settle(&self, problems: &mut Vec<Problem>) -> Vec<Setting> {
        SCHEMA
            .keys
            .iter()
            .map(|key| self.settle_key(key, problems))
            .collect()
    }

    fn settle_key(&self, key: &'static Key, problems: &mut Vec<Problem>) -> Setting {
        let candidate = self
            .by_managed(key)
            .or_else(|| match key.stronger {
                Stronger::File => self
                    .by_file(key)
                    .or_else(|| self.by_variable(key, problems)),
                Stronger::Variable => self
                    .by_variable(key, problems)
                    .or_else(|| self.by_file(key)),
            })
            .or_else(|| self.by_legacy(key));
        match candidate {
            Some(Candidate {
                value,
                origin,
                place,
            }) => Setting {
                key,
                value: Some(value),
                origin,
                place,
            },
            None => Setting {
                key,
                value: fallback(key),
                origin: Origin::Default,
                place: None,
            },
        }
    }

    fn by_managed(&self, key: &Key) -> Option<Candidate> {
        let (value, place) = found(self.managed, key)?;
        let origin = Origin::Managed {
            file: place.source.path().to_owned(),
            line: place.line,
        };
        Some(Candidate::new(value, origin, place))
    }

    fn by_file(&self, key: &Key) -> Option<Candidate> {
        found(self.file, key).map(|(value, place)| Candidate::new(value, of_file(place), place))
    }

    fn by_legacy(&self, key: &Key) -> Option<Candidate> {
        found(self.legacy, key).map(|(value, place)| Candidate::new(value, of_file(place), place))
    }

    fn by_variable(&self, key: &Key, problems: &mut Vec<Problem>) -> Option<Candidate> {
        let name = key.variable.as_deref()?;
        if self
            .inputs
            .unreadable
            .iter()
            .any(|unreadable| unreadable == name)
        {
            problems.push(
                Problem::error("its value is not UTF-8 text")
                    .in_variable(name)
                    .of_key(&key.path),
            );
            return None;
        }
        let (text, origin) = self.variable(name)?;
        match key.shape.read_text(&text) {
            Ok(value) => value.map(|value| Candidate {
                value,
                origin,
                place: None,
            }),
            Err(mismatch) => {
                let problem = mismatch.into_problem().of_key(&key.path);
                problems.push(match &origin {
                    Origin::DotEnv { name, file, line } => problem
                        .in_line(file, *line)
                        .help(format!("it is set by {name}")),
                    Origin::File { file, line } => problem.in_line(file, *line),
                    _ => problem.in_variable(name),
                });
                None
            }
        }
    }
}

/// What one source says of a key.
struct Candidate {
    value: Value,
    origin: Origin,
    place: Option<Place>,
}

impl Candidate {
    fn new(value: &Value, origin: Origin, place: &Place) -> Self {
        Self {
            value: value.clone(),
            origin,
            place: Some(place.clone()),
        }
    }
}

/// The strongest of the places where it may stand.
fn found<'a>(checked: &'a Checked, key: &Key) -> Option<&'a (Value, Place)> {
    std::iter::once(&key.path)
        .chain(&key.also)
        .find_map(|path| checked.found.get(path))
}

/// A key that one file sets in two places: one of them is not used, and somebody should know.
pub(crate) fn doubled(checked: &Checked) -> Vec<Problem> {
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
                Problem::warning(format!("`{winner}` says the same and wins"))
                    .at(place)
                    .of_key(path)
                    .help("keep one of them"),
            );
        }
    }
    problems
}

fn of_file(place: &Place) -> Origin {
    Origin::File {
        file: place.source.path().to_owned(),
        line: place.line,
    }
}

fn fallback(key: &Key) -> Option<Value> {
    if let (Shape::Texts { .. }, "") = (&key.shape, key.fallback) {
        return Some(Value::Texts(Vec::new()));
    }
    key.shape
        .read_text(key.fallback)
        .expect("a test reads every default of the schema")
}
