//! Parameters of a call: JSON, a form, or a query; vendors' clients send forms in which blocks are text.

use axum::http::{HeaderMap, header};
use serde_json::{Map, Value};

/// Parameters that are structures, also where a form carries them as text.
const STRUCTURES: [&str; 2] = ["blocks", "files"];

pub(super) fn read(headers: &HeaderMap, query: &str, body: &[u8]) -> Option<Value> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    if kind.is_some_and(|kind| kind.starts_with("application/json")) {
        return match body.is_empty() {
            true => Some(Value::Object(Map::new())),
            false => serde_json::from_slice(body).ok(),
        };
    }
    let body = std::str::from_utf8(body).ok()?;
    let mut params = Map::new();
    for pair in query.split('&').chain(body.split('&')) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name)?, decoded(value)?);
        if name.is_empty() {
            continue;
        }
        let value = match STRUCTURES.contains(&name.as_str()) {
            true => serde_json::from_str(&value).ok()?,
            false => Value::String(value),
        };
        params.insert(name, value);
    }
    Some(Value::Object(params))
}

/// The token of a call, in its header or among its parameters.
pub(super) fn token(headers: &HeaderMap, params: &Value) -> String {
    let header = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let bearer = header.and_then(|value| value.strip_prefix("Bearer "));
    bearer
        .or(params["token"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// A text parameter that must be there.
pub(super) fn text<'a>(params: &'a Value, name: &str) -> Result<&'a str, &'static str> {
    params[name].as_str().ok_or("invalid_arguments")
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_decoded() {
        let params = read(&HeaderMap::new(), "a=1", b"text=x+%26%20y&blocks=%5B%5D").unwrap();
        assert_eq!(
            params,
            serde_json::json!({"a": "1", "text": "x & y", "blocks": []})
        );
    }
}
