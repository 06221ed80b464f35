//! How a YAML node becomes a [`SettingValue`] of a [`ValueShape`].

use std::collections::BTreeMap;

use hermetic_types::Secret;

use crate::expand::{ExpandError, expand};
use crate::nearest::nearest;
use crate::place::SourcePlace;
use crate::problem::ConfigProblem;
use crate::scalar;
use crate::shape::{ListItem, LoneValues, RecordField, ValueMismatch, ValueShape, names};
use crate::tree::{MapEntry, NodeContent, ScalarNode, YamlNode};
use crate::value::{RecordValue, SettingValue};
use crate::wording::short;

/// Reads nodes of one file, expanding variables on the way.
pub(crate) struct NodeReader<'a> {
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) problems: Vec<ConfigProblem>,
    pub(crate) unknown_fields: Vec<(String, SourcePlace)>,
}

impl NodeReader<'_> {
    /// `None` where nothing was written or a problem was noted.
    pub(crate) fn read(
        &mut self,
        key: &str,
        shape: &ValueShape,
        node: &YamlNode,
    ) -> Option<SettingValue> {
        match (shape, &node.content) {
            // Before any shape: a key with nothing behind it is as if nobody had written it.
            (_, NodeContent::Null) => None,
            (ValueShape::Tree, _) => Some(SettingValue::Tree(json_of(node))),
            (ValueShape::Texts { item, .. }, NodeContent::List(items)) => {
                self.texts(key, *item, items)
            }
            (ValueShape::Pairs, NodeContent::Map(entries)) => self.pairs(key, entries),
            (ValueShape::Records { fields, lone }, NodeContent::List(items)) => {
                self.records(key, fields, *lone, items)
            }
            (
                ValueShape::Records {
                    fields,
                    lone: Some(_),
                },
                NodeContent::Map(entries),
            ) => self
                .record(key, fields, node, entries)
                .map(|record| SettingValue::Records(vec![record])),
            (
                ValueShape::Records {
                    lone: Some(field), ..
                },
                NodeContent::Scalar(scalar),
            ) => {
                let text = self.expanded(key, scalar, &node.place)?;
                let record = RecordValue::lone(field, SettingValue::Text(text), &node.place);
                Some(SettingValue::Records(vec![record]))
            }
            (
                ValueShape::Table {
                    fields,
                    lone_values,
                },
                NodeContent::Map(entries),
            ) => self.table(key, fields, *lone_values, entries),
            (shape, NodeContent::Scalar(scalar)) if shape.is_scalar() => {
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
                let mismatch = ValueMismatch {
                    what: format!("expected {}, found {}", shape.name(), node.kind()),
                    help: shape.example().into_iter().collect(),
                };
                self.note(key, &node.place, mismatch);
                None
            }
        }
    }

    fn texts(&mut self, key: &str, item: ListItem, nodes: &[YamlNode]) -> Option<SettingValue> {
        let mut texts = Vec::new();
        for node in nodes {
            let NodeContent::Scalar(scalar) = &node.content else {
                self.problems.push(
                    ConfigProblem::error(format!(
                        "expected text in this list, found {}",
                        node.kind()
                    ))
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
        Some(SettingValue::Texts(texts))
    }

    fn pairs(&mut self, key: &str, entries: &[MapEntry]) -> Option<SettingValue> {
        let mut pairs = BTreeMap::new();
        for entry in entries {
            match &entry.value.content {
                NodeContent::Scalar(scalar) => {
                    let value = self.expanded(key, scalar, &entry.value.place)?;
                    pairs.insert(entry.name.clone(), Secret::new(value));
                }
                NodeContent::Null => {
                    pairs.insert(entry.name.clone(), Secret::new(""));
                }
                _ => self.problems.push(
                    ConfigProblem::error(format!(
                        "expected text for `{}`, found {}",
                        short(&entry.name),
                        entry.value.kind()
                    ))
                    .at(&entry.value.place)
                    .of_key(key),
                ),
            }
        }
        Some(SettingValue::Pairs(pairs))
    }

    fn records(
        &mut self,
        key: &str,
        fields: &'static [RecordField],
        lone: Option<&'static str>,
        items: &[YamlNode],
    ) -> Option<SettingValue> {
        let mut records = Vec::new();
        for item in items {
            match (&item.content, lone) {
                (NodeContent::Map(entries), _) => {
                    records.extend(self.record(key, fields, item, entries));
                }
                (NodeContent::Scalar(scalar), Some(field)) => {
                    let text = self.expanded(key, scalar, &item.place)?;
                    records.push(RecordValue::lone(
                        field,
                        SettingValue::Text(text),
                        &item.place,
                    ));
                }
                _ => self.problems.push(
                    ConfigProblem::error(format!(
                        "expected a map in this list, found {}",
                        item.kind()
                    ))
                    .at(&item.place)
                    .of_key(key)
                    .help(format!("its fields are {}", names(fields))),
                ),
            }
        }
        Some(SettingValue::Records(records))
    }

    fn table(
        &mut self,
        key: &str,
        fields: &'static [RecordField],
        lone_values: LoneValues,
        entries: &[MapEntry],
    ) -> Option<SettingValue> {
        let mut table = BTreeMap::new();
        for entry in entries {
            match &entry.value.content {
                NodeContent::Map(inside) => {
                    let inner = format!("{key}.{}", entry.name);
                    if let Some(record) = self.record(&inner, fields, &entry.value, inside) {
                        table.insert(entry.name.clone(), record);
                    }
                }
                NodeContent::Null => {}
                NodeContent::Scalar(_) if lone_values == LoneValues::Unused => {
                    let inner = format!("{key}.{}", entry.name);
                    self.unknown_fields.push((inner, entry.name_place.clone()));
                }
                _ => self.problems.push(
                    ConfigProblem::error(format!("expected a map, found {}", entry.value.kind()))
                        .at(&entry.value.place)
                        .of_key(format!("{key}.{}", short(&entry.name)))
                        .help(format!("its fields are {}", names(fields))),
                ),
            }
        }
        Some(SettingValue::Table(table))
    }

    fn record(
        &mut self,
        key: &str,
        fields: &'static [RecordField],
        node: &YamlNode,
        entries: &[MapEntry],
    ) -> Option<RecordValue> {
        let mut record = RecordValue {
            place: Some(node.place.clone()),
            ..RecordValue::default()
        };
        for entry in entries {
            let inner = format!("{key}.{}", entry.name);
            if let Some(field) = fields.iter().find(|field| field.name == entry.name) {
                if let Some(value) = self.read(&inner, &field.shape, &entry.value) {
                    record.fields.insert(field.name, value);
                } else if is_empty_text(&field.shape, &entry.value) {
                    record
                        .fields
                        .insert(field.name, SettingValue::Text(String::new()));
                }
            } else if let Some(near) = nearest(&entry.name, fields.iter().map(|f| f.name)) {
                self.problems.push(
                    ConfigProblem::error(format!("unknown field `{}`", short(&entry.name)))
                        .at(&entry.name_place)
                        .of_key(inner)
                        .help(format!("did you mean `{near}`?")),
                );
            } else {
                self.unknown_fields.push((inner, entry.name_place.clone()));
            }
        }
        for field in fields.iter().filter(|field| field.required) {
            // A slip of its name was told as a slip already, and is not missing as well.
            let there = |entry: &MapEntry| nearest(&entry.name, [field.name]).is_some();
            if !entries.iter().any(there) {
                self.problems.push(
                    ConfigProblem::error(format!("the field `{}` is missing", field.name))
                        .at(&node.place)
                        .of_key(key)
                        .help(format!("it is {}", field.about)),
                );
            }
        }
        Some(record)
    }

    fn expanded(&mut self, key: &str, scalar: &ScalarNode, place: &SourcePlace) -> Option<String> {
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
                let problem = ConfigProblem::error(error.to_string())
                    .at(place)
                    .of_key(key);
                self.problems.push(problem.help(help));
                None
            }
        }
    }

    /// What a variable holds may be a secret in the wrong place, so it is not quoted.
    fn note_text(
        &mut self,
        key: &str,
        node: &YamlNode,
        scalar: &ScalarNode,
        text: &str,
        expected: &str,
        mut mismatch: ValueMismatch,
    ) {
        if text != scalar.text {
            let written = short(&scalar.text);
            mismatch.what = format!("{expected}, and `{written}` holds something else");
        }
        self.note(key, &node.place, mismatch);
    }

    fn note(&mut self, key: &str, place: &SourcePlace, mismatch: ValueMismatch) {
        self.problems
            .push(mismatch.into_problem().at(place).of_key(key));
    }
}
/// `scheme: ""` says something that no `scheme` does not.
fn is_empty_text(shape: &ValueShape, node: &YamlNode) -> bool {
    let empty =
        matches!(&node.content, NodeContent::Scalar(scalar) if scalar.text.trim().is_empty());
    empty && matches!(shape, ValueShape::Text)
}
fn json_of(node: &YamlNode) -> serde_json::Value {
    match &node.content {
        NodeContent::Null => serde_json::Value::Null,
        NodeContent::Scalar(ScalarNode { text, plain }) => {
            // The number first: `1` and `0` could be both.
            match (plain, scalar::flag(text), text.parse::<i64>()) {
                (true, _, Ok(number)) => number.into(),
                (true, Some(flag), _) => flag.into(),
                _ => text.as_str().into(),
            }
        }
        NodeContent::List(items) => items.iter().map(json_of).collect(),
        NodeContent::Map(entries) => entries
            .iter()
            .map(|entry| (entry.name.clone(), json_of(&entry.value)))
            .collect(),
    }
}
