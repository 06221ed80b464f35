//! Files: what a model does with them, and what a hostile folder does with it.

mod hostile;
mod patching;
mod reading;
mod searching;
mod writing;

use serde_json::Value;

pub(crate) fn error(json: &Value) -> &str {
    json["error"]
        .as_str()
        .unwrap_or_else(|| panic!("no error: {json}"))
}

pub(crate) fn content(json: &Value) -> &str {
    json["content"]
        .as_str()
        .unwrap_or_else(|| panic!("no content: {json}"))
}
