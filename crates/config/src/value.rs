//! What a key holds once it has been read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hermetic_types::Secret;
use serde_json::json;

use crate::place::SourcePlace;
use crate::size;

#[derive(Clone, Debug)]
pub enum SettingValue {
    Flag(bool),
    Whole(i64),
    Number(f64),
    /// In bytes.
    Size(u64),
    Text(String),
    Secret(Secret),
    Texts(Vec<String>),
    /// Names and values, as in an environment. The values never print.
    Pairs(BTreeMap<String, Secret>),
    Records(Vec<RecordValue>),
    Table(BTreeMap<String, RecordValue>),
    /// Kept as it was written. Never prints: nobody knows what is in it.
    Tree(serde_json::Value),
}

/// One entry of a list or table; fields that nobody wrote are not there.
#[derive(Clone, Debug, Default)]
pub struct RecordValue {
    pub(crate) fields: BTreeMap<&'static str, SettingValue>,
    pub(crate) place: Option<SourcePlace>,
}

impl RecordValue {
    pub fn get(&self, field: &str) -> Option<&SettingValue> {
        self.fields.get(field)
    }

    /// Everything that was written in it.
    pub fn values(&self) -> impl Iterator<Item = &SettingValue> {
        self.fields.values()
    }

    /// An entry that was written as one value instead of a map.
    pub(crate) fn lone(field: &'static str, value: SettingValue, place: &SourcePlace) -> Self {
        Self {
            fields: [(field, value)].into(),
            place: Some(place.clone()),
        }
    }
}

impl SettingValue {
    /// For people. Holds no secret.
    pub fn shown(&self) -> String {
        match self {
            Self::Flag(flag) => flag.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Size(bytes) => size::spell(*bytes),
            Self::Text(text) => quoted(&without_login(text)),
            Self::Secret(secret) => secret.to_string(),
            Self::Texts(texts) => {
                let texts: Vec<String> = texts
                    .iter()
                    .map(|text| quoted(&without_login(text)))
                    .collect();
                format!("[{}]", texts.join(", "))
            }
            Self::Pairs(pairs) => {
                let pairs: Vec<String> = pairs
                    .keys()
                    .map(|name| format!("{}: [secret]", quoted(name)))
                    .collect();
                format!("{{{}}}", pairs.join(", "))
            }
            Self::Records(records) => {
                let records: Vec<String> = records.iter().map(shown_record).collect();
                format!("[{}]", records.join(", "))
            }
            Self::Table(table) => {
                let mut text = String::new();
                for (name, record) in table {
                    let comma = if text.is_empty() { "" } else { ", " };
                    let _ = write!(text, "{comma}{}: {}", quoted(name), shown_record(record));
                }
                format!("{{{text}}}")
            }
            Self::Tree(_) => "(as written)".to_owned(),
        }
    }

    /// Written, and nothing said by it.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Texts(texts) => texts.is_empty(),
            Self::Tree(tree) => {
                tree.is_null() || tree.as_object().is_some_and(serde_json::Map::is_empty)
            }
            _ => false,
        }
    }

    pub(crate) fn holds_secret(&self) -> bool {
        let inside = |record: &RecordValue| record.fields.values().any(Self::holds_secret);
        match self {
            Self::Secret(_) => true,
            Self::Pairs(pairs) => !pairs.is_empty(),
            Self::Records(records) => records.iter().any(inside),
            Self::Table(table) => table.values().any(inside),
            Self::Text(text) => without_login(text) != *text,
            Self::Texts(texts) => texts.iter().any(|text| without_login(text) != *text),
            _ => false,
        }
    }

    /// For programs. Holds no secret either.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Flag(flag) => json!(flag),
            Self::Whole(number) => json!(number),
            Self::Number(number) => json!(number),
            Self::Size(bytes) => json!(bytes),
            Self::Text(text) => json!(without_login(text)),
            Self::Secret(secret) => json!(secret.to_string()),
            Self::Texts(texts) => texts.iter().map(|text| without_login(text)).collect(),
            Self::Pairs(pairs) => pairs
                .iter()
                .map(|(name, value)| (name.clone(), json!(value.to_string())))
                .collect(),
            Self::Records(records) => records.iter().map(json_record).collect(),
            Self::Table(table) => table
                .iter()
                .map(|(name, record)| (name.clone(), json_record(record)))
                .collect(),
            Self::Tree(_) => json!("(as written)"),
        }
    }
}

fn shown_record(record: &RecordValue) -> String {
    let fields: Vec<String> = record
        .fields
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.shown()))
        .collect();
    format!("{{{}}}", fields.join(", "))
}

fn json_record(record: &RecordValue) -> serde_json::Value {
    record
        .fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_json()))
        .collect()
}

fn quoted(text: &str) -> String {
    let bare = !text.is_empty()
        && text
            .chars()
            .all(|c| !c.is_control() && !matches!(c, '"' | ',' | '[' | '{'))
        && text.trim() == text;
    if bare {
        text.to_owned()
    } else {
        format!("{text:?}")
    }
}

/// `http://user:password@host` without what stands before the `@`.
fn without_login(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // The last one: a password may have one in it.
    match authority.rfind('@') {
        Some(at) => format!("{scheme}://[secret]{}", &rest[at..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let secret = || Secret::new("hunter2");
        for value in [
            SettingValue::Secret(secret()),
            SettingValue::Pairs([("A".to_owned(), secret())].into()),
            SettingValue::Records(vec![RecordValue {
                fields: [("k", SettingValue::Secret(secret()))].into(),
                place: None,
            }]),
            SettingValue::Text("socks5://me:hunter2@127.0.0.1:1080/x@y".to_owned()),
            SettingValue::Texts(vec![
                "https://one.test".to_owned(),
                "https://me:hunter2@two.test".to_owned(),
            ]),
            SettingValue::Tree(json!({"token": "hunter2"})),
        ] {
            assert!(!value.shown().contains("hunter2"), "{}", value.shown());
            assert!(!value.to_json().to_string().contains("hunter2"));
        }
    }
}
