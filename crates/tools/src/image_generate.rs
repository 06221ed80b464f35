//! `image_generate`: a picture from words, made by the endpoint that the operator chose and put into the
//! workspace.

use std::sync::Arc;

use hermetic_services::{ImageService, ImageShape};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::made_file::{made_answer, new_path};
use crate::toolbox::RawAnswer;
use crate::workplace::paid;
use crate::{ConversationTools, ServiceUse, ToolDescription, ToolMedia};

pub(crate) const NAME: &str = "image_generate";

/// Who makes pictures.
#[derive(Clone, Debug)]
pub struct ImageTool {
    service: ImageService,
    slots: Arc<Semaphore>,
}

/// Pictures at once, of all conversations: one takes a minute and some ten megabytes.
const AT_ONCE: usize = 4;
const PROMPT_CHARS: usize = 4000;
/// Below the workspace.
const FOLDER: &str = "images";

impl ImageTool {
    pub fn new(service: ImageService) -> Self {
        Self {
            service,
            slots: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

pub(crate) fn description() -> ToolDescription {
    ToolDescription {
        name: NAME.into(),
        description: "Makes a picture from a description and puts it into the workspace. To send it, write a \
             line of its own that says MEDIA: and the path in `image`. A picture that is there already \
             cannot be changed with this."
            .to_owned(),
        schema: json!({
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "description": "what is to be seen, in detail"},
                "aspect_ratio": {
                    "type": "string", "enum": ["landscape", "square", "portrait"],
                    "default": "landscape",
                },
            },
            "required": ["prompt"],
        }),
    }
}

impl ConversationTools<'_> {
    pub(crate) async fn call_image(
        &self,
        tool: &ImageTool,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> RawAnswer {
        let making = self.make_image(tool, arguments, stop);
        let made = stop.run_until_cancelled(making).await;
        made_answer(
            made,
            |error| json!({"success": false, "image": null, "error": error}),
        )
    }

    async fn make_image(
        &self,
        tool: &ImageTool,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> Result<Value, String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::trim);
        let prompt = text("prompt").filter(|prompt| !prompt.is_empty());
        let prompt = prompt.ok_or("prompt must say what is to be seen")?;
        if prompt.chars().count() > PROMPT_CHARS {
            return Err(format!(
                "the prompt is longer than {PROMPT_CHARS} characters"
            ));
        }
        if self.holds_secret(prompt) {
            return Err("the prompt holds a secret, and was sent to nobody".to_owned());
        }
        let shape = ImageShape::named(text("aspect_ratio").unwrap_or("landscape"));
        let shape = shape.ok_or("aspect_ratio must be landscape, square or portrait")?;
        // What a sandbox without a way out knows is told to nobody who makes pictures either.
        let reach = self.workplace.egress().await;
        reach.map_err(|none| none.to_string())?;
        // Before it is paid for: there has to be a place for it.
        let held = self.sandbox(stop).await?;
        let slot = tool.slots.acquire().await;
        let _slot = slot.map_err(|_| "nothing more is made".to_owned())?;
        let asking = tool.service.generate(prompt, shape);
        let image = paid(self.workplace, ServiceUse::Picture, NAME, asking).await?;
        let name = ToolMedia::of(NAME, image.bytes).filter(ToolMedia::is_image);
        let picture = name.ok_or("the endpoint sent something that is no picture")?;
        let ending = picture.media_type.trim_start_matches("image/");
        let path = new_path(FOLDER, ending);
        let workspace = self.kit.terminal.workspace();
        self.put(&held, &path, &picture.bytes).await?;
        Ok(json!({
            "success": true,
            "image": format!("{workspace}/{path}"),
            "model": tool.service.model(),
        }))
    }
}
