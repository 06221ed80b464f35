//! Files in.

use futures::TryStreamExt as _;
use hermetic_chat::{AttachmentStream, DOWNLOAD_STALL, DownloadError, bounded_download};
use hermetic_types::Attachment;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use tokio::time::timeout;

use crate::account::SlackAccount;
use crate::pace::RateTier;
use crate::wire::SlackCallError;

/// What Slack lets people upload.
pub(crate) const DOWNLOAD_BYTES: u64 = 1 << 30;

impl SlackAccount {
    pub(crate) async fn download(
        &self,
        attachment: &Attachment,
        limit: u64,
    ) -> Result<AttachmentStream, DownloadError> {
        let too_large = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes > limit);
        if too_large(attachment.bytes) {
            return Err(DownloadError::TooLarge { limit });
        }
        // Asked for each time: addresses change, and in shared channels an event has none.
        let params = [("file", attachment.id.as_str())];
        let call = || self.wire.ask("files.info", &params);
        let info = self
            .patiently(|| RateTier::Other, call)
            .await
            .map_err(failed)?;
        let file = &info.value["file"];
        if too_large(file["size"].as_u64()) {
            return Err(DownloadError::TooLarge { limit });
        }
        let url = file["url_private_download"]
            .as_str()
            .or(file["url_private"].as_str());
        let request = url.and_then(|url| self.wire.fetch(url));
        let request = request.ok_or_else(|| refused("the file is not kept at slack"))?;
        let response = timeout(DOWNLOAD_STALL, request.send()).await;
        let response = response.map_err(|stalled| DownloadError::Failed(Box::new(stalled)))?;
        let response =
            response.map_err(|error| DownloadError::Failed(Box::new(error.without_url())))?;
        check(&response, file)?;
        if too_large(response.content_length()) {
            return Err(DownloadError::TooLarge { limit });
        }
        Ok(bounded_download(
            response.bytes_stream().map_err(reqwest::Error::without_url),
            limit,
        ))
    }
}

/// Slack answers a token without the right with its login page, not with an error.
fn check(response: &Response, file: &Value) -> Result<(), DownloadError> {
    const LOGIN: &str = "slack shows its login page instead of the file: the bot lacks files:read";
    let status = response.status();
    if status.is_redirection() {
        return Err(refused(LOGIN));
    }
    if !status.is_success() {
        return Err(refused(&format!("status {}", status.as_u16())));
    }
    let kind = response.headers().get(CONTENT_TYPE);
    let is_page = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let is_page_itself = file["mimetype"].as_str() == Some("text/html")
        && file["size"].as_u64() == response.content_length();
    match is_page && !is_page_itself {
        true => Err(refused(LOGIN)),
        false => Ok(()),
    }
}

fn failed(error: SlackCallError) -> DownloadError {
    match error {
        SlackCallError::Refused { error } => DownloadError::Refused { description: error },
        error => DownloadError::Failed(Box::new(error)),
    }
}

fn refused(description: &str) -> DownloadError {
    DownloadError::Refused {
        description: description.to_owned(),
    }
}
