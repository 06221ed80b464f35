//! Single values as people write them.

use std::collections::BTreeMap;
use std::num::{IntErrorKind, ParseIntError};

use hermetic_types::Secret;

use crate::nearest::nearest;
use crate::shape::ValueMismatch;
use crate::wording::short;

pub(crate) fn within<T>(text: &str, number: T, least: T, most: T) -> Result<(), ValueMismatch>
where
    T: Copy + PartialOrd + std::fmt::Display,
{
    let too = match number {
        _ if number < least => "small",
        _ if number > most => "large",
        _ => return Ok(()),
    };
    Err(ValueMismatch {
        what: format!("{} is too {too}", short(text)),
        help: vec![between(&least, &most)],
    })
}

pub(crate) fn between(least: &impl std::fmt::Display, most: &impl std::fmt::Display) -> String {
    format!("it must be between {least} and {most}")
}

pub(crate) fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "0" => Some(false),
        _ => None,
    }
}

pub(crate) fn whole(text: &str) -> Option<i64> {
    let digits = text.replace('_', "");
    if let Some(hex) = digits.strip_prefix("0x") {
        return i64::from_str_radix(hex, 16).ok();
    }
    // `180.0` is what some tools write for 180.
    let digits = digits.strip_suffix(".0").unwrap_or(&digits);
    digits
        .parse()
        .or_else(|error: ParseIntError| match error.kind() {
            // Still a number, and one that no bound lets pass: it is told as too large, and not as
            // no number.
            IntErrorKind::PosOverflow => Ok(i64::MAX),
            IntErrorKind::NegOverflow => Ok(i64::MIN),
            _ => Err(error),
        })
        .ok()
}

/// Neither infinite nor "not a number": a limit that compares with nothing is none.
pub(crate) fn number(text: &str) -> Option<f64> {
    let digits = text.replace('_', "");
    let starts_well =
        digits.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    digits
        .parse()
        .ok()
        .filter(|number: &f64| starts_well && number.is_finite())
}

pub(crate) fn choice(text: &str, choices: &[&'static str]) -> Result<&'static str, ValueMismatch> {
    let lower = text.to_ascii_lowercase();
    // YAML's bare `off` is false for many tools that rewrite the file.
    let wanted = match (lower.as_str(), flag(text)) {
        (_, Some(false)) if choices.contains(&"off") => "off",
        (lower, _) => lower,
    };
    if let Some(choice) = choices.iter().find(|choice| **choice == wanted) {
        return Ok(choice);
    }
    let mut help = vec![format!("known: {}", choices.join(", "))];
    if let Some(near) = nearest(&lower, choices.iter().copied()) {
        help.push(format!("did you mean {near}?"));
    }
    Err(ValueMismatch {
        what: format!("unknown value `{}`", short(text)),
        help,
    })
}

/// JSON, as lists cross the environment, or words between commas.
pub(crate) fn listed(text: &str) -> Result<Vec<String>, ValueMismatch> {
    if text.starts_with('[') {
        let items: Vec<serde_json::Value> =
            serde_json::from_str(text).map_err(|error| not_json("list", &error))?;
        return Ok(items
            .into_iter()
            .map(|item| match item {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            })
            .collect());
    }
    Ok(text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect())
}

pub(crate) fn paired(text: &str) -> Result<BTreeMap<String, Secret>, ValueMismatch> {
    let pairs: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(text).map_err(|error| not_json("object", &error))?;
    Ok(pairs
        .into_iter()
        .map(|(name, value)| {
            let text = match value {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            };
            (name, Secret::new(text))
        })
        .collect())
}

/// Only where it broke: the text itself may hold credentials.
fn not_json(kind: &str, error: &serde_json::Error) -> ValueMismatch {
    ValueMismatch {
        what: format!("not a JSON {kind} (at character {})", error.column()),
        help: vec![format!("in a variable, write it as a JSON {kind}")],
    }
}
