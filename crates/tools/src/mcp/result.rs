//! What a tool of a server brought back, as the model is shown it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermetic_pictures::MOST_READ_BYTES;
use hermetic_redact::Redactor;
use serde_json::{Value, json};

use crate::toolbox::RawAnswer;
use crate::{ToolMedia, ansi};

/// Pieces of one result that are looked at.
const MOST_PIECES: usize = 256;
/// Pictures of one result that are shown. Each stays in the conversation.
const MOST_PICTURES: usize = 4;

/// What a server said, and the pictures that came with it, as large as they came.
#[derive(Debug)]
pub(crate) struct ServerAnswer {
    pub(crate) raw: RawAnswer,
    pub(crate) pictures: Vec<ToolMedia>,
}

impl ServerAnswer {
    pub(super) fn failed(why: &str) -> Self {
        Self {
            raw: RawAnswer {
                json: json!({"error": why}),
                failed: true,
            },
            pictures: Vec::new(),
        }
    }
}

/// The text of a result, redacted before it is cut; of what is neither text nor a picture, what it is.
pub(super) fn answer(result: &Value, redactor: &Redactor, most: usize) -> ServerAnswer {
    let failed = result.get("isError") == Some(&Value::Bool(true));
    let pieces = result.get("content").and_then(Value::as_array);
    let pieces = pieces.into_iter().flatten().take(MOST_PIECES);
    let mut pictures = Vec::new();
    let texts: Vec<String> = pieces
        .map(|piece| match picture(piece, pictures.len()) {
            Some(picture) => {
                let told = format!(
                    "[picture {} of type {}, shown beside this]",
                    pictures.len() + 1,
                    picture.media_type
                );
                pictures.push(picture);
                told
            }
            None => text_of(piece),
        })
        .collect();
    let mut text = texts.join("\n");
    if text.trim().is_empty()
        && let Some(structured) = result.get("structuredContent")
    {
        text = structured.to_string();
    }
    let text = String::from_utf8_lossy(&ansi::plain(text.as_bytes())).into_owned();
    let text = redactor.redact(text).into_inner();
    let key = if failed { "error" } else { "result" };
    ServerAnswer {
        raw: RawAnswer {
            json: json!({key: cut(&text, most)}),
            failed,
        },
        pictures,
    }
}

/// A picture that can be shown: by its first bytes, whatever the server calls it. Nothing for what is too large
/// to be made smaller, and for those after the first few.
fn picture(piece: &Value, before: usize) -> Option<ToolMedia> {
    let is_image = piece.get("type").and_then(Value::as_str) == Some("image");
    let data = piece.get("data").and_then(Value::as_str);
    let data = data.filter(|data| is_image && data.len() / 4 * 3 <= MOST_READ_BYTES)?;
    if before >= MOST_PICTURES {
        return None;
    }
    let bytes = STANDARD.decode(data.trim()).ok()?;
    ToolMedia::of("picture", bytes).filter(ToolMedia::is_image)
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
        assert!(!shown.raw.failed && shown.pictures.is_empty());
        let text = shown.raw.json["result"].as_str().expect("text");
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
        )
        .raw;
        assert!(failed.failed && failed.json["error"] == "no");
        let structured = answer(&json!({"structuredContent": {"a": 1}}), &redactor(), 99);
        assert_eq!(structured.raw.json["result"], r#"{"a":1}"#);
        let long = answer(
            &json!({"content": [{"type": "text", "text": "ä".repeat(50)}]}),
            &redactor(),
            10,
        );
        let text = long.raw.json["result"].as_str().expect("text");
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
            assert!(shown.raw.json.get("result").is_some(), "{odd}");
        }
    }

    #[test]
    fn pictures_are_known_by_their_bytes_and_only_a_few_are_shown() {
        let image = |bytes: &[u8]| json!({"type": "image", "mimeType": "image/png", "data": STANDARD.encode(bytes)});
        let gif = image(b"GIF89a");
        let none = image(b"<svg onload=x>");
        let shown = answer(&json!({"content": [none, gif]}), &redactor(), 1000);
        let kinds: Vec<_> = shown.pictures.iter().map(|it| it.media_type).collect();
        assert_eq!(kinds, ["image/gif"]);
        assert_eq!(
            shown.raw.json["result"],
            "[image of type image/png, 20 characters of base64, not shown]\n[picture 1 of type image/gif, shown beside this]"
        );
        let many = vec![gif; MOST_PICTURES + 2];
        let shown = answer(&json!({"content": many}), &redactor(), 1000);
        assert_eq!(shown.pictures.len(), MOST_PICTURES);
        let text = shown.raw.json["result"].as_str().expect("text");
        assert_eq!(text.matches("not shown").count(), 2, "{text}");
    }
}
