//! Files both ways.

use std::time::Duration;

use bytes::Bytes;
use futures::future::ready;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hermetic_chat::{
    AttachmentStream, DOWNLOAD_STALL, DownloadError, OutgoingFile, SendError, SendFailure,
    bounded_download,
};
use hermetic_types::{Attachment, ChatPlace, MessageId};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use crate::MatrixAdapter;
use crate::cipher_error::CipherError;
use crate::content;
use crate::encryption::{open_file, seal_file};
use crate::sealed_file::SealedFile;
use crate::send::random;
use crate::wire::{MatrixCallError, MatrixRoute, refusal};

/// What Synapse takes if nobody changes it.
pub(crate) const UPLOAD_BYTES: usize = 50 << 20;
/// Fifty megabytes over a slow line.
const TRANSFER: Duration = Duration::from_secs(300);
/// As much as is read of an answer that is no file.
const REFUSAL_BYTES: u64 = 16 << 10;

#[derive(Deserialize)]
struct RawUpload {
    content_uri: String,
}

impl MatrixAdapter {
    pub(crate) async fn send_attachment(
        &self,
        place: &ChatPlace,
        file: &OutgoingFile,
    ) -> Result<MessageId, SendError> {
        let too_long = |limit, unit| SendFailure::TooLong { limit, unit };
        if file.bytes.is_empty() {
            return Err(SendFailure::Empty.into());
        }
        if file.bytes.len() > UPLOAD_BYTES {
            return Err(too_long(UPLOAD_BYTES, "bytes").into());
        }
        let caption = file.caption.as_ref().map(|caption| caption.as_str());
        let caption = caption.filter(|caption| !caption.trim().is_empty());
        if caption.is_some_and(|caption| !self.capabilities.text.fits(caption)) {
            return Err(too_long(self.capabilities.text.length, "bytes of caption").into());
        }
        let room = self.speakable(place).await?;
        let name = bare_name(&file.name);
        let (mime, kind) = kind_of(&name);
        let mut content = content::text(caption.unwrap_or(&name));
        content["msgtype"] = json!(kind);
        content["filename"] = json!(name);
        if self.is_encrypted(room).await? {
            let failed = |error| SendFailure::NotSent(Box::new(error));
            let (sealed, mut key) = seal_file(&file.bytes).map_err(failed)?;
            // Neither its name nor what it is stands in the open.
            let upload = self.upload("file", "application/octet-stream", sealed.into());
            key["url"] = json!(upload.await?);
            content["file"] = key;
        } else {
            content["url"] = json!(self.upload(&name, mime, file.bytes.clone()).await?);
        }
        content["info"] = json!({ "mimetype": mime, "size": file.bytes.len() });
        self.relate(&mut content, place, None)?;
        let transaction = random()?;
        let sent = self
            .send_event(room, "m.room.message", &content, &transaction)
            .await?;
        self.show_answered(room).await;
        Ok(sent)
    }

    async fn upload(&self, name: &str, mime: &str, bytes: Bytes) -> Result<String, SendFailure> {
        let route = MatrixRoute::elsewhere(Method::POST, &["_matrix", "media", "v3", "upload"])
            .with("filename", name)
            .within(TRANSFER);
        let uploaded = self.patiently::<RawUpload>(&route, |request| {
            request.header(CONTENT_TYPE, mime).body(bytes.clone())
        });
        match uploaded.await {
            Ok(uploaded) => Ok(uploaded.content_uri),
            Err(error) if error.call().and_then(MatrixCallError::code) == Some("M_TOO_LARGE") => {
                Err(SendFailure::Refused {
                    description: "the homeserver takes no file of that size".to_owned(),
                })
            }
            Err(error) => match SendFailure::from(error) {
                // A file that nothing points at shows nothing.
                SendFailure::Uncertain(error) => Err(SendFailure::NotSent(error)),
                failure => Err(failure),
            },
        }
    }

