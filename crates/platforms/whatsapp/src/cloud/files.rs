//! Files both ways.
//!
//! A file that people sent is fetched in two steps, its address and then its bytes, both with the token.
//! One of ours is uploaded first and then sent by its id.

use std::time::Duration;

use futures::TryStreamExt as _;
use hermetic_chat::{
    AttachmentStream, DownloadError, OutgoingFile, SendError, SendFailure, TextLimit,
    bounded_download,
};
use hermetic_types::{Attachment, ChatPlace, MessageId};
use reqwest::multipart::{Form, Part};
use serde::Deserialize;
use serde_json::json;

use super::WhatsAppCloud;
use super::graph::GraphCallError;
use super::media_kind::MediaKind;
use super::send::MessageReferences;
use crate::dialect::to_whatsapp;

/// Documents; pictures, sound and films are smaller.
pub(super) const FILE_BYTES: u64 = 100 << 20;
const CAPTION: TextLimit = TextLimit::utf16(1024);
const TRANSFER: Duration = Duration::from_secs(300);

impl WhatsAppCloud {
    pub(super) async fn upload_and_send(
        &self,
        place: &ChatPlace,
        file: &OutgoingFile,
    ) -> Result<MessageId, SendError> {
        check(file)?;
        let kind = MediaKind::of(file);
        let uploaded = self
            .patiently(&place.chat, || {
                let form = form(file, kind);
                self.graph.upload::<RawMediaId>(&self.media, form, TRANSFER)
            })
            .await;
        let uploaded = uploaded.map_err(|error| match error {
            // An upload alone shows nobody anything, so it may be done again.
            GraphCallError::Broken(_) | GraphCallError::Garbled { .. } => {
                SendFailure::NotSent(error.into())
            }
            error => error.into(),
        })?;
        let mut content = json!({ "id": uploaded.id });
        if kind.takes_a_name() {
            content["filename"] = json!(bare_name(&file.name));
        }
        if let Some(caption) = &file.caption {
            content["caption"] = json!(to_whatsapp(caption.as_str()));
        }
        let sent = self
            .deliver(place, (kind.name(), content), MessageReferences::default())
            .await;
        sent.map_err(SendError::from)
    }

    pub(super) async fn fetch(
        &self,
        attachment: &Attachment,
        limit: u64,
    ) -> Result<AttachmentStream, DownloadError> {
        let too_large = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes > limit);
        if too_large(attachment.bytes) {
            return Err(DownloadError::TooLarge { limit });
        }
        // Becomes part of an address: nothing that could bend it.
        let id = attachment.id.as_str();
        if !id.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(refused("this is no file of WhatsApp's"));
        }
        let path = format!("{id}?phone_number_id={}", self.phone_number_id);
        let file: RawMediaFile = self.graph.get(&path).await.map_err(failed)?;
        if too_large(file.file_size) {
            return Err(DownloadError::TooLarge { limit });
        }
        let response = match self.graph.media(&file.url).await {
            Some(response) => response.map_err(failed)?,
            None => return Err(refused("the file is not where Meta keeps files")),
        };
        if !response.status().is_success() {
            return Err(refused(&format!("status {}", response.status().as_u16())));
        }
        if too_large(response.content_length()) {
            return Err(DownloadError::TooLarge { limit });
        }
        Ok(bounded_download(
            response.bytes_stream().map_err(reqwest::Error::without_url),
            limit,
        ))
    }
}

fn check(file: &OutgoingFile) -> Result<(), SendFailure> {
    let most = usize::try_from(FILE_BYTES).unwrap_or(usize::MAX);
    let long_caption = |caption: &hermetic_chat::OutgoingText| !CAPTION.fits(caption.as_str());
    let (limit, unit) = if file.bytes.is_empty() {
        return Err(SendFailure::Empty);
    } else if file.bytes.len() > most {
        (most, "bytes")
    } else if file.caption.as_ref().is_some_and(long_caption) {
        (CAPTION.length, "characters of caption")
    } else {
        return Ok(());
    };
    Err(SendFailure::TooLong { limit, unit })
}

fn form(file: &OutgoingFile, kind: MediaKind) -> Form {
    let size = file.bytes.len() as u64;
    let part = Part::stream_with_length(file.bytes.clone(), size).file_name(bare_name(&file.name));
    // The kinds of a table are all well-formed.
    let part = part
        .mime_str(kind.mime())
        .unwrap_or_else(|_| Part::bytes(file.bytes.to_vec()));
    Form::new()
        .text("messaging_product", "whatsapp")
        .text("type", kind.mime())
        .part("file", part)
}

fn refused(description: &str) -> DownloadError {
    DownloadError::Refused {
        description: description.to_owned(),
    }
}

fn failed(error: GraphCallError) -> DownloadError {
    match error {
        GraphCallError::Refused(refusal) => refused(&refusal.words()),
        error => DownloadError::Failed(Box::new(error)),
    }
}

/// The last step of a path, without what could end a header.
fn bare_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let bare = last.chars().filter(|c| !c.is_control() && *c != '"');
    let bare: String = bare.take(128).collect();
    match bare.trim().is_empty() {
        true => "file".to_owned(),
        false => bare,
    }
}

#[derive(Deserialize)]
struct RawMediaId {
    id: String,
}

#[derive(Deserialize)]
struct RawMediaFile {
    url: String,
    file_size: Option<u64>,
}
