//! What a message says, as the endpoint reads it.
//!
//! Text goes out as one string, which every server of this dialect reads. A list of parts is for what
//! holds an image; files are named and not shown.

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
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
pub(super) struct ImageUrl {
    url: String,
}

impl<'a> MessageContent<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(text.into())
    }

    /// Images that came with tool results, if there are any.
    pub(super) fn of_images(images: Vec<ImageUrl>) -> Option<Self> {
        let intro = ContentPart::Text {
            text: "[The images of the tool results above, in their order.]".into(),
        };
        let shown = images
            .into_iter()
            .map(|image_url| ContentPart::ImageUrl { image_url });
        let parts: Vec<_> = std::iter::once(intro).chain(shown).collect();
        (parts.len() > 1).then_some(Self::Parts(parts))
    }
}

pub(super) fn of_user(parts: &[MessagePart]) -> MessageContent<'_> {
    let parts: Vec<_> = parts.iter().map(content_part).collect();
    if parts
        .iter()
        .any(|part| matches!(part, ContentPart::ImageUrl { .. }))
    {
        return MessageContent::Parts(parts);
    }
    one_text(parts.into_iter().filter_map(|part| match part {
        ContentPart::Text { text } => Some(text),
        ContentPart::ImageUrl { .. } => None,
    }))
}

/// The text of a result. Its images are added to `images`.
pub(super) fn of_result<'a>(
    parts: &'a [MessagePart],
    images: &mut Vec<ImageUrl>,
) -> MessageContent<'a> {
    one_text(parts.iter().map(|part| match content_part(part) {
        ContentPart::Text { text } => text,
        ContentPart::ImageUrl { image_url } => {
            images.push(image_url);
            format!("[image {} follows]", images.len()).into()
        }
    }))
}

fn content_part(part: &MessagePart) -> ContentPart<'_> {
    let text = match part {
        MessagePart::Text { text } => Cow::Borrowed(text.as_str()),
        MessagePart::Image(image) => match data_url(image) {
            Some(url) => {
                return ContentPart::ImageUrl {
                    image_url: ImageUrl { url },
                };
            }
            None => image.described().into(),
        },
        MessagePart::File(file) => file.described().into(),
    };
    ContentPart::Text { text }
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
