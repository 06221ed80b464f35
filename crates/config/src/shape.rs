//! What a key may hold, and how text or a YAML node becomes a [`Value`].

use std::collections::BTreeMap;
use std::num::{IntErrorKind, ParseIntError};

use hermetic_types::Secret;

use crate::expand::{ExpandError, expand};
use crate::grammar;
use crate::nearest::nearest;
use crate::place::Place;
use crate::problem::Problem;
use crate::size;
use crate::tree::{Content, Entry, Node, Scalar, short};
use crate::value::{Record, Value};

#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Flag,
    Whole {
        least: i64,
        most: i64,
    },
    Number {
        least: f64,
        most: f64,
    },
    /// Bytes; a bare number counts `unit` of them.
    Size {
        unit: u64,
        least: u64,
    },
    Text,
    Secret,
    OneOf(&'static [&'static str]),
    /// A list of texts; in a file also one text with commas if `commas`.
    Texts {
        commas: bool,
        item: Item,
    },
    Pairs,
    /// A list of maps. Where `lone` names a field, one map or one text may stand for the list.
    Records {
        fields: &'static [Field],
        lone: Option<&'static str>,
    },
    /// A map from names to maps.
    Table {
        fields: &'static [Field],
    },
    Tree,
}

/// What each text of a list must be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    Any,
    Host,
    Mount,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// Why a text is no such value: what was wrong, and what to do.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub(crate) what: String,
    pub(crate) help: Vec<String>,
}

/// Reads nodes of one file, expanding variables on the way.
pub(crate) struct Reader<'a> {
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) unknown_fields: Vec<(String, Place)>,
}

