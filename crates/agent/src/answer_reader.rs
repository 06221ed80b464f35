//! What every dialect's reader of answers keeps to.

use serde_json::Value;

use crate::endpoint::{EndpointSettings, failure};
use crate::json_shape::has_too_many_values;
use crate::{ModelError, ReplyDelta};

/// Reads one answer, event by event or whole.
///
/// What an implementer promises: it does not panic on any bytes, gives out at most one
/// [`ReplyDelta::Finish`] and nothing after it, and says an error of the endpoint as an error.
pub(crate) trait AnswerReader {
    /// The deltas of one event of a stream.
    fn event(&mut self, data: &str) -> Result<Vec<ReplyDelta>, ModelError>;

    /// Why this is no answer, where something beside that was worth telling first: figures of a failure are
    /// paid for. Asked after the deltas of each event.
    fn failed(&mut self) -> Option<ModelError> {
        None
    }

    /// The deltas of an answer that came in one piece, with a finish unless it has [`failed`](Self::failed).
    fn whole(&mut self, body: &[u8]) -> Result<Vec<ReplyDelta>, ModelError>;

    /// What the end of the connection means where nothing said before that the answer is over.
    fn end(&mut self) -> Result<Vec<ReplyDelta>, ModelError>;
}

/// The JSON of an answer, or the error that it holds.
pub(crate) fn parse(settings: &EndpointSettings, json: &[u8]) -> Result<Value, ModelError> {
    // Counted before it is parsed: parsing is what takes the memory, and a hundred bytes of it for
    // each comma.
    if has_too_many_values(json) {
        return Err(unreadable(settings, "it consists of too many values"));
    }
    let value: Value =
        serde_json::from_slice(json).map_err(|error| unreadable(settings, error.to_string()))?;
    match value.get("error") {
        None | Some(Value::Null) => Ok(value),
        Some(error) => Err(failure::of_object(settings, error)),
    }
}

pub(crate) fn unreadable(settings: &EndpointSettings, what: impl Into<String>) -> ModelError {
    ModelError::Unreadable {
        model: settings.model.clone(),
        what: what.into(),
    }
}

pub(crate) fn cut(settings: &EndpointSettings) -> ModelError {
    ModelError::Cut {
        model: settings.model.clone(),
    }
}

/// The text at `name`, unless it is empty.
pub(crate) fn text_at<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// The number at `name`, which may be several steps down, as in `details.cached`.
pub(crate) fn count_at(value: &Value, path: &str) -> Option<u64> {
    let found = path.split('.').try_fold(value, |at, name| at.get(name))?;
    found.as_u64()
}
