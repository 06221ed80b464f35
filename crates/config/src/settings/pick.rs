//! Takes settled values out by name.
//!
//! A name that the schema does not declare, or declares with another shape, is a mistake in this
//! crate that the first load of any test shows.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use hermetic_types::Secret;

use crate::effective::EffectiveSetting;
use crate::origin::SettingOrigin;
use crate::problem::ConfigProblem;
use crate::value::{RecordValue, SettingValue};

const DECLARED: &str = "the schema declares it with this shape";
const DEFAULTED: &str = "the schema gives it a default";

pub(crate) struct SettingPicker<'a> {
    settings: HashMap<&'a str, &'a EffectiveSetting>,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> SettingPicker<'a> {
    pub(crate) fn new(
        settings: &'a [EffectiveSetting],
        variable: &'a dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Self {
            settings: settings
                .iter()
                .map(|setting| (setting.name(), setting))
                .collect(),
            variable,
        }
    }

    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    pub(crate) fn flag(&self, path: &str) -> bool {
        self.maybe_flag(path).expect(DEFAULTED)
    }

    pub(crate) fn maybe_flag(&self, path: &str) -> Option<bool> {
        self.value(path).map(|value| match value {
            SettingValue::Flag(flag) => *flag,
            _ => unreachable!("{path}: {DECLARED}"),
        })
    }

    /// Whole numbers in the schema are bounded by what their field can hold.
    pub(crate) fn count<T: TryFrom<i64>>(&self, path: &str) -> T {
        self.maybe_count(path).expect(DEFAULTED)
    }

    pub(crate) fn maybe_count<T: TryFrom<i64>>(&self, path: &str) -> Option<T> {
        self.value(path).map(|value| match value {
            SettingValue::Whole(number) => {
                T::try_from(*number).ok().expect("bounded by the schema")
            }
            _ => unreachable!("{path}: {DECLARED}"),
        })
    }

    pub(crate) fn number(&self, path: &str) -> f64 {
        self.maybe_number(path).expect(DEFAULTED)
    }

    pub(crate) fn maybe_number(&self, path: &str) -> Option<f64> {
        self.value(path).map(|value| match value {
            SettingValue::Number(number) => *number,
            _ => unreachable!("{path}: {DECLARED}"),
        })
    }

    pub(crate) fn seconds(&self, path: &str) -> Duration {
        match self.value(path).expect(DEFAULTED) {
            SettingValue::Whole(seconds) => Duration::from_secs(seconds.unsigned_abs()),
            SettingValue::Number(seconds) => Duration::from_secs_f64(seconds.max(0.0)),
            _ => unreachable!("{path}: {DECLARED}"),
        }
    }

    /// Where 0 or less means "never".
    pub(crate) fn seconds_or_never(&self, path: &str) -> Option<Duration> {
        Some(self.seconds(path)).filter(|time| !time.is_zero())
    }

    pub(crate) fn bytes(&self, path: &str) -> u64 {
        self.maybe_bytes(path).expect(DEFAULTED)
    }

    pub(crate) fn maybe_bytes(&self, path: &str) -> Option<u64> {
        self.value(path).map(|value| match value {
            SettingValue::Size(bytes) => *bytes,
            _ => unreachable!("{path}: {DECLARED}"),
        })
    }

    pub(crate) fn text(&self, path: &str) -> String {
        self.maybe_text(path).expect(DEFAULTED)
    }

    pub(crate) fn maybe_text(&self, path: &str) -> Option<String> {
        self.value(path).map(|value| match value {
            SettingValue::Text(text) => text.clone(),
            _ => unreachable!("{path}: {DECLARED}"),
        })
    }

    /// A path in which `~/` is the user's home.
    pub(crate) fn maybe_path(&self, path: &str) -> Option<PathBuf> {
        self.maybe_text(path).map(|text| self.path_of(&text))
    }

    pub(crate) fn path_of(&self, text: &str) -> PathBuf {
        match (text.strip_prefix("~/"), self.variable("HOME")) {
            (Some(below), Some(home)) => PathBuf::from(home).join(below),
            _ => text.into(),
        }
    }

    /// One of the words that the schema lists, as a type.
    pub(crate) fn choice<T: FromStr>(&self, path: &str) -> T {
        self.maybe_choice(path).expect(DEFAULTED)
    }

    pub(crate) fn maybe_choice<T: FromStr>(&self, path: &str) -> Option<T> {
        let text = self.maybe_text(path)?;
        Some(
            text.parse()
                .ok()
                .expect("the schema lists only what parses"),
        )
    }

    pub(crate) fn secret(&self, path: &str) -> Option<Secret> {
        self.value(path).map(|value| match value {
            SettingValue::Secret(secret) => secret.clone(),
            _ => unreachable!("{path}: {DECLARED}"),
        })
    }

    pub(crate) fn texts(&self, path: &str) -> Vec<String> {
        match self.value(path) {
            Some(SettingValue::Texts(texts)) => texts.clone(),
            None => Vec::new(),
            Some(_) => unreachable!("{path}: {DECLARED}"),
        }
    }

    pub(crate) fn pairs(&self, path: &str) -> BTreeMap<String, Secret> {
        match self.value(path) {
            Some(SettingValue::Pairs(pairs)) => pairs.clone(),
            None => BTreeMap::new(),
            Some(_) => unreachable!("{path}: {DECLARED}"),
        }
    }

    pub(crate) fn records(&self, path: &str) -> &'a [RecordValue] {
        match self.value(path) {
            Some(SettingValue::Records(records)) => records,
            None => &[],
            Some(_) => unreachable!("{path}: {DECLARED}"),
        }
    }

    pub(crate) fn table(&self, path: &str) -> impl Iterator<Item = (&'a String, &'a RecordValue)> {
        match self.value(path) {
            Some(SettingValue::Table(table)) => Some(table),
            None => None,
            Some(_) => unreachable!("{path}: {DECLARED}"),
        }
        .into_iter()
        .flatten()
    }

    pub(crate) fn tree(&self, path: &str) -> Option<serde_json::Value> {
        self.value(path).map(|value| match value {
            SettingValue::Tree(tree) => tree.clone(),
            _ => unreachable!("{path}: {DECLARED}"),
        })
    }

    /// An error about a value, pointing at where it was written.
    pub(crate) fn wrong(&self, path: &str, what: impl Into<String>) -> ConfigProblem {
        let problem = ConfigProblem::error(what).of_key(path);
        if let Some(place) = &self.setting(path).place {
            return problem.at(place);
        }
        match self.setting(path).origin() {
            SettingOrigin::Managed { file, line }
            | SettingOrigin::File { file, line }
            | SettingOrigin::DotEnv { file, line, .. } => problem.in_line(file, *line),
            SettingOrigin::Variable { name } => problem.in_variable(name),
            SettingOrigin::Default => problem,
        }
    }

    /// The same as a warning.
    pub(crate) fn doubted(&self, path: &str, what: impl Into<String>) -> ConfigProblem {
        self.wrong(path, what).into_warning()
    }

    fn value(&self, path: &str) -> Option<&'a SettingValue> {
        self.setting(path).value()
    }

    fn setting(&self, path: &str) -> &'a EffectiveSetting {
        self.settings
            .get(path)
            .unwrap_or_else(|| unreachable!("{path}: the schema declares it"))
    }
}

/// A text field of a record; an empty one says nothing.
pub(crate) fn field(record: &RecordValue, name: &str) -> Option<String> {
    written_field(record, name).filter(|text| !text.is_empty())
}

/// A text field of a record, empty or not.
pub(crate) fn written_field(record: &RecordValue, name: &str) -> Option<String> {
    match record.get(name) {
        Some(SettingValue::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

pub(crate) fn texts_field(record: &RecordValue, name: &str) -> Vec<String> {
    match record.get(name) {
        Some(SettingValue::Texts(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

pub(crate) fn secret_field(record: &RecordValue, name: &str) -> Option<Secret> {
    match record.get(name) {
        Some(SettingValue::Secret(secret)) => Some(secret.clone()),
        _ => None,
    }
}

pub(crate) fn seconds_field(record: &RecordValue, name: &str) -> Option<Duration> {
    match record.get(name) {
        Some(SettingValue::Number(seconds)) => Some(Duration::from_secs_f64(seconds.max(0.0))),
        _ => None,
    }
}

/// Gives an enum its words in the file.
macro_rules! words {
    ($name:ident { $($word:literal => $variant:ident),+ $(,)? }) => {
        impl $name {
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(()),
                }
            }
        }
    };
}
pub(crate) use words;
