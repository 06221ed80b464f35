//! How a YAML node becomes a [`Value`] of a [`Shape`].

use std::collections::BTreeMap;

use hermetic_types::Secret;

use crate::expand::{ExpandError, expand};
use crate::nearest::nearest;
use crate::place::Place;
use crate::problem::Problem;
use crate::scalar;
use crate::shape::{Field, Item, LoneValues, Mismatch, Shape, names};
use crate::tree::{Content, Entry, Node, Scalar};
use crate::value::{Record, Value};
use crate::wording::short;

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
            (
                Shape::Table {
                    fields,
                    lone_values,
                },
                Content::Map(entries),
            ) => self.table(key, fields, *lone_values, entries),
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

    fn table(
        &mut self,
        key: &str,
        fields: &'static [Field],
        lone_values: LoneValues,
        entries: &[Entry],
    ) -> Option<Value> {
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
                Content::Scalar(_) if lone_values == LoneValues::Unused => {
                    let inner = format!("{key}.{}", entry.name);
                    self.unknown_fields.push((inner, entry.name_place.clone()));
                }
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
/// `scheme: ""` says something that no `scheme` does not.
fn is_empty_text(shape: &Shape, node: &Node) -> bool {
    let empty = matches!(&node.content, Content::Scalar(scalar) if scalar.text.trim().is_empty());
    empty && matches!(shape, Shape::Text)
}
fn json_of(node: &Node) -> serde_json::Value {
    match &node.content {
        Content::Null => serde_json::Value::Null,
        Content::Scalar(Scalar { text, plain }) => {
            match (plain, scalar::flag(text), text.parse::<i64>()) {
                (true, _, Ok(number)) => number.into(),
                (true, Some(flag), _) => flag.into(),
                _ => text.as_str().into(),
            }
        }
        Content::List(items) => items.iter().map(json_of).collect(),
        Content::Map(entries) => entries
            .iter()
            .map(|entry| (entry.name.clone(), json_of(&entry.value)))
            .collect(),
    }
}
