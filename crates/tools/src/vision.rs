//! `vision_analyze`, and `read_file` of what is no text: pictures and PDF files, handed to the model as they are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hermetic_pictures::{MOST_READ_BYTES, ReadingSlot, media_type};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::files::WholeFile;
use crate::mcp::ServerAnswer;
use crate::toolbox::RawAnswer;
use crate::{ConversationTools, ToolDescription, ToolMedia};

pub(crate) const NAME: &str = "vision_analyze";

/// What a message can hold of a picture or a file. Larger pictures are made smaller.
const MOST_SHOWN_BYTES: usize = 1 << 20;
const QUESTION_CHARS: usize = 4000;

pub(crate) fn description() -> ToolDescription {
    ToolDescription {
        name: NAME.into(),
        description: "Shows you a picture, or tells you what is on it where you cannot see: PNG, JPEG, GIF or \
             WebP, made smaller where it is large. image_url is a path in the workspace, an https:// address that this \
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
        let shown = async {
            let (name, loaded) = self.load_picture(source, stop).await?;
            let bytes = self.small_enough(loaded, stop).await?;
            match ToolMedia::of(&name, bytes) {
                Some(media) if media.is_image() => Ok(media),
                _ => Err("it is no PNG, JPEG, GIF or WebP picture".to_owned()),
            }
        };
        match shown.await {
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
    ) -> Result<(String, WholeFile), String> {
        if let Some(data) = source.strip_prefix("data:") {
            let bytes = data
                .split_once(";base64,")
                .map(|(_, text)| STANDARD.decode(text.trim()));
            let bytes = bytes.and_then(Result::ok);
            let bytes = bytes.ok_or("the data: URL is not in base64")?;
            return Ok(("picture".to_owned(), WholeFile { bytes, slot: None }));
        }
        if source.starts_with("http://") || source.starts_with("https://") {
            if self.holds_secret(source) {
                return Err("the address holds a secret; nothing was asked for".to_owned());
            }
            let web = &self.kit.web;
            let slot = self.reading_slot(stop).await?;
            let bytes = web
                .picture(source, self.workplace, MOST_READ_BYTES, stop)
                .await?;
            let slot = Some(slot);
            let name = source.chars().take(200).collect();
            return Ok((name, WholeFile { bytes, slot }));
        }
        let path = source.strip_prefix("file://").unwrap_or(source);
        let read = self.read_whole(path, stop).await?;
        let read = read.ok_or_else(too_large)?;
        Ok((path.to_owned(), read))
    }

    /// What an MCP server answered, with its pictures made small enough. What is said of one that cannot be shown
    /// stands beside the answer.
    pub(crate) async fn with_pictures(
        &self,
        answered: ServerAnswer,
        stop: &CancellationToken,
    ) -> (RawAnswer, Vec<ToolMedia>) {
        let ServerAnswer { mut raw, pictures } = answered;
        let (mut shown, mut not_shown) = (Vec::new(), Vec::new());
        for (index, picture) in pictures.into_iter().enumerate() {
            let bytes = picture.bytes;
            let loaded = WholeFile { bytes, slot: None };
            let small = self.small_enough(loaded, stop).await;
            let small = small.map(|bytes| ToolMedia::of(&picture.name, bytes));
            match small {
                Ok(Some(small)) => shown.push(small),
                Ok(None) => not_shown.push(format!("picture {}: it cannot be shown", index + 1)),
                Err(why) => not_shown.push(format!("picture {}: {why}", index + 1)),
            }
        }
        if let (false, Some(fields)) = (not_shown.is_empty(), raw.json.as_object_mut()) {
            fields.insert("not_shown".to_owned(), json!(not_shown));
        }
        (raw, shown)
    }

    /// The bytes themselves where a message holds them, else those of a smaller picture.
    async fn small_enough(
        &self,
        loaded: WholeFile,
        stop: &CancellationToken,
    ) -> Result<Vec<u8>, String> {
        let WholeFile { bytes, slot } = loaded;
        if bytes.len() <= MOST_SHOWN_BYTES {
            return Ok(bytes);
        }
        let slot = match slot {
            Some(slot) => slot,
            None => self.reading_slot(stop).await?,
        };
        let shrinking = self
            .kit
            .files
            .pictures()
            .shrink(bytes, MOST_SHOWN_BYTES, slot);
        let small = stop.run_until_cancelled(shrinking).await;
        let small = small.ok_or_else(|| "interrupted".to_owned())?;
        small
            .map(|small| small.bytes)
            .map_err(|error| format!("the picture cannot be shown: {error}"))
    }

    async fn reading_slot(&self, stop: &CancellationToken) -> Result<ReadingSlot, String> {
        let slot = self.kit.files.pictures().reading_slot();
        let slot = stop.run_until_cancelled(slot).await;
        slot.ok_or_else(|| "interrupted".to_owned())
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
        let read = self.read_whole(path, stop).await.ok()?;
        let refused = |error: String| {
            let json = json!({"error": error, "is_binary": true});
            Some((RawAnswer { json, failed: true }, Vec::new()))
        };
        let Some(read) = read else {
            return refused(too_large());
        };
        let size = read.bytes.len();
        let is_shown = self.shows_files && size <= MOST_SHOWN_BYTES;
        if !is_shown && media_type(&read.bytes) == Some("application/pdf") {
            // Its words are lines of a text, which the tool for texts shows.
            return None;
        }
        let bytes = match self.small_enough(read, stop).await {
            Ok(bytes) => bytes,
            Err(error) => return refused(error),
        };
        let media = ToolMedia::of(path, bytes)?;
        let json = json!({
            "content": "[shown beside this, where the model takes such files; a script is not shown any]",
            "media_type": media.media_type,
            "file_size": size,
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
    ) -> Result<Option<WholeFile>, String> {
        let files = &self.kit.files;
        files
            .read_whole(path, MOST_SHOWN_BYTES, self.workplace, self.ask, stop)
            .await
    }
}

fn too_large() -> String {
    format!(
        "it has more than {MOST_READ_BYTES} bytes, which is more than is read; make it smaller in the terminal"
    )
}
