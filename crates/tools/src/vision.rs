//! `vision_analyze`, and `read_file` of what is no text: pictures and PDF files, handed to the model as they are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::toolbox::RawAnswer;
use crate::{ConversationTools, ToolDescription, ToolMedia};

pub(crate) const NAME: &str = "vision_analyze";

/// What a message can hold of a picture or a file; larger ones stay where they are.
const MOST_BYTES: usize = 1 << 20;
const QUESTION_CHARS: usize = 4000;

pub(crate) fn description() -> ToolDescription {
    ToolDescription {
        name: NAME.into(),
        description: "Shows you a picture, or tells you what is on it where you cannot see: PNG, JPEG, GIF or \
             WebP, up to 1 MiB. image_url is a path in the workspace, an https:// address that this \
             conversation may reach, or a data: URL."
            .to_owned(),
        schema: json!({
            "type": "object",
            "properties": {
                "image_url": {"type": "string", "description": "path, address or data: URL"},
                "question": {"type": "string", "description": "what you want to know of it"},
            },
            "required": ["image_url", "question"],
        }),
    }
}

impl ConversationTools<'_> {
    pub(crate) async fn call_vision(
        &self,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> (RawAnswer, Vec<ToolMedia>) {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or("");
        let source = text("image_url").trim();
        let loaded = self.load_picture(source, stop).await;
        let picture = loaded.and_then(|(name, bytes)| match ToolMedia::of(&name, bytes) {
            Some(media) if media.is_image() => Ok(media),
            _ => Err("it is no PNG, JPEG, GIF or WebP picture".to_owned()),
        });
        match picture {
            Ok(picture) => {
                let question: String = text("question").chars().take(QUESTION_CHARS).collect();
                let json = json!({
                    "success": true,
                    "image": picture.name,
                    "media_type": picture.media_type,
                    "bytes": picture.bytes.len(),
                    "question": question,
                });
                (
                    RawAnswer {
                        json,
                        failed: false,
                    },
                    vec![picture],
                )
            }
            Err(error) => {
                let json = json!({"success": false, "error": error});
                (RawAnswer { json, failed: true }, Vec::new())
            }
        }
    }

    /// Its name and its bytes, from wherever it is.
    async fn load_picture(
        &self,
        source: &str,
        stop: &CancellationToken,
    ) -> Result<(String, Vec<u8>), String> {
        if let Some(data) = source.strip_prefix("data:") {
            let bytes = data
                .split_once(";base64,")
                .map(|(_, text)| STANDARD.decode(text.trim()));
            let bytes = bytes.and_then(Result::ok);
            let bytes = bytes.ok_or("the data: URL is not in base64")?;
            return bounded(bytes).map(|bytes| ("picture".to_owned(), bytes));
        }
        if source.starts_with("http://") || source.starts_with("https://") {
            if self.holds_secret(source) {
                return Err("the address holds a secret; nothing was asked for".to_owned());
            }
            let web = &self.kit.web;
            let fetched = web
                .picture(source, self.workplace, MOST_BYTES, stop)
                .await?;
            return Ok((source.chars().take(200).collect(), fetched));
        }
        let path = source.strip_prefix("file://").unwrap_or(source);
        let read = self.read_whole(path, stop).await?;
        let bytes = read.ok_or_else(too_large)?;
        Ok((path.to_owned(), bytes))
    }

    /// A picture or a PDF file that `read_file` was asked for; nothing for everything else.
    pub(crate) async fn read_media(
        &self,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> Option<(RawAnswer, Vec<ToolMedia>)> {
        let path = arguments.get("path").and_then(Value::as_str)?;
        let ends = |end: &str| path.to_ascii_lowercase().ends_with(end);
        if ![".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"]
            .iter()
            .any(|end| ends(end))
        {
            return None;
        }
        // Whatever is wrong with it is told by the tool for texts.
        let bytes = self.read_whole(path, stop).await.ok()?;
        let Some(bytes) = bytes else {
            let json = json!({"error": too_large(), "is_binary": true});
            return Some((RawAnswer { json, failed: true }, Vec::new()));
        };
        let media = ToolMedia::of(path, bytes)?;
        let json = json!({
            "content": "[shown beside this, where the model takes such files; a script is not shown any]",
            "media_type": media.media_type,
            "file_size": media.bytes.len(),
        });
        Some((
            RawAnswer {
                json,
                failed: false,
            },
            vec![media],
        ))
    }

    async fn read_whole(
        &self,
        path: &str,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<u8>>, String> {
        let files = &self.kit.files;
        files
            .read_whole(path, MOST_BYTES, self.workplace, self.ask, stop)
            .await
    }
}

fn bounded(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    match bytes.len() > MOST_BYTES {
        true => Err(too_large()),
        false => Ok(bytes),
    }
}

fn too_large() -> String {
    format!(
        "it has more than {MOST_BYTES} bytes, which is more than a message holds; make it smaller in the terminal"
    )
}
