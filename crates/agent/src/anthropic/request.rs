//! The request as the endpoint reads it.

use serde::Serialize;
use serde_json::Value;

use super::content::{AnthropicBlock, CacheControl};
use super::thinking::{OutputConfig, ThinkingSettings, max_tokens, output_config, thinking};
use crate::endpoint::{EndpointSettings, written};
use crate::{Message, ModelRequest, ToolSpec};

pub(crate) fn body(settings: &EndpointSettings, ask: ModelRequest<'_>) -> String {
    let mut body = AnthropicBody {
        model: &settings.model,
        max_tokens: max_tokens(settings),
        system: system(ask.messages),
        messages: turns(ask.messages, &settings.provider()),
        tools: ask.tools.iter().map(tool).collect(),
        stream: settings.stream,
        thinking: thinking(settings),
        output_config: output_config(settings),
        temperature: settings.temperature,
    };
    // Tools were called without a thought of this model, by a fallback or before thinking was switched on.
    // The endpoint refuses to think on from there.
    if matches!(body.thinking, Some(ThinkingSettings::Enabled { .. }))
        && body.calls_without_a_thought()
    {
        body.thinking = None;
    }
    // A model that thinks has a temperature of its own.
    if matches!(
        body.thinking,
        Some(ThinkingSettings::Enabled { .. } | ThinkingSettings::Adaptive)
    ) {
        body.temperature = None;
    }
    // Last, when it is certain what is sent: a mark on something that changes is paid for and never
    // used.
    if settings.cache_prompts {
        body.mark_for_cache();
    }
    written(settings, &body)
}

#[derive(Serialize)]
struct AnthropicBody<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<AnthropicBlock<'a>>,
    messages: Vec<RoleTurn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<OfferedTool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingSettings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
}

/// All that one side said before the other did.
#[derive(Serialize)]
struct RoleTurn<'a> {
    role: &'static str,
    content: Vec<AnthropicBlock<'a>>,
}

#[derive(Serialize)]
struct OfferedTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl AnthropicBody<'_> {
    fn calls_without_a_thought(&self) -> bool {
        let last = self.messages.iter().rfind(|turn| turn.role == "assistant");
        last.is_some_and(|turn| {
            let thinks_first = matches!(turn.content.first(), Some(AnthropicBlock::Opaque(_)));
            !thinks_first && turn.content.iter().any(AnthropicBlock::is_call)
        })
    }

    /// Four marks are allowed. Tools and system prompt are the same for all conversations, the last
    /// message is where the next request goes on, and the one before it is where this one does.
    fn mark_for_cache(&mut self) {
        if let Some(tool) = self.tools.last_mut() {
            tool.cache_control = Some(CacheControl::EPHEMERAL);
        }
        if let Some(block) = self.system.last_mut() {
            block.mark_for_cache();
        }
        let asked = self.messages.iter_mut().filter(|turn| turn.role == "user");
        for turn in asked.rev().take(2) {
            if let Some(block) = turn.content.last_mut() {
                block.mark_for_cache();
            }
        }
    }
}

fn system(messages: &[Message]) -> Vec<AnthropicBlock<'_>> {
    let texts = messages.iter().filter_map(|message| match message {
        Message::System { text } => AnthropicBlock::text(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The messages in order, results and what a person said after them as one: the dialect wants the sides
/// to take turns, and all results of a message's calls in the next.
fn turns<'a>(messages: &'a [Message], provider: &str) -> Vec<RoleTurn<'a>> {
    let mut turns: Vec<RoleTurn<'a>> = Vec::new();
    for message in messages {
        let (role, content): (_, Vec<_>) = match message {
            Message::System { .. } => continue,
            Message::User { parts } => (
                "user",
                parts.iter().filter_map(AnthropicBlock::of_part).collect(),
            ),
            Message::Tool {
                call_id,
                failed,
                parts,
            } => (
                "user",
                vec![AnthropicBlock::of_result(call_id, *failed, parts)],
            ),
            Message::Assistant { parts } => {
                let blocks = parts
                    .iter()
                    .filter_map(|part| AnthropicBlock::of_assistant(part, provider));
                ("assistant", blocks.collect())
            }
        };
        match turns.last_mut() {
            _ if content.is_empty() => {}
            Some(turn) if turn.role == role => turn.content.extend(content),
            _ => turns.push(RoleTurn { role, content }),
        }
    }
    turns
}

fn tool(spec: &ToolSpec) -> OfferedTool<'_> {
    OfferedTool {
        name: &spec.name,
        description: &spec.description,
        input_schema: &spec.schema,
        cache_control: None,
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
