//! Files both ways.

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

use crate::send::{TelegramSent, chat_id, thread_id};
use crate::wire::TelegramCallError;
use crate::{API_BASE, TelegramAdapter};

/// What Telegram's own servers hand out to a bot.
pub(crate) const DOWNLOAD_BYTES: u64 = 20 << 20;
/// What a server that somebody runs for their bots hands out.
const LOCAL_DOWNLOAD_BYTES: u64 = 2000 << 20;
/// What a bot may upload.
pub(crate) const UPLOAD_BYTES: usize = 50 << 20;
const CAPTION: TextLimit = TextLimit::utf16(1024);
/// Fifty megabytes over a slow line.
const TRANSFER: Duration = Duration::from_secs(300);

impl TelegramAdapter {
    pub(crate) async fn send_document(
        &self,
        place: &ChatPlace,
        file: &OutgoingFile,
    ) -> Result<MessageId, SendError> {
        if file.bytes.is_empty() {
            return Err(SendFailure::Empty.into());
        }
        if file.bytes.len() > UPLOAD_BYTES {
            return Err(SendFailure::TooLong {
                limit: UPLOAD_BYTES,
                unit: "bytes",
            }
            .into());
        }
        if file
            .caption
            .as_ref()
            .is_some_and(|caption| !CAPTION.fits(caption.as_str()))
        {
            return Err(SendFailure::TooLong {
                limit: CAPTION.length,
                unit: "characters of caption",
            }
            .into());
        }
        let chat = chat_id(&place.chat)?;
        let thread = thread_id(place)?;
        let form = || {
            let size = file.bytes.len() as u64;
            let document =
                Part::stream_with_length(file.bytes.clone(), size).file_name(bare_name(&file.name));
            let mut form = Form::new()
                .text("chat_id", chat.to_string())
                .part("document", document);
            if let Some(thread) = thread {
                form = form.text("message_thread_id", thread.to_string());
            }
            if let Some(caption) = &file.caption {
                form = form.text("caption", caption.as_str().to_owned());
            }
            form
        };
        let sent = self
            .patiently(&place.chat, || {
                self.wire
                    .upload::<TelegramSent>("sendDocument", form(), TRANSFER)
            })
            .await
            .map_err(SendFailure::from)?;
        Ok(MessageId::from(sent.message_id))
    }

    pub(crate) async fn fetch(
        &self,
        attachment: &Attachment,
        limit: u64,
    ) -> Result<AttachmentStream, DownloadError> {
        let too_large = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes > limit);
        if too_large(attachment.bytes) {
            return Err(DownloadError::TooLarge { limit });
        }
        let file: RawPath = self
            .wire
            .call("getFile", &json!({ "file_id": attachment.id }))
            .await
            .map_err(failed)?;
        // Asked three times, each before something that costs: what the update claims, what
        // Telegram says of the file, what the server announces. The stream counts all the same,
        // because none of them is bound to be true.
        if too_large(file.file_size) {
            return Err(DownloadError::TooLarge { limit });
        }
        let path = file
            .file_path
            .filter(|path| is_plain_path(path))
            .ok_or_else(|| DownloadError::Refused {
                description: "telegram named no path to it".to_owned(),
            })?;
        let response = self.wire.file(&path).await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(DownloadError::Refused {
                description: format!("status {}", response.status().as_u16()),
            });
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

/// The largest file that comes from this server.
pub(crate) fn most_handed_out(api_base: &str) -> u64 {
    if api_base == API_BASE {
        DOWNLOAD_BYTES
    } else {
        LOCAL_DOWNLOAD_BYTES
    }
}

fn failed(error: TelegramCallError) -> DownloadError {
    match error {
        TelegramCallError::Refused { description, .. } => DownloadError::Refused { description },
        error => DownloadError::Failed(Box::new(error)),
    }
}

/// Becomes part of an address that holds the token: nothing that could bend it.
fn is_plain_path(path: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./".contains(&b);
    path.len() <= 512
        && path.bytes().all(plain)
        && path.split('/').all(|step| !matches!(step, "" | "." | ".."))
}

/// The last step of a path, without what could end a header.
fn bare_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let bare: String = last
        .chars()
        .filter(|c| !c.is_control() && *c != '"')
        .take(128)
        .collect();
    if bare.trim().is_empty() {
        "file".to_owned()
    } else {
        bare
    }
}

#[derive(Deserialize)]
struct RawPath {
    file_path: Option<String>,
    file_size: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_from_outside_stays_where_files_are() {
        assert!(is_plain_path("documents/file_0.pdf"));
        for path in [
            "",
            "/etc/passwd",
            "../bot",
            "a/../../x",
            "a?b",
            "a#b",
            "a%2e",
            "a//b",
            "a b",
        ] {
            assert!(!is_plain_path(path), "{path:?} was accepted");
        }
    }

    #[test]
    fn a_name_is_no_path_and_no_header() {
        assert_eq!(bare_name("../../etc/pass\"wd\r\nX: y"), "passwdX: y");
        assert_eq!(bare_name("a\\b\\"), "file");
    }
}
