//! Files both ways, as text within JSON: neither side opens a path of the other.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use hermetic_chat::{AttachmentStream, DownloadError, OutgoingFile, SendError, SendFailure};
use hermetic_types::{Attachment, ChatPlace, MessageId};
use serde_json::{Value, json};

use crate::rpc::SignalCallError;
use crate::send::{message_id, too_long};
use crate::styles::StyledText;
use crate::{MESSAGE, SignalAdapter};

/// The daemon's JSON reader takes no text longer than 20 million letters, and a file is one.
pub(crate) const UPLOAD_BYTES: usize = 14 << 20;
/// Held in memory twice while it is decoded.
pub(crate) const DOWNLOAD_BYTES: u64 = LARGEST_DOWNLOAD as u64;
const LARGEST_DOWNLOAD: usize = 32 << 20;
/// The largest file in base64, and what stands around it.
pub(crate) const LONGEST_ATTACHMENT_ANSWER: usize = (LARGEST_DOWNLOAD / 3 + 1) * 4 + 4096;
const TRANSFER: Duration = Duration::from_secs(300);
/// A file is handed on in pieces of this size.
const PIECE: usize = 64 << 10;
const LONGEST_NAME: usize = 128;

impl SignalAdapter {
    pub(crate) async fn send_attachment(
        &self,
        place: &ChatPlace,
        file: &OutgoingFile,
    ) -> Result<MessageId, SendError> {
        if file.bytes.is_empty() {
            return Err(SendFailure::Empty.into());
        }
        if file.bytes.len() > UPLOAD_BYTES {
            return Err(too_long(UPLOAD_BYTES, "bytes").into());
        }
        let mut params = self.target(place)?;
        if let Some(caption) = &file.caption {
            if !MESSAGE.fits(caption.as_str()) {
                return Err(too_long(MESSAGE.length, "bytes of caption").into());
            }
            let StyledText { text, styles } = StyledText::of(caption.as_str());
            params["message"] = json!(text);
            params["textStyle"] = json!(styles);
        }
        params["attachments"] = json!([data_uri(&file.name, &file.bytes)]);
        let call = || {
            let params = params.clone();
            self.daemon
                .call_within("send", params, TRANSFER, LONGEST_ATTACHMENT_ANSWER)
        };
        let sent = self.patiently(&place.chat, call).await;
        let timestamp = self.note_sent(&sent.map_err(SendFailure::from)?)?;
        Ok(message_id(timestamp))
    }

    pub(crate) async fn fetch(
        &self,
        attachment: &Attachment,
        limit: u64,
    ) -> Result<AttachmentStream, DownloadError> {
        let limit = limit.min(DOWNLOAD_BYTES);
        if attachment.bytes.is_some_and(|bytes| bytes > limit) {
            return Err(DownloadError::TooLarge { limit });
        }
        let asked = json!({ "id": attachment.id });
        // Bounded while it comes and not afterwards: the whole answer is one text in memory.
        let longest = usize::try_from(limit / 3 + 1).unwrap_or(usize::MAX) * 4 + 4096;
        let answer = self
            .daemon
            .call_within("getAttachment", asked, TRANSFER, longest)
            .await;
        let answer = answer.map_err(failed)?;
        let bytes = decoded(&answer)?;
        if bytes.len() as u64 > limit {
            return Err(DownloadError::TooLarge { limit });
        }
        Ok(in_pieces(bytes))
    }
}

fn decoded(answer: &Value) -> Result<Bytes, DownloadError> {
    // A bare text is what versions before 0.13 answered with.
    let text = answer["data"].as_str().or(answer.as_str());
    let text = text.ok_or_else(|| failed(SignalCallError::Garbled))?;
    let bytes = STANDARD
        .decode(text)
        .map_err(|error| DownloadError::Failed(Box::new(error)))?;
    Ok(bytes.into())
}

fn in_pieces(bytes: Bytes) -> AttachmentStream {
    let pieces = stream::unfold(bytes, |mut left| async move {
        let piece = left.split_to(left.len().min(PIECE));
        (!piece.is_empty()).then_some((Ok(piece), left))
    });
    pieces.boxed()
}

fn failed(error: SignalCallError) -> DownloadError {
    match error {
        SignalCallError::Refused(refusal) => DownloadError::Refused {
            description: refusal.to_string(),
        },
        error => DownloadError::Failed(Box::new(error)),
    }
}

fn data_uri(name: &str, bytes: &[u8]) -> String {
    let name = bare_name(name);
    let mut uri = format!("data:{};filename=", media_type(&name));
    for byte in name.bytes() {
        // A comma or a semicolon in the name would end it, and what follows would be read as the
        // file.
        match byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            true => uri.push(char::from(byte)),
            false => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str(";base64,");
    STANDARD.encode_string(bytes, &mut uri);
    uri
}

/// Pictures are shown as such; everything else is a file.
fn media_type(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "txt" | "md" | "log" => "text/plain",
        "pdf" => "application/pdf",
        _ => "application/octet-stream",
    }
}

/// The last step of a path.
fn bare_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = last.chars().filter(|c| !c.is_control());
    let bare: String = plain.take(LONGEST_NAME).collect();
    match bare.trim().is_empty() {
        true => "file".to_owned(),
        false => bare,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_no_field_of_the_address() {
        assert_eq!(
            data_uri("../a;b,c=d é.PNG", b"hi"),
            "data:image/png;filename=a%3Bb%2Cc%3Dd%20%C3%A9.PNG;base64,aGk="
        );
        assert_eq!(
            data_uri("a\\", b""),
            "data:application/octet-stream;filename=file;base64,"
        );
    }

    #[test]
    fn the_largest_file_fits_what_the_daemon_reads() {
        let around = data_uri(&"é".repeat(LONGEST_NAME), b"").len();
        assert!(UPLOAD_BYTES.div_ceil(3) * 4 + around < 20_000_000);
    }
}
