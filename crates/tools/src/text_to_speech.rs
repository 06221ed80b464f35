//! `text_to_speech`: words spoken by the endpoint that the operator chose, as a file in the workspace.

use std::sync::Arc;

use hermetic_services::SpeechService;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::made_file::{made_answer, new_path};
use crate::toolbox::RawAnswer;
use crate::workplace::paid;
use crate::{ConversationTools, ServiceUse, ToolDescription};

pub(crate) const NAME: &str = "text_to_speech";

/// Who speaks.
#[derive(Clone, Debug)]
pub struct SpeechTool {
    service: SpeechService,
    slots: Arc<Semaphore>,
}

/// Recordings at once, of all conversations.
const AT_ONCE: usize = 4;
/// Below the workspace.
const FOLDER: &str = "speech";

impl SpeechTool {
    pub fn new(service: SpeechService) -> Self {
        Self {
            service,
            slots: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

pub(crate) fn description() -> ToolDescription {
    ToolDescription {
        name: NAME.into(),
        description: format!(
            "Speaks a text of up to {} characters and puts the recording into the workspace as MP3. To send it, \
             write media_tag as a line of its own.",
            SpeechService::MOST_CHARS
        ),
        schema: json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "what is to be said"},
                "output_path": {
                    "type": "string",
                    "description": "a file below the workspace that ends in .mp3; one is named for you if left out",
                },
            },
            "required": ["text"],
        }),
    }
}

impl ConversationTools<'_> {
    pub(crate) async fn call_speech(
        &self,
        tool: &SpeechTool,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> RawAnswer {
        let speaking = self.speak(tool, arguments, stop);
        let spoken = stop.run_until_cancelled(speaking).await;
        made_answer(spoken, |error| json!({"success": false, "error": error}))
    }

    async fn speak(
        &self,
        tool: &SpeechTool,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> Result<Value, String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::trim);
        let words = text("text").filter(|words| !words.is_empty());
        let words = words.ok_or("text must say what is to be said")?;
        let characters = words.chars().count();
        if characters > SpeechService::MOST_CHARS {
            let most = SpeechService::MOST_CHARS;
            return Err(format!(
                "the text has {characters} characters, and {most} are spoken at once; speak it in parts"
            ));
        }
        if self.holds_secret(words) {
            return Err("the text holds a secret, and was sent to nobody".to_owned());
        }
        let workspace = self.kit.terminal.workspace();
        let path = place(text("output_path"), workspace)?;
        // What a sandbox without a way out knows is told to nobody who speaks either.
        let reach = self.workplace.egress().await;
        reach.map_err(|none| none.to_string())?;
        // Before it is paid for: there has to be a place for it.
        let held = self.sandbox(stop).await?;
        let slot = tool.slots.acquire().await;
        let _slot = slot.map_err(|_| "nothing more is spoken".to_owned())?;
        let used = ServiceUse::Speech { characters };
        let audio = paid(self.workplace, used, NAME, tool.service.speak(words)).await?;
        self.put(&held, &path, &audio).await?;
        let file = format!("{workspace}/{path}");
        Ok(json!({
            "success": true,
            "file_path": file,
            "media_tag": format!("MEDIA:{file}"),
            "model": tool.service.model(),
        }))
    }
}

/// The path below the workspace.
fn place(wanted: Option<&str>, workspace: &str) -> Result<String, String> {
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
        return Ok(new_path(FOLDER, "mp3"));
    };
    let inside = wanted.strip_prefix(workspace);
    let path = inside.map_or(wanted, |path| path.trim_start_matches('/'));
    let is_below = !path.starts_with('/')
        && !path.contains('\0')
        && path.split('/').all(|name| !matches!(name, "" | "." | ".."));
    match is_below && path.len() <= 200 && path.ends_with(".mp3") {
        true => Ok(path.to_owned()),
        false => {
            Err("output_path must name a file below the workspace that ends in .mp3".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_lies_below_the_workspace() {
        let here = |wanted: &str| place(Some(wanted), "/workspace");
        assert_eq!(here("a/b.mp3").unwrap(), "a/b.mp3");
        assert_eq!(here("/workspace/b.mp3").unwrap(), "b.mp3");
        assert!(place(None, "/workspace").unwrap().starts_with("speech/"));
        for wrong in [
            "/etc/b.mp3",
            "../b.mp3",
            "a/../../b.mp3",
            "/workspace/../b.mp3",
            "b.wav",
            "a//b.mp3",
            "b\0.mp3",
        ] {
            assert!(here(wrong).is_err(), "{wrong:?}");
        }
    }
}
