//! Replies and files out, files in.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use hermetic_chat::{
    AttachmentStream, Backoff, ChatReply, DownloadError, OutgoingFile, OutgoingText, SendError,
    SendFailure,
};
use hermetic_types::{Attachment, ChatPlace, MessageId};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::api::BridgeCallError;
use super::{FILE_BYTES, MESSAGE, WhatsAppBridge};
use crate::dialect::to_whatsapp;

const BRIDGE_SEND_ATTEMPTS: u32 = 3;
/// A longer answer belongs in a file.
const PARTS: usize = 40;
const CHUNK: usize = 64 << 10;
/// What the names of files for the bridge begin with.
const LENT: &str = "hermetic-lent-";
/// Longer than any attempt to send one.
const LONGEST_LOAN: Duration = Duration::from_secs(3600);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BridgeSent {
    message_id: Option<MessageId>,
}

impl WhatsAppBridge {
    pub(super) async fn send_reply(
        &self,
        place: &ChatPlace,
        reply: &ChatReply,
    ) -> Result<Vec<MessageId>, SendError> {
        let limit = PARTS * MESSAGE.length / 2;
        if MESSAGE.unit.count(reply.text.as_str()) > limit {
            let unit = MESSAGE.unit.name();
            return Err(SendFailure::TooLong { limit, unit }.into());
        }
        let parts = reply.text.split(MESSAGE);
        if parts.is_empty() {
            return Err(SendFailure::Empty.into());
        }
        let mut sent = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let mut body = json!({ "chatId": place.chat, "message": to_whatsapp(part.as_str()) });
            if let Some(quoted) = reply.reply_to.as_ref().filter(|_| index == 0) {
                body["replyTo"] = json!(quoted);
            }
            match self.post("/send", &body).await {
                Ok(id) => sent.push(id),
                Err(failure) => return Err(SendError { sent, failure }),
            }
        }
        Ok(sent)
    }

    pub(super) async fn edit_message(
        &self,
        place: &ChatPlace,
        message: &MessageId,
        text: &OutgoingText,
    ) -> Result<(), SendError> {
        if !MESSAGE.fits(text.as_str()) {
            let (limit, unit) = (MESSAGE.length, MESSAGE.unit.name());
            return Err(SendFailure::TooLong { limit, unit }.into());
        }
        let body = json!({
            "chatId": place.chat,
            "messageId": message,
            "message": to_whatsapp(text.as_str()),
        });
        let edited = self.api.post::<Value>("/edit", &body).await;
        edited
            .map(drop)
            .map_err(|error| SendFailure::from(error).into())
    }

    pub(super) async fn show_typing(&self, place: &ChatPlace) -> Result<(), SendError> {
        let body = json!({ "chatId": place.chat });
        let shown = self.api.post::<Value>("/typing", &body).await;
        shown
            .map(drop)
            .map_err(|error| SendFailure::from(error).into())
    }

    /// The bridge takes files by their path, so this one lies on the disk while it is sent.
    pub(super) async fn send_media(
        &self,
        place: &ChatPlace,
        file: &OutgoingFile,
    ) -> Result<MessageId, SendError> {
        let most = usize::try_from(FILE_BYTES).unwrap_or(usize::MAX);
        if file.bytes.is_empty() {
            return Err(SendFailure::Empty.into());
        }
        if file.bytes.len() > most {
            let unit = "bytes";
            return Err(SendFailure::TooLong { limit: most, unit }.into());
        }
        let (folder, bytes) = (self.outgoing_folder.clone(), file.bytes.clone());
        let ending = ending(&file.name);
        let written = spawn_blocking(move || LentFile::write(&folder, &ending, &bytes)).await;
        let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
        let lent = written.map_err(|error| SendFailure::NotSent(Box::new(error)))?;
        let mut body = json!({
            "chatId": place.chat,
            "filePath": lent.0,
            "fileName": bare_name(&file.name),
        });
        if let Some(caption) = &file.caption {
            body["caption"] = json!(to_whatsapp(caption.as_str()));
        }
        // `lent` lives until this is answered: the bridge reads the file meanwhile.
        let sent = self.post("/send-media", &body).await;
        sent.map_err(SendError::from)
    }

    /// Tries again what certainly did not arrive.
    async fn post(&self, path: &str, body: &Value) -> Result<MessageId, SendFailure> {
        let mut backoff = Backoff::new(self.timing.retry.0, self.timing.retry.1);
        let mut attempt = 1;
        loop {
            let failure = match self.api.post::<BridgeSent>(path, body).await {
                Ok(sent) => {
                    let unnamed = || SendFailure::Uncertain("the bridge named no message".into());
                    return sent.message_id.ok_or_else(unnamed);
                }
                Err(error @ BridgeCallError::Unreachable(_)) => SendFailure::from(error),
                Err(error) => return Err(error.into()),
            };
            if attempt == BRIDGE_SEND_ATTEMPTS {
                return Err(failure);
            }
            attempt += 1;
            sleep(backoff.next_wait()).await;
        }
    }

    pub(super) async fn fetch(
        &self,
        attachment: &Attachment,
        limit: u64,
    ) -> Result<AttachmentStream, DownloadError> {
        let (folders, path) = (self.media_folders.clone(), attachment.id.to_string());
        let opened = spawn_blocking(move || open_within(&folders, Path::new(&path))).await;
        let opened = opened.unwrap_or_else(|error| Err(io::Error::other(error)));
        let (file, size) = opened.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => DownloadError::Refused {
                description: "the file is not where the bridge keeps files".to_owned(),
            },
            _ => DownloadError::Failed(Box::new(error)),
        })?;
        if size > limit {
            return Err(DownloadError::TooLarge { limit });
        }
        Ok(chunks(file, limit))
    }
}