impl Reader<'_> {
    /// `None` where nothing was written or a problem was noted.
    pub(crate) fn read(&mut self, key: &str, shape: &Shape, node: &Node) -> Option<Value> {
        match (shape, &node.content) {
            (_, Content::Null) => None,
            (Shape::Tree, _) => Some(Value::Tree(json_of(node))),
            (Shape::Texts { item, .. }, Content::List(items)) => self.texts(key, *item, items),
            (Shape::Pairs, Content::Map(entries)) => self.pairs(key, entries),
            (Shape::Records { fields, lone }, Content::List(items)) => {
                self.records(key, fields, *lone, items)
            }
            (
                Shape::Records {
                    fields,
                    lone: Some(_),
                },
                Content::Map(entries),
            ) => self
                .record(key, fields, node, entries)
                .map(|record| Value::Records(vec![record])),
            (
                Shape::Records {
                    lone: Some(field), ..
                },
                Content::Scalar(scalar),
            ) => {
                let text = self.expanded(key, scalar, &node.place)?;
                let record = Record::lone(field, Value::Text(text), &node.place);
                Some(Value::Records(vec![record]))
            }
            (Shape::Table { fields }, Content::Map(entries)) => self.table(key, fields, entries),
            (shape, Content::Scalar(scalar)) if shape.is_scalar() => {
                let text = self.expanded(key, scalar, &node.place)?;
                match shape.read_text(&text) {
                    Ok(value) => value,
                    Err(mismatch) => {
                        let expected = format!("expected {}", shape.name());
                        self.note_text(key, node, scalar, &text, &expected, mismatch);
                        None
                    }
                }
            }
            _ => {
                let mismatch = Mismatch {
                    what: format!("expected {}, found {}", shape.name(), node.kind()),
                    help: shape.example().into_iter().collect(),
                };
                self.note(key, &node.place, mismatch);
                None
            }
        }
    }

    fn texts(&mut self, key: &str, item: Item, nodes: &[Node]) -> Option<Value> {
        let mut texts = Vec::new();
        for node in nodes {
            let Content::Scalar(scalar) = &node.content else {
                self.problems.push(
                    Problem::error(format!("expected text in this list, found {}", node.kind()))
                        .at(&node.place)
                        .of_key(key),
                );
                continue;
            };
            let Some(text) = self.expanded(key, scalar, &node.place) else {
                continue;
            };
            match item.check(&text) {
                Ok(()) => texts.push(text),
                Err(mismatch) => {
                    self.note_text(key, node, scalar, &text, "this does not fit", mismatch);
                }
            }
        }
        Some(Value::Texts(texts))
    }

    fn pairs(&mut self, key: &str, entries: &[Entry]) -> Option<Value> {
        let mut pairs = BTreeMap::new();
        for entry in entries {
            match &entry.value.content {
                Content::Scalar(scalar) => {
                    let value = self.expanded(key, scalar, &entry.value.place)?;
                    pairs.insert(entry.name.clone(), Secret::new(value));
                }
                Content::Null => {
                    pairs.insert(entry.name.clone(), Secret::new(""));
                }
                _ => self.problems.push(
                    Problem::error(format!(
                        "expected text for `{}`, found {}",
                        short(&entry.name),
                        entry.value.kind()
                    ))
                    .at(&entry.value.place)
                    .of_key(key),
                ),
            }
        }
        Some(Value::Pairs(pairs))
    }

    fn records(
        &mut self,
        key: &str,
        fields: &'static [Field],
        lone: Option<&'static str>,
        items: &[Node],
    ) -> Option<Value> {
        let mut records = Vec::new();
        for item in items {
            match (&item.content, lone) {
                (Content::Map(entries), _) => {
                    records.extend(self.record(key, fields, item, entries));
                }
                (Content::Scalar(scalar), Some(field)) => {
                    let text = self.expanded(key, scalar, &item.place)?;
                    records.push(Record::lone(field, Value::Text(text), &item.place));
                }
                _ => self.problems.push(
                    Problem::error(format!(
                        "expected a map in this list, found {}",
                        item.kind()
                    ))
                    .at(&item.place)
                    .of_key(key)
                    .help(format!("its fields are {}", names(fields))),
                ),
            }
        }
        Some(Value::Records(records))
    }

    fn table(&mut self, key: &str, fields: &'static [Field], entries: &[Entry]) -> Option<Value> {
        let mut table = BTreeMap::new();
        for entry in entries {
            match &entry.value.content {
                Content::Map(inside) => {
                    let inner = format!("{key}.{}", entry.name);
                    if let Some(record) = self.record(&inner, fields, &entry.value, inside) {
                        table.insert(entry.name.clone(), record);
                    }
                }
                Content::Null => {}
                _ => self.problems.push(
                    Problem::error(format!("expected a map, found {}", entry.value.kind()))
                        .at(&entry.value.place)
                        .of_key(format!("{key}.{}", short(&entry.name)))
                        .help(format!("its fields are {}", names(fields))),
                ),
            }
        }
        Some(Value::Table(table))
    }

    fn record(
        &mut self,
        key: &str,
        fields: &'static [Field],
        node: &Node,
        entries: &[Entry],
    ) -> Option<Record> {
        let mut record = Record {
            place: Some(node.place.clone()),
            ..Record::default()
        };
        for entry in entries {
            let inner = format!("{key}.{}", entry.name);
            if let Some(field) = fields.iter().find(|field| field.name == entry.name) {
                if let Some(value) = self.read(&inner, &field.shape, &entry.value) {
                    record.fields.insert(field.name, value);
                } else if is_empty_text(&field.shape, &entry.value) {
                    record.fields.insert(field.name, Value::Text(String::new()));
                }
            } else if let Some(near) = nearest(&entry.name, fields.iter().map(|f| f.name)) {
                self.problems.push(
                    Problem::error(format!("unknown field `{}`", short(&entry.name)))
                        .at(&entry.name_place)
                        .of_key(inner)
                        .help(format!("did you mean `{near}`?")),
                );
            } else {
                self.unknown_fields.push((inner, entry.name_place.clone()));
            }
        }
        for field in fields.iter().filter(|field| field.required) {
            let there = |entry: &Entry| nearest(&entry.name, [field.name]).is_some();
            if !entries.iter().any(there) {
                self.problems.push(
                    Problem::error(format!("the field `{}` is missing", field.name))
                        .at(&node.place)
                        .of_key(key)
                        .help(format!("it is {}", field.about)),
                );
            }
        }
        Some(record)
    }

    fn expanded(&mut self, key: &str, scalar: &Scalar, place: &Place) -> Option<String> {
        match expand(&scalar.text, self.variable) {
            Ok(text) => Some(text),
            Err(error) => {
                let help = match &error {
                    ExpandError::Unset(name) => {
                        format!("set {name} in .env or the environment, or write ${{{name}:-text}}")
                    }
                    ExpandError::NotAName(_) | ExpandError::Unclosed => {
                        "variables are written ${NAME}; a literal `${` is `$${`".to_owned()
                    }
                };
                let problem = Problem::error(error.to_string()).at(place).of_key(key);
                self.problems.push(problem.help(help));
                None
            }
        }
    }

    /// What a variable holds may be a secret in the wrong place, so it is not quoted.
    fn note_text(
        &mut self,
        key: &str,
        node: &Node,
        scalar: &Scalar,
        text: &str,
        expected: &str,
        mut mismatch: Mismatch,
    ) {
        if text != scalar.text {
            let written = short(&scalar.text);
            mismatch.what = format!("{expected}, and `{written}` holds something else");
        }
        self.note(key, &node.place, mismatch);
    }

    fn note(&mut self, key: &str, place: &Place, mismatch: Mismatch) {
        self.problems
            .push(mismatch.into_problem().at(place).of_key(key));
    }
}

