//! `${NAME}` inside values.
//!
//! A name that is not set is an error: the text itself, sent somewhere as a token or used as a
//! path, is never what was meant. `${NAME:-text}` gives a fallback and `$${` a literal `${`.

use thiserror::Error;

#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum ExpandError {
    #[error("the variable {0} is not set")]
    Unset(String),
    #[error("`${{{0}}}` does not name a variable")]
    NotAName(String),
    #[error("`${{` without a closing brace")]
    Unclosed,
}

pub(crate) fn expand(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, ExpandError> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        // First: behind `$${` no name has to be set, and none has to end.
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = &from[2..];
            continue;
        }
        expanded.push_str(before);
        let end = from.find('}').ok_or(ExpandError::Unclosed)?;
        expanded.push_str(&replacement(&from[2..end], &variable)?);
        rest = &from[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn replacement(
    inside: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, ExpandError> {
    let (name, fallback) = match inside.split_once(":-") {
        Some((name, fallback)) => (name, Some(fallback)),
        None => (inside, None),
    };
    if !is_name(name) {
        return Err(ExpandError::NotAName(crate::wording::short(inside)));
    }
    // As in a shell: where there is a fallback, an empty variable is like none.
    match (variable(name).filter(|value| !value.is_empty()), fallback) {
        (Some(value), _) => Ok(value),
        (None, Some(fallback)) => Ok(fallback.to_owned()),
        (None, None) => variable(name).ok_or_else(|| ExpandError::Unset(name.to_owned())),
    }
}

pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_user(text: &str) -> Result<String, ExpandError> {
        expand(text, |name| match name {
            "USER" => Some("ada".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn variables_are_put_in() {
        for (text, expanded) in [
            ("plain $USER", "plain $USER"),
            ("/home/${USER}/x", "/home/ada/x"),
            ("${USER}${USER}", "adaada"),
            ("${NOPE:-else}", "else"),
            ("${EMPTY:-else}", "else"),
            ("${EMPTY}", ""),
            ("$${USER}", "${USER}"),
        ] {
            assert_eq!(with_user(text).as_deref(), Ok(expanded), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_put_in_is_an_error() {
        assert_eq!(with_user("${NOPE}"), Err(ExpandError::Unset("NOPE".into())));
        assert_eq!(with_user("a ${USER"), Err(ExpandError::Unclosed));
        assert_eq!(with_user("${}"), Err(ExpandError::NotAName(String::new())));
        assert_eq!(with_user("${1x}"), Err(ExpandError::NotAName("1x".into())));
    }
}
