//! Why a file tool did not do it, in words that help the model.

use hermetic_warden::client::WardenCallError;
use hermetic_warden::protocol::FailureKind;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::FileTool;
use crate::{BlockedCommand, NoSandbox};

#[derive(Debug, Error)]
#[error("{text}")]
pub(super) struct FileToolFailure {
    text: String,
    /// More keys of the result.
    facts: Map<String, Value>,
}

impl FileToolFailure {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            facts: Map::new(),
        }
    }

    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(key.to_owned(), value.into());
        self
    }

    /// The same, said of a file.
    pub(super) fn within(mut self, path: &str) -> Self {
        self.text = format!("{path}: {}", self.text);
        self
    }

    /// With one more sentence.
    pub(super) fn and(mut self, more: &str) -> Self {
        let stop = if self.text.ends_with('.') { "" } else { "." };
        self.text = format!("{}{stop} {more}", self.text);
        self
    }

    /// Of several changes that stand or fall together.
    pub(super) fn unchanged(self) -> Self {
        self.and("No file was changed.")
    }

    /// What the warden could not do with a path.
    pub(super) fn at(path: &str, error: &WardenCallError) -> Self {
        let WardenCallError::Failed(failure) = error else {
            return Self::new(format!("the sandbox does not answer: {error}"));
        };
        let remedy = match (failure.kind, failure.errno) {
            (FailureKind::Changed, _) => "; read it again and repeat the change",
            // Read-only file system, permission denied, not permitted.
            (_, Some(30 | 13 | 1)) => "; the workspace and /tmp can be written to",
            // No space left, quota exceeded.
            (_, Some(28 | 122)) => "; remove what is not needed",
            _ => "",
        };
        Self::new(format!("{path}: {failure}{remedy}"))
    }

    pub(super) fn into_json(self, tool: FileTool) -> Value {
        let mut json = self.facts;
        if tool == FileTool::Patch {
            json.insert("success".to_owned(), json!(false));
        }
        json.insert("error".to_owned(), json!(self.text));
        Value::Object(json)
    }
}

impl From<NoSandbox> for FileToolFailure {
    fn from(none: NoSandbox) -> Self {
        Self::new(none.to_string())
    }
}

impl From<BlockedCommand> for FileToolFailure {
    fn from(blocked: BlockedCommand) -> Self {
        Self::new(blocked.for_model()).with("status", "blocked")
    }
}