impl Item {
    fn check(self, text: &str) -> Result<(), Mismatch> {
        let (fits, kind, help) = match self {
            Self::Any => return Ok(()),
            Self::Host => (
                grammar::is_host(text),
                "host",
                "write a name, `*.name` or `name:port`, without https:// and path",
            ),
            Self::Mount => (
                grammar::mount(text).is_some(),
                "mount",
                "write `/host/path:/inside`, with `:rw` at the end to allow writing",
            ),
        };
        if fits {
            return Ok(());
        }
        Err(Mismatch {
            what: format!("`{}` is not a {kind}", short(text)),
            help: vec![help.to_owned()],
        })
    }
}

impl Mismatch {
    pub(crate) fn into_problem(self) -> Problem {
        self.help
            .into_iter()
            .fold(Problem::error(self.what), Problem::help)
    }
}

impl Shape {
    /// Reads what a variable, or a default, says. `None` for an empty text.
    pub(crate) fn read_text(&self, written: &str) -> Result<Option<Value>, Mismatch> {
        let text = written.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let value = match self {
            Self::Flag => Value::Flag(flag(text).ok_or_else(|| self.mismatch(text))?),
            Self::Whole { least, most } => {
                let number = whole(text).ok_or_else(|| self.mismatch(text))?;
                within(text, number, *least, *most)?;
                Value::Whole(number)
            }
            Self::Number { least, most } => {
                let number = number(text).ok_or_else(|| self.mismatch(text))?;
                within(text, number, *least, *most)?;
                Value::Number(number)
            }
            Self::Size { unit, least } => {
                let bytes = size::parse(text, *unit).ok_or_else(|| self.mismatch(text))?;
                if bytes < *least {
                    return Err(Mismatch {
                        what: format!("{} is too small", short(text)),
                        help: vec![format!("it must be {} or more", size::spell(*least))],
                    });
                }
                Value::Size(bytes)
            }
            // A space at an end may be meant, as in a cursor or a prefix.
            Self::Text => Value::Text(written.to_owned()),
            Self::Secret => Value::Secret(Secret::new(text)),
            Self::OneOf(choices) => Value::Text(choice(text, choices)?.to_owned()),
            Self::Texts { item, .. } => {
                let texts = listed(text)?;
                texts.iter().try_for_each(|text| item.check(text))?;
                Value::Texts(texts)
            }
            Self::Pairs => Value::Pairs(paired(text)?),
            Self::Tree => Value::Tree(text.into()),
            Self::Records { .. } | Self::Table { .. } => {
                return Err(Mismatch {
                    what: format!("expected {}, found text", self.name()),
                    help: self.example().into_iter().collect(),
                });
            }
        };
        Ok(Some(value))
    }

    /// As in "expected …".
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Flag => "true or false",
            Self::Whole { .. } => "a whole number",
            Self::Number { .. } => "a number",
            Self::Size { .. } => "a size",
            Self::Text | Self::Secret => "text",
            Self::OneOf(_) => "a word",
            Self::Texts { .. } => "a list",
            Self::Pairs | Self::Table { .. } => "a map",
            Self::Records { .. } => "a list of maps",
            Self::Tree => "anything",
        }
    }

    fn is_scalar(&self) -> bool {
        match self {
            Self::Texts { commas, .. } => *commas,
            Self::Pairs | Self::Records { .. } | Self::Table { .. } | Self::Tree => false,
            _ => true,
        }
    }

    fn example(&self) -> Option<String> {
        match self {
            Self::Texts { .. } => Some("write it as [one, two]".to_owned()),
            Self::Pairs => Some("write it as {NAME: value}".to_owned()),
            Self::OneOf(choices) => Some(format!("known: {}", choices.join(", "))),
            Self::Records { fields, .. } | Self::Table { fields } => {
                Some(format!("its fields are {}", names(fields)))
            }
            Self::Size { unit, .. } => Some(size_help(*unit).to_owned()),
            Self::Whole { least, most } => Some(between(least, most)),
            Self::Number { least, most } => Some(between(least, most)),
            Self::Flag | Self::Text | Self::Secret | Self::Tree => None,
        }
    }

    fn mismatch(&self, text: &str) -> Mismatch {
        Mismatch {
            what: format!("expected {}, found `{}`", self.name(), short(text)),
            help: self.example().into_iter().collect(),
        }
    }
}

