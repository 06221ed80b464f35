//! What a model asks the web tools for, read and bounded.

use serde_json::{Map, Value};
use url::Url;

/// Pages of one call.
pub(super) const MOST_URLS: usize = 5;
const LONGEST_URL: usize = 4000;
const LONGEST_QUERY: usize = 1000;
/// Results of one search: more would not fit into an answer.
const MOST_RESULTS: u64 = 50;
const USUAL_RESULTS: u64 = 5;
const LEAST_CHARS: u64 = 2000;

pub(super) fn query(arguments: &Map<String, Value>) -> Result<&str, String> {
    let query = arguments.get("query").and_then(Value::as_str);
    let query = query.map(str::trim).filter(|query| !query.is_empty());
    let query = query.ok_or("query must be a text that says what to look for")?;
    match query.chars().count() {
        length if length > LONGEST_QUERY => Err(format!(
            "the query has {length} characters, the limit is {LONGEST_QUERY}"
        )),
        _ => Ok(query),
    }
}

pub(super) fn limit(arguments: &Map<String, Value>) -> usize {
    let limit = arguments.get("limit").and_then(whole);
    let limit = limit.unwrap_or(USUAL_RESULTS).clamp(1, MOST_RESULTS);
    usize::try_from(limit).unwrap_or(1)
}

/// How many characters of a page are wanted, within what an answer holds.
pub(super) fn page_chars(arguments: &Map<String, Value>, usual: usize, most: usize) -> usize {
    let wanted = arguments.get("char_limit").and_then(whole);
    let wanted = wanted.map(|wanted| wanted.max(LEAST_CHARS));
    let wanted = wanted.map_or(usual, |wanted| usize::try_from(wanted).unwrap_or(most));
    wanted.min(most)
}

/// The addresses as they were written. Some models hand over a whole result of a search.
pub(super) fn urls(arguments: &Map<String, Value>) -> Result<Vec<String>, String> {
    let list = match arguments.get("urls") {
        Some(Value::Array(list)) if !list.is_empty() => list.as_slice(),
        Some(one @ Value::String(_)) => std::slice::from_ref(one),
        _ => return Err("urls must be a list of addresses".to_owned()),
    };
    if list.len() > MOST_URLS {
        let many = list.len();
        return Err(format!(
            "{many} addresses are too many, the limit is {MOST_URLS} in one call"
        ));
    }
    let text = |item: &Value| {
        let inner = item.get("url").or_else(|| item.get("href")).unwrap_or(item);
        let text = inner
            .as_str()
            .map(str::trim)
            .filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    let texts: Option<Vec<_>> = list.iter().map(text).collect();
    texts.ok_or_else(|| "every entry of urls must be an address".to_owned())
}

/// An address that can be asked for: http or https, a host, no login.
pub(super) fn address(text: &str) -> Result<Url, String> {
    let shown: String = text.chars().take(200).collect();
    if text.len() > LONGEST_URL {
        return Err(format!("{shown}… is too long for an address"));
    }
    // People leave the scheme out.
    let is_bare = !text.contains("://") && text.contains('.');
    let parsed = match is_bare {
        true => Url::parse(&format!("https://{text}")),
        false => Url::parse(text),
    };
    let mut url = parsed.map_err(|_| format!("{shown:?} is no address"))?;
    checked(&url)?;
    url.set_fragment(None);
    Ok(url)
}

/// The same for where a redirection leads.
pub(super) fn checked(url: &Url) -> Result<(), String> {
    let scheme = url.scheme();
    if !matches!(scheme, "http" | "https") {
        return Err(format!("{scheme}: is not read; only http and https are"));
    }
    if !url.has_host() {
        return Err("the address names no host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address with a login is not asked for".to_owned());
    }
    if url.as_str().len() > LONGEST_URL {
        return Err("the address is too long".to_owned());
    }
    Ok(())
}

fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "a test writes it in place")]
    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn addresses_are_taken_in_every_form_that_models_write() {
        let read = |value: Value| urls(&map(json!({"urls": value})));
        assert_eq!(read(json!("https://a.test")).unwrap(), ["https://a.test"]);
        let mixed =
            json!([" https://a.test ", {"url": "https://b.test"}, {"href": "https://c.test"}]);
        assert_eq!(
            read(mixed).unwrap(),
            ["https://a.test", "https://b.test", "https://c.test"]
        );
        for bad in [
            json!([]),
            json!(7),
            json!([7]),
            json!([""]),
            json!(["a", "a", "a", "a", "a", "a"]),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_the_web_is_an_address() {
        assert_eq!(
            address("a.test/x#part").unwrap().as_str(),
            "https://a.test/x"
        );
        assert_eq!(
            address("http://Bücher.test").unwrap().as_str(),
            "http://xn--bcher-kva.test/"
        );
        for bad in [
            "file:///etc/passwd",
            "https://user:pass@a.test/",
            "data:text/html,x",
            "javascript:alert(1)",
            "http://",
            "nothing",
            &format!("https://a.test/{}", "x".repeat(5000)),
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_are_bounded_whatever_is_asked() {
        assert_eq!(limit(&map(json!({}))), 5);
        assert_eq!(limit(&map(json!({"limit": 0}))), 1);
        assert_eq!(limit(&map(json!({"limit": "1000"}))), 50);
        assert_eq!(page_chars(&map(json!({})), 15_000, 90_000), 15_000);
        assert_eq!(
            page_chars(&map(json!({"char_limit": 1})), 15_000, 90_000),
            2000
        );
        assert_eq!(
            page_chars(&map(json!({"char_limit": u64::MAX})), 15_000, 90_000),
            90_000
        );
        let long = "x".repeat(1001);
        assert!(query(&map(json!({"query": long}))).is_err());
        assert!(query(&map(json!({"query": " "}))).is_err());
    }
}
