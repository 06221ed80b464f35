//! What a message says, as the endpoint reads it.
//!
//! Text goes out as one string, which every server of this dialect reads. A list of parts is for what
//! holds an image, a file or a mark for a cache. Files are shown where it is known that they are understood, and
//! named elsewhere.

use std::borrow::Cow;

use serde::Serialize;

use crate::{MediaPart, MediaSource, MessagePart};

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum MessageContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
    File {
        file: InlineFile<'a>,
    },
}

/// A mark: all up to here may come from the provider's cache next time.
#[derive(Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    r#type: &'static str,
}

#[derive(Serialize)]
pub(super) struct InlineFile<'a> {
    filename: &'a str,
    file_data: String,
}

#[derive(Serialize)]
pub(super) struct ImageUrl {
    url: String,
}

impl<'a> MessageContent<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(text.into())
    }

    /// Images and files that came with tool results, if there are any.
    pub(super) fn of_shown(shown: Vec<ContentPart<'a>>) -> Option<Self> {
        let intro =
            ContentPart::text("[The images and files of the tool results above, in their order.]");
        let parts: Vec<_> = std::iter::once(intro).chain(shown).collect();
        (parts.len() > 1).then_some(Self::Parts(parts))
    }

    /// The same with a mark at its end. What says nothing is refused with one, and stays as it is.
    pub(super) fn marked_for_cache(self) -> Self {
        let mut parts = match self {
            Self::Text(text) if text.trim().is_empty() => return Self::Text(text),
            Self::Text(text) => vec![ContentPart::text(text)],
            Self::Parts(parts) => parts,
        };
        let mut texts = parts.iter_mut().rev();
        let last = texts.find_map(|part| match part {
            ContentPart::Text {
                text,
                cache_control,
            } if !text.trim().is_empty() => Some(cache_control),
            _ => None,
        });
        if let Some(mark) = last {
            *mark = Some(CacheControl {
                r#type: "ephemeral",
            });
        }
        Self::Parts(parts)
    }
}

impl<'a> ContentPart<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text {
            text: text.into(),
            cache_control: None,
        }
    }
}

pub(super) fn of_user(parts: &[MessagePart], shows_files: bool) -> MessageContent<'_> {
    let parts = parts.iter().map(|part| content_part(part, shows_files));
    let parts: Vec<_> = parts.collect();
    let is_text = |part: &ContentPart<'_>| matches!(part, ContentPart::Text { .. });
    if !parts.iter().all(is_text) {
        return MessageContent::Parts(parts);
    }
    one_text(parts.into_iter().filter_map(|part| match part {
        ContentPart::Text { text, .. } => Some(text),
        ContentPart::ImageUrl { .. } | ContentPart::File { .. } => None,
    }))
}

/// The text of a result. Its images and files are added to `shown`.
pub(super) fn of_result<'a>(
    parts: &'a [MessagePart],
    shows_files: bool,
    shown: &mut Vec<ContentPart<'a>>,
) -> MessageContent<'a> {
    one_text(parts.iter().map(|part| {
        let (what, part) = match content_part(part, shows_files) {
            ContentPart::Text { text, .. } => return text,
            image @ ContentPart::ImageUrl { .. } => ("image", image),
            file @ ContentPart::File { .. } => ("file", file),
        };
        shown.push(part);
        format!("[{what} {} follows]", shown.len()).into()
    }))
}

fn content_part(part: &MessagePart, shows_files: bool) -> ContentPart<'_> {
    match part {
        MessagePart::Text { text } => ContentPart::text(text.as_str()),
        MessagePart::Image(image) => match data_url(image) {
            Some(url) => ContentPart::ImageUrl {
                image_url: ImageUrl { url },
            },
            None => ContentPart::text(image.described()),
        },
        MessagePart::File(file) => match shown_file(file).filter(|_| shows_files) {
            Some(file_data) => ContentPart::File {
                file: InlineFile {
                    filename: file.name.as_deref().unwrap_or("file.pdf"),
                    file_data,
                },
            },
            None => ContentPart::text(file.described()),
        },
    }
}

fn shown_file(file: &MediaPart) -> Option<String> {
    data_url(file).filter(|_| file.media_type == "application/pdf")
}

fn data_url(image: &MediaPart) -> Option<String> {
    match &image.source {
        MediaSource::Inline(bytes) => Some(format!(
            "data:{};base64,{}",
            image.media_type,
            bytes.as_base64()
        )),
        MediaSource::Workspace(_) => None,
    }
}

fn one_text<'a>(mut texts: impl Iterator<Item = Cow<'a, str>>) -> MessageContent<'a> {
    let first = texts.next().unwrap_or_default();
    let text = texts.fold(first, |so_far, next| format!("{so_far}\n{next}").into());
    MessageContent::Text(text)
}