/// `scheme: ""` says something that no `scheme` does not.
fn is_empty_text(shape: &Shape, node: &Node) -> bool {
    let empty = matches!(&node.content, Content::Scalar(scalar) if scalar.text.trim().is_empty());
    empty && matches!(shape, Shape::Text)
}

fn size_help(unit: u64) -> &'static str {
    if unit == 1 {
        "write bytes as a number, or a unit: 500KB, 512MB, 5GB"
    } else {
        "write megabytes as a number, or a unit: 5120, 512MB, 5GB"
    }
}

fn names(fields: &[Field]) -> String {
    let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    names.join(", ")
}

fn within<T>(text: &str, number: T, least: T, most: T) -> Result<(), Mismatch>
where
    T: Copy + PartialOrd + std::fmt::Display,
{
    let too = match number {
        _ if number < least => "small",
        _ if number > most => "large",
        _ => return Ok(()),
    };
    Err(Mismatch {
        what: format!("{} is too {too}", short(text)),
        help: vec![between(&least, &most)],
    })
}

fn between(least: &impl std::fmt::Display, most: &impl std::fmt::Display) -> String {
    format!("it must be between {least} and {most}")
}

fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "0" => Some(false),
        _ => None,
    }
}

fn whole(text: &str) -> Option<i64> {
    let digits = text.replace('_', "");
    if let Some(hex) = digits.strip_prefix("0x") {
        return i64::from_str_radix(hex, 16).ok();
    }
    // `180.0` is what some tools write for 180.
    let digits = digits.strip_suffix(".0").unwrap_or(&digits);
    digits
        .parse()
        .or_else(|error: ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => Ok(i64::MAX),
            IntErrorKind::NegOverflow => Ok(i64::MIN),
            _ => Err(error),
        })
        .ok()
}

/// Neither infinite nor "not a number": a limit that compares with nothing is none.
fn number(text: &str) -> Option<f64> {
    let digits = text.replace('_', "");
    let starts_well =
        digits.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    digits
        .parse()
        .ok()
        .filter(|number: &f64| starts_well && number.is_finite())
}

fn choice(text: &str, choices: &[&'static str]) -> Result<&'static str, Mismatch> {
    let lower = text.to_ascii_lowercase();
    // YAML's bare `off` is false for many tools that rewrite the file.
    let wanted = match (lower.as_str(), flag(text)) {
        (_, Some(false)) if choices.contains(&"off") => "off",
        (lower, _) => lower,
    };
    if let Some(choice) = choices.iter().find(|choice| **choice == wanted) {
        return Ok(choice);
    }
    let mut help = vec![format!("known: {}", choices.join(", "))];
    if let Some(near) = nearest(&lower, choices.iter().copied()) {
        help.push(format!("did you mean {near}?"));
    }
    Err(Mismatch {
        what: format!("unknown value `{}`", short(text)),
        help,
    })
}

/// JSON, as lists cross the environment, or words between commas.
fn listed(text: &str) -> Result<Vec<String>, Mismatch> {
    if text.starts_with('[') {
        let items: Vec<serde_json::Value> =
            serde_json::from_str(text).map_err(|error| not_json("list", &error))?;
        return Ok(items
            .into_iter()
            .map(|item| match item {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            })
            .collect());
    }
    Ok(text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect())
}

fn paired(text: &str) -> Result<BTreeMap<String, Secret>, Mismatch> {
    let pairs: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(text).map_err(|error| not_json("object", &error))?;
    Ok(pairs
        .into_iter()
        .map(|(name, value)| {
            let text = match value {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            };
            (name, Secret::new(text))
        })
        .collect())
}

/// Only where it broke: the text itself may hold credentials.
fn not_json(kind: &str, error: &serde_json::Error) -> Mismatch {
    Mismatch {
        what: format!("not a JSON {kind} (at character {})", error.column()),
        help: vec![format!("in a variable, write it as a JSON {kind}")],
    }
}

fn json_of(node: &Node) -> serde_json::Value {
    match &node.content {
        Content::Null => serde_json::Value::Null,
        Content::Scalar(Scalar { text, plain }) => match (plain, flag(text), text.parse::<i64>()) {
            (true, _, Ok(number)) => number.into(),
            (true, Some(flag), _) => flag.into(),
            _ => text.as_str().into(),
        },
        Content::List(items) => items.iter().map(json_of).collect(),
        Content::Map(entries) => entries
            .iter()
            .map(|entry| (entry.name.clone(), json_of(&entry.value)))
            .collect(),
    }
}
