//! What a key may hold, and how text becomes a [`SettingValue`].

use hermetic_types::Secret;

use crate::grammar;
use crate::problem::ConfigProblem;
use crate::scalar::{between, choice, flag, listed, number, paired, whole, within};
use crate::size;
use crate::value::SettingValue;
use crate::wording::short;

#[derive(Clone, Debug)]
pub(crate) enum ValueShape {
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
        item: ListItem,
    },
    Pairs,
    /// A list of maps. Where `lone` names a field, one map or one text may stand for the list.
    Records {
        fields: &'static [RecordField],
        lone: Option<&'static str>,
    },
    /// A map from names to maps.
    Table {
        fields: &'static [RecordField],
        lone_values: LoneValues,
    },
    Tree,
}

/// What a table makes of a name with a single value instead of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoneValues {
    Refused,
    /// Hermes keeps settings of the whole section among its entries.
    Unused,
}

/// What each text of a list must be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ListItem {
    Any,
    Host,
    Mount,
    VariableName,
}

#[derive(Debug)]
pub(crate) struct RecordField {
    pub(crate) name: &'static str,
    pub(crate) shape: ValueShape,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// Why a text is no such value: what was wrong, and what to do.
#[derive(Debug)]
pub(crate) struct ValueMismatch {
    pub(crate) what: String,
    pub(crate) help: Vec<String>,
}

impl ListItem {
    pub(crate) fn check(self, text: &str) -> Result<(), ValueMismatch> {
        let (fits, kind, help) = match self {
            Self::Any => return Ok(()),
            Self::Host => (
                grammar::is_egress_rule(text),
                "host",
                "write a name, `*.name` or `name:port`, without https:// and path",
            ),
            Self::Mount => (
                grammar::mount(text).is_some(),
                "mount",
                "write `/host/path:/inside`, with `:rw` at the end to allow writing",
            ),
            Self::VariableName => (
                grammar::is_variable_name(text),
                "variable name",
                "write the name alone: letters, digits and `_`, no value",
            ),
        };
        if fits {
            return Ok(());
        }
        Err(ValueMismatch {
            what: format!("`{}` is not a {kind}", short(text)),
            help: vec![help.to_owned()],
        })
    }
}

impl ValueMismatch {
    pub(crate) fn into_problem(self) -> ConfigProblem {
        self.help
            .into_iter()
            .fold(ConfigProblem::error(self.what), ConfigProblem::help)
    }
}

impl ValueShape {
    /// Reads what a variable, or a default, says. `None` for an empty text.
    pub(crate) fn read_text(&self, written: &str) -> Result<Option<SettingValue>, ValueMismatch> {
        let text = written.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let value = match self {
            Self::Flag => SettingValue::Flag(flag(text).ok_or_else(|| self.mismatch(text))?),
            Self::Whole { least, most } => {
                let number = whole(text).ok_or_else(|| self.mismatch(text))?;
                within(text, number, *least, *most)?;
                SettingValue::Whole(number)
            }
            Self::Number { least, most } => {
                let number = number(text).ok_or_else(|| self.mismatch(text))?;
                within(text, number, *least, *most)?;
                SettingValue::Number(number)
            }
            Self::Size { unit, least } => {
                let bytes = size::parse(text, *unit).ok_or_else(|| self.mismatch(text))?;
                if bytes < *least {
                    return Err(ValueMismatch {
                        what: format!("{} is too small", short(text)),
                        help: vec![format!("it must be {} or more", size::spell(*least))],
                    });
                }
                SettingValue::Size(bytes)
            }
            // A space at an end may be meant, as in a cursor or a prefix.
            Self::Text => SettingValue::Text(written.to_owned()),
            Self::Secret => SettingValue::Secret(Secret::new(text)),
            Self::OneOf(choices) => SettingValue::Text(choice(text, choices)?.to_owned()),
            Self::Texts { item, .. } => {
                let texts = listed(text)?;
                texts.iter().try_for_each(|text| item.check(text))?;
                SettingValue::Texts(texts)
            }
            Self::Pairs => SettingValue::Pairs(paired(text)?),
            Self::Tree => SettingValue::Tree(text.into()),
            Self::Records { .. } | Self::Table { .. } => {
                return Err(ValueMismatch {
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

    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Self::Texts { commas, .. } => *commas,
            Self::Pairs | Self::Records { .. } | Self::Table { .. } | Self::Tree => false,
            _ => true,
        }
    }

    pub(crate) fn example(&self) -> Option<String> {
        match self {
            Self::Texts { .. } => Some("write it as [one, two]".to_owned()),
            Self::Pairs => Some("write it as {NAME: value}".to_owned()),
            Self::OneOf(choices) => Some(format!("known: {}", choices.join(", "))),
            Self::Records { fields, .. } | Self::Table { fields, .. } => {
                Some(format!("its fields are {}", names(fields)))
            }
            Self::Size { unit, .. } => Some(size_help(*unit).to_owned()),
            Self::Whole { least, most } => Some(between(least, most)),
            Self::Number { least, most } => Some(between(least, most)),
            Self::Flag | Self::Text | Self::Secret | Self::Tree => None,
        }
    }

    fn mismatch(&self, text: &str) -> ValueMismatch {
        ValueMismatch {
            what: format!("expected {}, found `{}`", self.name(), short(text)),
            help: self.example().into_iter().collect(),
        }
    }
}

fn size_help(unit: u64) -> &'static str {
    if unit == 1 {
        "write bytes as a number, or a unit: 500KB, 512MB, 5GB"
    } else {
        "write megabytes as a number, or a unit: 5120, 512MB, 5GB"
    }
}

pub(crate) fn names(fields: &[RecordField]) -> String {
    let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    names.join(", ")
}
