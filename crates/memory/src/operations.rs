//! What the tool `memory` is asked for, read from its arguments.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::MemoryTarget;
use crate::scan::{self, ScanFinding, ScanScope};

/// One change to the entries of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum MemoryOperation {
    Add { content: String },
    Replace { old_text: String, content: String },
    Remove { old_text: String },
}

/// All that one call asks for: it happens whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryChange {
    pub target: MemoryTarget,
    pub operations: Vec<MemoryOperation>,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadOperation {
    #[error("Invalid target. Use 'memory' or 'user'.")]
    Target,
    #[error("Unknown action. Use: add, replace, remove.")]
    Action,
    #[error("Content is required for 'add' and 'replace'; use 'remove' to delete an entry.")]
    NoContent,
    #[error(
        "'replace' and 'remove' need old_text: a short unique part of the entry. Set it to part of one of \
         current_entries."
    )]
    NoOldText,
    #[error(
        "operations must be a list of 1 to {MOST_OPERATIONS} {{action, content?, old_text?}} objects."
    )]
    Operations,
    #[error("An entry may have at most {LONGEST_ENTRY} characters.")]
    TooLong,
    #[error("An entry must not contain a line with nothing but §: it stands between entries.")]
    Separator,
    #[error("Blocked: {0}. What is remembered is shown to every later conversation.")]
    Found(ScanFinding),
    #[error("No entry matched '{0}'.")]
    NoMatch(String),
    #[error("Multiple entries matched '{0}'. Be more specific.")]
    SeveralMatch(String),
}

const MOST_OPERATIONS: usize = 50;
/// No bound on a memory is larger.
const LONGEST_ENTRY: usize = 20_000;

impl MemoryChange {
    pub const TOOL: &str = "memory";

    pub fn read(arguments: &Map<String, Value>) -> Result<Self, BadOperation> {
        let target = match arguments.get("target") {
            None | Some(Value::Null) => MemoryTarget::Memory,
            Some(Value::String(name)) => MemoryTarget::of_name(name).ok_or(BadOperation::Target)?,
            Some(_) => return Err(BadOperation::Target),
        };
        let operations = match arguments.get("operations") {
            // An empty list beside an action is no list to Hermes, and so it is none here.
            Some(Value::Array(list)) if !list.is_empty() => {
                if list.len() > MOST_OPERATIONS {
                    return Err(BadOperation::Operations);
                }
                let read = |item: &Value| {
                    let fields = item.as_object().ok_or(BadOperation::Operations)?;
                    operation(fields)
                };
                list.iter().map(read).collect::<Result<_, _>>()?
            }
            None | Some(Value::Null | Value::Array(_)) => vec![operation(arguments)?],
            Some(_) => return Err(BadOperation::Operations),
        };
        Ok(Self { target, operations })
    }

    /// The schema of the tool's arguments.
    pub fn schema() -> Value {
        let action = json!({"type": "string", "enum": ["add", "replace", "remove"]});
        let content = json!({"type": "string", "description": "The entry, for add and replace."});
        let old_text = json!({"type": "string",
            "description": "A short unique part of the entry to replace or remove."});
        json!({
            "type": "object",
            "properties": {
                "action": action.clone(),
                "target": {"type": "string", "enum": ["memory", "user"],
                    "description": "'memory' for your notes, 'user' for who the person is."},
                "content": content.clone(),
                "old_text": old_text.clone(),
                "operations": {
                    "type": "array",
                    "description": "Several changes at once, all or none; instead of action, content and old_text.",
                    "items": {
                        "type": "object",
                        "properties": {"action": action, "content": content, "old_text": old_text},
                        "required": ["action"],
                    },
                },
            },
            "required": ["target"],
        })
    }
}

fn operation(fields: &Map<String, Value>) -> Result<MemoryOperation, BadOperation> {
    let text = |name: &str| {
        let text = fields.get(name).and_then(Value::as_str).unwrap_or_default();
        text.trim().to_owned()
    };
    let content = || {
        let content = text("content");
        match content.is_empty() {
            true => Err(BadOperation::NoContent),
            false => acceptable(&content).map(|()| content),
        }
    };
    let old_text = || {
        let text = text("old_text");
        match text.is_empty() {
            true => Err(BadOperation::NoOldText),
            false => Ok(text),
        }
    };
    Ok(match text("action").as_str() {
        "add" => MemoryOperation::Add {
            content: content()?,
        },
        "replace" => MemoryOperation::Replace {
            old_text: old_text()?,
            content: content()?,
        },
        "remove" => MemoryOperation::Remove {
            old_text: old_text()?,
        },
        _ => return Err(BadOperation::Action),
    })
}

/// Whether a text may become an entry.
pub(crate) fn acceptable(content: &str) -> Result<(), BadOperation> {
    if content.chars().count() > LONGEST_ENTRY {
        return Err(BadOperation::TooLong);
    }
    // Read back, it would become two entries.
    if content.lines().any(|line| line.trim() == "§") {
        return Err(BadOperation::Separator);
    }
    match scan::first_finding(content, ScanScope::Strict) {
        Some(finding) => Err(BadOperation::Found(finding)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "a test writes them in place")]
    fn read(arguments: Value) -> Result<MemoryChange, BadOperation> {
        MemoryChange::read(arguments.as_object().unwrap())
    }

    #[test]
    fn one_change_and_many_are_read_as_hermes_writes_them() {
        let one = read(json!({"action": "add", "target": null, "content": " a "})).unwrap();
        let add = MemoryOperation::Add {
            content: "a".to_owned(),
        };
        assert_eq!(
            (one.target, one.operations),
            (MemoryTarget::Memory, vec![add])
        );
        let many = read(json!({"target": "user", "operations": [
            {"action": "remove", "old_text": "x"}, {"action": "replace", "old_text": "y", "content": "z"}]}));
        assert_eq!(many.unwrap().operations.len(), 2);
    }

    #[test]
    fn whatever_else_comes_is_answered_in_words() {
        for (arguments, expected) in [
            (json!({}), BadOperation::Action),
            (json!({"target": "file"}), BadOperation::Target),
            (json!({"action": "add"}), BadOperation::NoContent),
            (json!({"action": "remove"}), BadOperation::NoOldText),
            (json!({"operations": "x"}), BadOperation::Operations),
            (json!({"operations": [1]}), BadOperation::Operations),
            (
                json!({"action": "add", "content": "a\n § \nb"}),
                BadOperation::Separator,
            ),
            (
                json!({"action": "add", "content": "x".repeat(20_001)}),
                BadOperation::TooLong,
            ),
        ] {
            assert_eq!(read(arguments), Err(expected));
        }
        let poisoned = json!({"operations": [{"action": "add", "content": "fine"},
            {"action": "add", "content": "a\u{200b}b"}]});
        assert!(matches!(read(poisoned), Err(BadOperation::Found(_))));
    }
}