/// A file that is there for as long as this is.
#[derive(Debug)]
struct LentFile(PathBuf);

impl LentFile {
    fn write(folder: &Path, ending: &str, bytes: &[u8]) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        Self::clear_up(folder);
        let name = format!(
            "{LENT}{:016x}.{ending}",
            getrandom::u64().map_err(io::Error::other)?
        );
        // Before there is a file, so that one which could be written only in part is removed as
        // well.
        let lent = Self(folder.join(name));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(&lent.0)?.write_all(bytes)?;
        Ok(lent)
    }

    /// Removes what a process left that was killed while it lent a file: nobody else would, and what people were
    /// sent would lie there for ever.
    fn clear_up(folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        for entry in entries.flatten() {
            let is_ours = entry.file_name().to_string_lossy().starts_with(LENT);
            let age = entry.metadata().and_then(|about| about.modified());
            let age = age.ok().and_then(|modified| modified.elapsed().ok());
            if is_ours && age.is_some_and(|age| age > LONGEST_LOAN) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for LentFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Opens a file only if it really lies in one of the folders, whatever links say.
fn open_within(folders: &[PathBuf], path: &Path) -> io::Result<(File, u64)> {
    let real = path.canonicalize()?;
    let mut folders = folders
        .iter()
        .filter_map(|folder| folder.canonicalize().ok());
    if !folders.any(|folder| real.starts_with(folder)) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // By the name that was looked at, and not by the one that was asked for: a link that is turned
    // meanwhile leads nowhere else.
    // Looked at before it is opened: to open a pipe is to wait for whoever writes into it.
    if !real.metadata()?.is_file() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let file = File::open(real)?;
    let about = file.metadata()?;
    match about.is_file() {
        true => Ok((file, about.len())),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// At most `limit` bytes, whatever its size was. Ends at the first error.
fn chunks(file: File, limit: u64) -> AttachmentStream {
    stream::unfold(Some((file, limit)), move |state| async move {
        let (mut file, left) = state?;
        // Aside: a disk that is slow would hold up everybody else on this thread.
        let read = spawn_blocking(move || {
            let mut chunk = vec![0; CHUNK];
            let count = file.read(&mut chunk)?;
            chunk.truncate(count);
            Ok::<_, io::Error>((file, chunk))
        });
        match read
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
        {
            Ok((_, chunk)) if chunk.is_empty() => None,
            Ok((file, chunk)) => match left.checked_sub(chunk.len() as u64) {
                Some(left) => Some((Ok(Bytes::from(chunk)), Some((file, left)))),
                None => Some((Err(DownloadError::TooLarge { limit }), None)),
            },
            Err(error) => Some((Err(DownloadError::Failed(Box::new(error))), None)),
        }
    })
    .boxed()
}

/// By which the bridge tells what kind of file it is: letters and digits, or none.
fn ending(name: &str) -> String {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let plain = !ending.is_empty() && ending.len() <= 8;
    match plain && ending.bytes().all(|b| b.is_ascii_alphanumeric()) {
        true => ending.to_ascii_lowercase(),
        false => "bin".to_owned(),
    }
}

fn bare_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    last.chars().filter(|c| !c.is_control()).take(128).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn files_of_a_process_that_was_killed_do_not_stay() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        let (left, lent, others) = (
            name("hermetic-lent-00.pdf"),
            name("hermetic-lent-01.pdf"),
            name("notes.pdf"),
        );
        for (path, is_old) in [(&left, true), (&lent, false), (&others, true)] {
            let file = File::create(path).unwrap();
            let made = file.metadata().unwrap().modified().unwrap();
            if is_old {
                file.set_modified(made - 2 * LONGEST_LOAN).unwrap();
            }
        }
        let written = LentFile::write(folder.path(), "pdf", b"for Alice").unwrap();
        assert!(!left.exists(), "it would stay for ever");
        assert!(lent.exists() && others.exists() && written.0.exists());
        let path = written.0.clone();
        drop(written);
        assert!(!path.exists());
    }

    #[test]
    fn a_pipe_in_the_bridges_folder_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let opened = open_within(&[folder.path().to_owned()], &pipe);
        let refused = opened.unwrap_err().kind();
        assert_eq!(refused, io::ErrorKind::PermissionDenied);
    }
}