    pub(crate) async fn fetch(
        &self,
        attachment: &Attachment,
        limit: u64,
    ) -> Result<AttachmentStream, DownloadError> {
        let limit = limit.min(self.media_bytes);
        let too_large = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes > limit);
        if too_large(attachment.bytes) {
            return Err(DownloadError::TooLarge { limit });
        }
        if let Some(sealed) = SealedFile::of_name(attachment.id.as_str()) {
            return self.fetch_sealed(sealed, limit).await;
        }
        self.fetch_media(attachment.id.as_str(), limit).await
    }

    /// A file of an encrypted room. All of it is checked before any of it is handed on, so it has to fit
    /// into memory, and two at a time are enough.
    async fn fetch_sealed(
        &self,
        sealed: SealedFile,
        limit: u64,
    ) -> Result<AttachmentStream, DownloadError> {
        let failed = |error: CipherError| DownloadError::Failed(Box::new(error));
        let _place = self.sealed_files.acquire().await;
        let stream = self.fetch_media(&sealed.url, limit).await?;
        let chunks: Vec<Bytes> = stream.try_collect().await?;
        let opened = open_file(&chunks.concat(), sealed.key()).map_err(failed)?;
        Ok(stream::once(ready(Ok(Bytes::from(opened)))).boxed())
    }

    async fn fetch_media(&self, url: &str, limit: u64) -> Result<AttachmentStream, DownloadError> {
        let too_large = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes > limit);
        let named = url.strip_prefix("mxc://");
        let (server, media) = named
            .and_then(|name| name.split_once('/'))
            .filter(|(server, media)| is_step(server) && is_step(media))
            .ok_or_else(|| refused("it is no file of matrix"))?;
        let mut response = self
            .ask_for_file(&["client", "v1", "media", "download", server, media])
            .await?;
        if response.status() == StatusCode::NOT_FOUND {
            // Homeservers from before files needed a token.
            response = self
                .ask_for_file(&["media", "v3", "download", server, media])
                .await?;
        }
        if !response.status().is_success() {
            return Err(refused(&describe(response).await));
        }
        if too_large(response.content_length()) {
            return Err(DownloadError::TooLarge { limit });
        }
        Ok(bounded_download(
            response.bytes_stream().map_err(reqwest::Error::without_url),
            limit,
        ))
    }

    async fn ask_for_file(&self, path: &[&str]) -> Result<Response, DownloadError> {
        let failed = |error: MatrixCallError| DownloadError::Failed(Box::new(error));
        let session = self.session().await;
        let session = session.map_err(|error| DownloadError::Failed(Box::new(error)))?;
        let path: Vec<_> = ["_matrix"].iter().chain(path).copied().collect();
        let route = MatrixRoute::elsewhere(Method::GET, &path).with("allow_redirect", "false");
        let request = self.wire.request(&route, Some(&session.token));
        match timeout(DOWNLOAD_STALL, request.send()).await {
            Ok(response) => response.map_err(|error| failed(MatrixCallError::of(error))),
            Err(stalled) => Err(DownloadError::Failed(Box::new(stalled))),
        }
    }
}

async fn describe(response: Response) -> String {
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.bytes_stream().map_err(reqwest::Error::without_url);
    let body: Result<Vec<_>, _> = bounded_download(body, REFUSAL_BYTES).try_collect().await;
    let body = body.map(|chunks| chunks.concat()).unwrap_or_default();
    refusal(status, &headers, &body).to_string()
}

/// Whether a text may be one step of an address.
fn is_step(text: &str) -> bool {
    !text.is_empty() && !text.contains(['/', '?', '#']) && text != "." && text != ".."
}

fn refused(description: &str) -> DownloadError {
    DownloadError::Refused {
        description: description.to_owned(),
    }
}

/// What a file is by its name, and how apps show it. Pictures that can hold scripts are files.
fn kind_of(name: &str) -> (&'static str, &'static str) {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "png" => ("image/png", "m.image"),
        "jpg" | "jpeg" => ("image/jpeg", "m.image"),
        "gif" => ("image/gif", "m.image"),
        "webp" => ("image/webp", "m.image"),
        "mp4" => ("video/mp4", "m.video"),
        "webm" => ("video/webm", "m.video"),
        "mp3" => ("audio/mpeg", "m.audio"),
        "ogg" | "oga" => ("audio/ogg", "m.audio"),
        "wav" => ("audio/wav", "m.audio"),
        "pdf" => ("application/pdf", "m.file"),
        "txt" | "md" | "log" | "csv" => ("text/plain", "m.file"),
        "json" => ("application/json", "m.file"),
        "zip" => ("application/zip", "m.file"),
        _ => ("application/octet-stream", "m.file"),
    }
}

/// The last step of a path, without what no name has.
fn bare_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let bare: String = last.chars().filter(|c| !c.is_control()).take(128).collect();
    match bare.trim().is_empty() {
        true => "file".to_owned(),
        false => bare,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path() {
        assert_eq!(bare_name("../../etc/passwd\r\n"), "passwd");
        assert_eq!(bare_name("a\\b\\"), "file");
        assert_eq!(kind_of("Photo.JPG"), ("image/jpeg", "m.image"));
        assert_eq!(kind_of("drawing.svg").1, "m.file");
        assert!(!is_step("..") && !is_step("a/b") && is_step("example.org:8448"));
    }
}
