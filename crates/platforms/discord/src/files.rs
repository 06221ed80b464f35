//! Files both ways.

use std::time::Duration;

use futures::TryStreamExt as _;
use hermetic_chat::{
    AttachmentStream, DOWNLOAD_STALL, DownloadError, OutgoingFile, SendError, SendFailure,
    bounded_download,
};
use hermetic_types::{Attachment, AttachmentId, ChatPlace, MessageId};
use reqwest::Url;
use reqwest::multipart::{Form, Part};
use serde_json::json;
use tokio::time::timeout;

use crate::dispatch::DiscordMessage;
use crate::requests::CreateMessage;
use crate::route::ApiRoute;
use crate::send::DiscordSent;
use crate::snowflake::Snowflake;
use crate::wire::DiscordCallError;
use crate::{DiscordAdapter, MESSAGE};

/// What a bot may upload in a server that nobody boosts.
pub(crate) const UPLOAD_BYTES: usize = 10 << 20;
/// Ten megabytes over a slow line.
const TRANSFER: Duration = Duration::from_secs(300);
/// Where Discord keeps files.
const FILE_HOSTS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];

impl DiscordAdapter {
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
        let caption = file.caption.as_ref().map_or("", |caption| caption.as_str());
        if !MESSAGE.fits(caption) {
            return Err(too_long(MESSAGE.length, "characters of caption").into());
        }
        let name = bare_name(&file.name);
        let message = CreateMessage::new(caption.to_owned());
        let mut message = serde_json::to_value(message).unwrap_or_default();
        message["attachments"] = json!([{ "id": 0, "filename": name }]);
        // For each try anew: a form is used up by its request.
        let form = || {
            let size = file.bytes.len() as u64;
            let part = Part::stream_with_length(file.bytes.clone(), size).file_name(name.clone());
            Form::new()
                .text("payload_json", message.to_string())
                .part("files[0]", part)
        };
        let channel = self.target(place).await?.channel;
        let route = ApiRoute::post("/channels/{}/messages", &[&channel]);
        let upload = self
            .wire
            .patiently::<DiscordSent>(&route, |r| r.multipart(form()).timeout(TRANSFER));
        let sent = upload.await.map_err(SendFailure::from)?;
        Ok(sent.id.into())
    }

    pub(crate) async fn fetch(
        &self,
        attachment: &Attachment,
        limit: u64,
    ) -> Result<AttachmentStream, DownloadError> {
        let limit = limit.min(self.max_attachment_bytes);
        let too_large = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes > limit);
        if too_large(attachment.bytes) {
            return Err(DownloadError::TooLarge { limit });
        }
        let url = self.file_url(&attachment.id).await?;
        let asked = timeout(DOWNLOAD_STALL, self.wire.get_elsewhere(url).send()).await;
        let response = match asked {
            Ok(response) => response.map_err(|error| failed(DiscordCallError::of(error)))?,
            Err(stalled) => return Err(DownloadError::Failed(Box::new(stalled))),
        };
        if !response.status().is_success() {
            return Err(refused(&format!("status {}", response.status().as_u16())));
        }
        // Once more, as what the message said may be missing or wrong; so may this, and the bytes
        // are counted as they come.
        if too_large(response.content_length()) {
            return Err(DownloadError::TooLarge { limit });
        }
        Ok(bounded_download(
            response.bytes_stream().map_err(reqwest::Error::without_url),
            limit,
        ))
    }

    /// An address that is good now. The one that came with the message is good for a day, so the message
    /// is asked for once more.
    async fn file_url(&self, id: &AttachmentId) -> Result<Url, DownloadError> {
        let mut ids = id.as_str().split('/').map(Snowflake::parse);
        let (Some(Some(channel)), Some(Some(message)), Some(Some(file)), None) =
            (ids.next(), ids.next(), ids.next(), ids.next())
        else {
            return Err(refused("it is no file of discord"));
        };
        let route = ApiRoute::get("/channels/{}/messages/{}", &[&channel, &message]);
        let message = self.wire.patiently::<DiscordMessage>(&route, |r| r).await;
        let found = message.map_err(failed)?.find_attachment(file);
        let url = found.and_then(|file| Url::parse(&file.url).ok());
        url.filter(|url| self.is_file_url(url))
            .ok_or_else(|| refused("discord named no address for it"))
    }

    /// Discord's own places for files, or the server that stands in for all of Discord.
    fn is_file_url(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        // An address anywhere else would have us fetch from the operator's own network whatever
        // answers there.
        url.scheme() == "https" && FILE_HOSTS.contains(&host)
            || url.origin() == self.wire.base().origin()
    }
}

fn failed(error: DiscordCallError) -> DownloadError {
    match error {
        DiscordCallError::Refused { description, .. } => DownloadError::Refused { description },
        error => DownloadError::Failed(Box::new(error)),
    }
}

fn refused(description: &str) -> DownloadError {
    DownloadError::Refused {
        description: description.to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path_and_no_header() {
        assert_eq!(bare_name("../../etc/pass\"wd\r\nX: y"), "passwdX: y");
        assert_eq!(bare_name("a\\b\\"), "file");
    }
}
