//! Files out: an address is asked for, the bytes are put there, and only the third step shows the file.

use std::time::Duration;

use hermetic_chat::{OutgoingFile, SendError, SendFailure};
use hermetic_types::{ChatPlace, MessageId};
use serde_json::{Value, json};

use crate::account::SlackAccount;
use crate::mrkdwn::to_mrkdwn;
use crate::pace::RateTier;
use crate::send::{not_shown, thread, unnamed};
use crate::wire::SlackCallError;

/// Slack takes more; we hold it in memory.
pub(crate) const UPLOAD_BYTES: usize = 100 << 20;
const TRANSFER: Duration = Duration::from_secs(300);

/// A file that is at Slack and not shown yet.
struct UploadedFile {
    id: String,
}

impl SlackAccount {
    pub(crate) async fn send_file(
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
        let thread = thread(place)?;
        let name = bare_name(&file.name);
        let uploaded = self.upload(&name, file).await?;
        let mut params = json!({
            "files": [{ "id": uploaded.id, "title": name }],
            "channel_id": place.chat,
        });
        if let Some(thread) = thread {
            params["thread_ts"] = json!(thread.to_string());
        }
        if let Some(caption) = &file.caption {
            params["initial_comment"] = json!(to_mrkdwn(caption.as_str()));
        }
        // From here on it may have been shown: an end that we do not learn is uncertain, and not
        // simply a file that did not leave.
        let tier = || RateTier::Post(place.chat.clone());
        let call = || {
            self.wire
                .call::<Value>("files.completeUploadExternal", &params)
        };
        self.patiently(tier, call)
            .await
            .map_err(SendFailure::from)?;
        // Slack makes the message later and does not say under which name.
        MessageId::new(uploaded.id).map_err(|_| SendFailure::Uncertain(Box::new(unnamed())).into())
    }

    /// Whatever goes wrong here, nobody has seen a file.
    async fn upload(&self, name: &str, file: &OutgoingFile) -> Result<UploadedFile, SendFailure> {
        let length = file.bytes.len().to_string();
        let params = [("filename", name), ("length", &length)];
        let call = || self.wire.ask("files.getUploadURLExternal", &params);
        let asked = self
            .patiently(|| RateTier::Other, call)
            .await
            .map_err(not_shown)?;
        let (url, id) = (
            asked.value["upload_url"].as_str(),
            asked.value["file_id"].as_str(),
        );
        let (Some(url), Some(id)) = (url, id) else {
            return Err(SendFailure::NotSent(Box::new(unnamed())));
        };
        let call = || self.put(url, file);
        self.patiently(|| RateTier::Other, call)
            .await
            .map_err(not_shown)?;
        Ok(UploadedFile { id: id.to_owned() })
    }

    /// The address alone is what lets us in: no token goes there.
    async fn put(&self, url: &str, file: &OutgoingFile) -> Result<(), SlackCallError> {
        let request = self
            .wire
            .post_to(url)
            .ok_or_else(|| SlackCallError::Refused {
                error: "the address for the file is not at slack".to_owned(),
            })?;
        let request = request
            .timeout(TRANSFER)
            .header("content-type", "application/octet-stream")
            .body(file.bytes.clone());
        let response = request.send().await.map_err(SlackCallError::of)?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        Err(SlackCallError::Garbled {
            status: status.as_u16(),
        })
    }
}

/// The last step of a path, without what could end a header.
fn bare_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let bare: String = last.chars().filter(|c| !c.is_control()).take(128).collect();
    if bare.trim().is_empty() {
        "file".to_owned()
    } else {
        bare
    }
}

#[cfg(test)]
mod tests {
    use super::bare_name;

    #[test]
    fn a_name_is_no_path() {
        assert_eq!(bare_name("../../etc/passwd\r\nX: y"), "passwdX: y");
        assert_eq!(bare_name("a\\b\\"), "file");
    }
}
