//! The arguments of a call, as a model gives them: mostly right.

use serde_json::{Map, Value};

use super::FileToolFailure;

/// Arguments that nobody has looked at yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileArguments<'a>(pub(super) &'a Map<String, Value>);

impl<'a> FileArguments<'a> {
    /// A text that must be there.
    pub(super) fn needed(&self, name: &str) -> Result<&'a str, FileToolFailure> {
        self.text(name)?.ok_or_else(|| {
            FileToolFailure::new(format!(
                "{name} is missing; call again with every required parameter set"
            ))
        })
    }

    /// `path`, or what else names a file: not empty, no NUL.
    pub(super) fn path(&self, name: &str) -> Result<&'a str, FileToolFailure> {
        let path = self.needed(name)?;
        if path.trim().is_empty() {
            return Err(FileToolFailure::new(format!("{name} is empty")));
        }
        if path.contains('\0') {
            return Err(FileToolFailure::new(format!(
                "{name} holds a NUL byte, which no path can"
            )));
        }
        Ok(path)
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, FileToolFailure> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(FileToolFailure::new(format!("{name} must be a string"))),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, FileToolFailure> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(_) => Err(FileToolFailure::new(format!(
                "{name} must be true or false"
            ))),
        }
    }

    /// A whole number, brought into its bounds: models count from the wrong end now and then.
    pub(super) fn count(
        &self,
        name: &str,
        default: usize,
        (least, most): (usize, usize),
    ) -> Result<usize, FileToolFailure> {
        let wrong = || FileToolFailure::new(format!("{name} must be a whole number"));
        let number = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(default.clamp(least, most)),
            Some(Value::String(text)) => text.trim().parse::<i64>().map_err(|_| wrong())?,
            Some(Value::Number(number)) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => number,
                (None, Some(_)) => i64::MAX,
                (None, None) => return Err(wrong()),
            },
            Some(_) => return Err(wrong()),
        };
        let number = usize::try_from(number.max(0)).unwrap_or(usize::MAX);
        Ok(number.clamp(least, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_brought_into_their_bounds() {
        let given = json!({"a": -5, "b": "7", "c": 10_000, "d": 1.5, "e": u64::MAX, "f": "x"});
        let arguments = FileArguments(given.as_object().expect("an object"));
        let count = |name| arguments.count(name, 500, (1, 2000));
        assert_eq!(count("a").ok(), Some(1));
        assert_eq!(count("b").ok(), Some(7));
        assert_eq!(count("c").ok(), Some(2000));
        assert_eq!(count("e").ok(), Some(2000));
        assert_eq!(count("absent").ok(), Some(500));
        assert!(count("d").is_err() && count("f").is_err());
    }
}
