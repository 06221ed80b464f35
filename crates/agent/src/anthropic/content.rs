//! Blocks of content, as this dialect writes them.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::tool_names::{arguments_object, plain_id, usable_name};
use crate::{AssistantPart, CallId, MediaPart, MediaSource, MessagePart};

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum AnthropicBlock<'a> {
    Ours(OurBlock<'a>),
    /// As the provider made it.
    Opaque(&'a Value),
}

#[derive(Serialize)]
pub(super) struct OurBlock<'a> {
    #[serde(flatten)]
    kind: BlockKind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockKind<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: AnthropicSource<'a>,
    },
    Document {
        source: AnthropicSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: String,
        input: Map<String, Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        content: Vec<AnthropicBlock<'a>>,
    },
}

#[derive(Serialize)]
pub(super) struct AnthropicSource<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

/// A mark: all up to here may come from the provider's cache next time.
#[derive(Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    r#type: &'static str,
}

impl CacheControl {
    pub(super) const EPHEMERAL: Self = Self {
        r#type: "ephemeral",
    };
}

impl<'a> AnthropicBlock<'a> {
    fn plain(kind: BlockKind<'a>) -> Self {
        Self::Ours(OurBlock {
            kind,
            cache_control: None,
        })
    }

    /// A block of text that says nothing is refused, and so is the whole request.
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Option<Self> {
        let text = text.into();
        let says_something = !text.trim().is_empty();
        says_something.then(|| Self::plain(BlockKind::Text { text }))
    }

    pub(super) fn of_result(call: &'a CallId, failed: bool, parts: &'a [MessagePart]) -> Self {
        Self::plain(BlockKind::ToolResult {
            tool_use_id: plain_id(call),
            is_error: failed,
            content: parts.iter().filter_map(Self::of_part).collect(),
        })
    }

    pub(super) fn of_part(part: &'a MessagePart) -> Option<Self> {
        let shown = match part {
            MessagePart::Text { text } => return Self::text(text.as_str()),
            MessagePart::Image(image) => (
                image,
                image_source(image).map(|source| BlockKind::Image { source }),
            ),
            MessagePart::File(file) => {
                let title = file.name.as_deref();
                let document = |source| BlockKind::Document { source, title };
                (file, pdf_source(file).map(document))
            }
        };
        match shown {
            (_, Some(kind)) => Some(Self::plain(kind)),
            (media, None) => Self::text(media.described()),
        }
    }

    /// Nothing for what only another provider understands, nor for images that a model made.
    pub(super) fn of_assistant(part: &'a AssistantPart, provider: &str) -> Option<Self> {
        match part {
            AssistantPart::Text { text } => Self::text(text.as_str()),
            AssistantPart::ToolCall(call) => Some(Self::plain(BlockKind::ToolUse {
                id: plain_id(&call.id),
                name: usable_name(&call.name),
                input: arguments_object(call),
            })),
            AssistantPart::Opaque(part) => part.for_provider(provider).map(Self::Opaque),
            AssistantPart::Image(_) => None,
        }
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self, Self::Ours(block) if matches!(block.kind, BlockKind::ToolUse { .. }))
    }

    pub(super) fn mark_for_cache(&mut self) {
        // What the provider made goes back as it came: with another field its signature would not
        // fit.
        if let Self::Ours(block) = self {
            block.cache_control = Some(CacheControl::EPHEMERAL);
        }
    }
}

fn image_source(image: &MediaPart) -> Option<AnthropicSource<'_>> {
    const TAKEN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    source(image).filter(|source| TAKEN.contains(&source.media_type))
}

fn pdf_source(file: &MediaPart) -> Option<AnthropicSource<'_>> {
    source(file).filter(|source| source.media_type == "application/pdf")
}

fn source(media: &MediaPart) -> Option<AnthropicSource<'_>> {
    match &media.source {
        MediaSource::Inline(bytes) => Some(AnthropicSource {
            r#type: "base64",
            media_type: &media.media_type,
            data: bytes.as_base64(),
        }),
        MediaSource::Workspace(_) => None,
    }
}
