//! What a tool of a server brought back, as the model is shown it.

use hermetic_redact::Redactor;
use serde_json::{Value, json};

use crate::ansi;
use crate::toolbox::RawAnswer;

/// Pieces of one result that are looked at.
const MOST_PIECES: usize = 256;

/// The text of a result, redacted before it is cut; of what is no text, what it is.
pub(super) fn answer(result: &Value, redactor: &Redactor, most: usize) -> RawAnswer {
    let failed = result.get("isError") == Some(&Value::Bool(true));
    let pieces = result.get("content").and_then(Value::as_array);
    let pieces = pieces.into_iter().flatten().take(MOST_PIECES);
    let texts: Vec<String> = pieces.map(text_of).collect();
    let mut text = texts.join("\n");
    if text.trim().is_empty()
        && let Some(structured) = result.get("structuredContent")
    {
        text = structured.to_string();
    }
    let text = String::from_utf8_lossy(&ansi::plain(text.as_bytes())).into_owned();
    let text = redactor.redact(text).into_inner();
    let key = if failed { "error" } else { "result" };
    RawAnswer {
        json: json!({key: cut(&text, most)}),
        failed,
    }
}

fn text_of(piece: &Value) -> String {
    let field = |name: &str| piece.get(name).and_then(Value::as_str);
    let kind = |of: &Value| {
        let kind = of.get("mimeType").and_then(Value::as_str).unwrap_or("?");
        kind.chars().take(80).collect::<String>()
    };
    match field("type") {
        Some("text") => field("text").unwrap_or_default().to_owned(),
        Some(what @ ("image" | "audio")) => {
            let size = field("data").map_or(0, str::len);
            format!(
                "[{what} of type {}, {size} characters of base64, not shown]",
                kind(piece)
            )
        }
        Some("resource") => {
            let resource = piece.get("resource").unwrap_or(&Value::Null);
            match resource.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => format!("[a resource of type {}, not shown]", kind(resource)),
            }
        }
        Some("resource_link") => {
            let address: String = field("uri")
                .unwrap_or_default()
                .chars()
                .take(2000)
                .collect();
            format!("[a resource at {address}]")
        }
        _ => "[something that is not known here]".to_owned(),
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => {
            let left_out = text.chars().count() - most;
            format!("{}\n[… {left_out} characters left out]", &text[..end])
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([], hermetic_redact::RedactorSettings::default())
    }

    #[test]
    fn text_is_shown_and_the_rest_is_named() {
        let result = json!({"content": [
            {"type": "text", "text": "one\u{1b}[31m"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "x:y", "text": "two"}},
            {"type": "resource_link", "uri": "file:///x"},
            {"type": "surprise"},
            7,
        ]});
        let shown = answer(&result, &redactor(), 1000);
        assert!(!shown.failed);
        let text = shown.json["result"].as_str().expect("text");
        assert!(
            text.starts_with("one\n[image of type image/png, 4 characters"),
            "{text}"
        );
        assert!(
            text.contains("\ntwo\n[a resource at file:///x]\n"),
            "{text}"
        );
        let failed = answer(
            &json!({"isError": true, "content": [{"type": "text", "text": "no"}]}),
            &redactor(),
            1000,
        );
        assert!(failed.failed && failed.json["error"] == "no");
        let structured = answer(&json!({"structuredContent": {"a": 1}}), &redactor(), 99);
        assert_eq!(structured.json["result"], r#"{"a":1}"#);
        let long = answer(
            &json!({"content": [{"type": "text", "text": "ä".repeat(50)}]}),
            &redactor(),
            10,
        );
        let text = long.json["result"].as_str().expect("text");
        assert_eq!(
            text,
            format!("{}\n[… 40 characters left out]", "ä".repeat(10))
        );
    }

    #[test]
    fn odd_results_are_answered() {
        for odd in [
            json!(null),
            json!([]),
            json!({"content": "x"}),
            json!({"content": [null]}),
        ] {
            let shown = answer(&odd, &redactor(), 10);
            assert!(shown.json.get("result").is_some(), "{odd}");
        }
    }
}
