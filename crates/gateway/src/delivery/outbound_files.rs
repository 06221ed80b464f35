//! Files that leave: out of the workspace, and from nowhere else.
//!
//! The model names one with a line `MEDIA:<path>`, as in Hermes. The warden opens it below the
//! workspace and follows no link out of it, so that also where commands run on the host itself nothing
//! else can be named. What is text is redacted like every text; what is not and holds a secret stays.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use hermetic_chat::{OutgoingFile, OutgoingText};
use hermetic_redact::{Redacted, Redactor};
use hermetic_session::{LeaseError, Sandboxes};
use hermetic_types::{ConversationKey, Platform};
use hermetic_warden::client::WardenCallError;
use hermetic_warden::protocol::{PathAt, ReadRequest};
use thiserror::Error;
use tokio::time::timeout;

use crate::PlatformToolsets;

/// An answer, without the lines that name files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParsedAnswer {
    pub(crate) text: String,
    /// Below the workspace.
    pub(crate) files: Vec<String>,
}

/// Where files are fetched from, as they may leave.
pub(crate) trait FileSource: Send + Sync + fmt::Debug {
    fn fetch<'a>(
        &'a self,
        platform: Platform,
        conversation: &'a ConversationKey,
        path: &'a str,
    ) -> BoxFuture<'a, Result<OutgoingFile, FetchError>>;

    /// The folder that paths are below, as people know it.
    fn folder(&self, platform: Platform) -> &str;
}

/// The workspaces of conversations.
#[derive(Clone, Debug)]
pub(crate) struct OutboundFiles {
    pub(crate) sandboxes: Sandboxes,
    pub(crate) toolsets: Arc<PlatformToolsets>,
    pub(crate) redactor: Redactor,
}

/// Why a file is not sent, in words for the chat.
#[derive(Debug, Error)]
pub(crate) enum FetchError {
    #[error("there is no sandbox to fetch it from")]
    Lease(#[from] LeaseError),
    #[error("it is not a file in the workspace that can be read")]
    Read(#[from] WardenCallError),
    #[error("reading it took too long")]
    TooSlow,
    #[error("it is larger than {} MB", MOST_FILE_BYTES >> 20)]
    TooLarge,
    #[error("it is empty")]
    Empty,
    #[error("it holds a secret")]
    Secret,
}

const TAG: &str = "MEDIA:";
/// With one answer.
const MOST_FILES: usize = 10;
/// What Telegram takes. Whichever platform takes less refuses what is larger, and that is said.
const MOST_FILE_BYTES: usize = 50 << 20;
const FILE_READ_TIMEOUT: Duration = Duration::from_secs(60);

impl ParsedAnswer {
    pub(crate) fn read(answer: &str, workspace: &str) -> Self {
        let mut kept = Vec::new();
        let mut files = Vec::new();
        for line in answer.lines() {
            let Some(path) = tagged(line) else {
                kept.push(line.to_owned());
                continue;
            };
            match below(path, workspace) {
                Some(_) if files.len() == MOST_FILES => {
                    kept.push(format!(
                        "[{path} was not sent: {MOST_FILES} files at once are enough]"
                    ));
                }
                Some(path) => files.push(path),
                None => kept.push(format!(
                    "[{path} was not sent: only files in {workspace} are]"
                )),
            }
        }
        let mut text = kept.join("\n").trim().to_owned();
        if text.is_empty() && !files.is_empty() {
            text = format!("Files: {}", files.join(", "));
        }
        Self { text, files }
    }
}

/// What of a text that still grows may be shown: no tag, and nothing that may become one.
pub(crate) fn without_tags(text: &str) -> String {
    let (whole, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let may_become = |line: &str| {
        let bare = line.trim_start_matches([' ', '-', '*', '`', '"', '\'']);
        !bare.is_empty() && TAG.starts_with(bare) || bare.starts_with(TAG)
    };
    let mut kept: Vec<_> = whole
        .lines()
        .filter(|line| tagged(line).is_none())
        .collect();
    if !may_become(last) {
        kept.push(last);
    }
    kept.join("\n")
}

impl FileSource for OutboundFiles {
    fn fetch<'a>(
        &'a self,
        platform: Platform,
        conversation: &'a ConversationKey,
        path: &'a str,
    ) -> BoxFuture<'a, Result<OutgoingFile, FetchError>> {
        self.redacted(platform, conversation, path).boxed()
    }

    fn folder(&self, platform: Platform) -> &str {
        self.toolsets.workspace(platform)
    }
}

impl OutboundFiles {
    async fn redacted(
        &self,
        platform: Platform,
        conversation: &ConversationKey,
        path: &str,
    ) -> Result<OutgoingFile, FetchError> {
        // Over the lease too: a sandbox that has to be waited for must not keep the answer's words
        // back for longer.
        let bytes = timeout(FILE_READ_TIMEOUT, self.bytes(platform, conversation, path))
            .await
            .unwrap_or(Err(FetchError::TooSlow))?;
        if bytes.is_empty() {
            return Err(FetchError::Empty);
        }
        let redacted = self.redactor.redact_bytes(&bytes).into_inner();
        let is_text = std::str::from_utf8(&bytes).is_ok();
        let caption: Option<OutgoingText> = match redacted == bytes {
            true => None,
            false if is_text => Some(Redacted::constant("Secrets in it were taken out.").into()),
            // With a hole in it, what is no text would be a broken file.
            false => return Err(FetchError::Secret),
        };
        Ok(OutgoingFile {
            // A name is a way out like any other.
            name: self.redactor.redact(path).into_inner(),
            bytes: Bytes::from(redacted),
            caption,
        })
    }

    async fn bytes(
        &self,
        platform: Platform,
        conversation: &ConversationKey,
        path: &str,
    ) -> Result<Vec<u8>, FetchError> {
        let lease = self.sandboxes.lease(conversation).await?;
        let read = ReadRequest {
            at: PathAt::beneath(self.toolsets.workspace(platform), path),
            offset: 0,
            length: None,
        };
        let file = lease.warden().read_file(read).await?;
        let bytes = file.collect(MOST_FILE_BYTES).await?;
        bytes.ok_or(FetchError::TooLarge)
    }
}

/// The path of a line that is a tag and nothing else; models like to dress it up.
fn tagged(line: &str) -> Option<&str> {
    let bare = line.trim().trim_start_matches(['-', '*']).trim();
    let bare = bare.trim_matches(['`', '"', '\'']).trim();
    let path = bare
        .strip_prefix(TAG)?
        .trim()
        .trim_matches(['`', '"', '\''])
        .trim();
    (!path.is_empty() && !path.contains('\0')).then_some(path)
}

/// A path as it is below the workspace.
fn below(path: &str, workspace: &str) -> Option<String> {
    let path = match path.strip_prefix('/') {
        None => path,
        Some(_) => path
            .strip_prefix(workspace.trim_end_matches('/'))
            .filter(|rest| rest.starts_with('/'))?,
    };
    let steps = path.split('/').filter(|step| !matches!(*step, "" | "."));
    let steps: Vec<_> = steps.collect();
    let leads_out = steps.is_empty() || steps.contains(&"..") || steps[0].starts_with('~');
    (!leads_out).then(|| steps.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_taken_out_however_they_are_dressed() {
        let answer = "Here it is:\n\nMEDIA:/workspace/chart.png\n- `MEDIA: out/data.csv`\nBye.";
        let read = ParsedAnswer::read(answer, "/workspace");
        assert_eq!(read.files, ["chart.png", "out/data.csv"]);
        assert_eq!(read.text, "Here it is:\n\nBye.");
    }

    #[test]
    fn a_tag_does_not_show_while_it_grows() {
        assert_eq!(without_tags("Here:\nMEDIA:x\nand"), "Here:\nand");
        for end in ["M", "MED", "- `MEDIA", "MEDIA:/work"] {
            assert_eq!(without_tags(&format!("Here:\n{end}")), "Here:", "{end}");
        }
        assert_eq!(without_tags("Here:\nMore"), "Here:\nMore");
    }

    #[test]
    fn words_about_a_tag_are_words() {
        let answer = "Write MEDIA:/workspace/x to send a file.";
        let read = ParsedAnswer::read(answer, "/workspace");
        assert_eq!((read.text.as_str(), read.files.len()), (answer, 0));
    }

    #[test]
    fn nothing_outside_the_workspace_can_be_named() {
        for path in [
            "/etc/passwd",
            "/workspace/../etc/passwd",
            "../x",
            "a/../../x",
            "/workspaces/x",
            "/workspace",
            "/workspace/",
            "~/.ssh/id_rsa",
            ".",
        ] {
            let read = ParsedAnswer::read(&format!("MEDIA:{path}"), "/workspace");
            assert_eq!(read.files, [""; 0], "{path}");
            assert!(read.text.contains("was not sent"), "{path}");
        }
        let many = "MEDIA:x\n".repeat(11);
        let read = ParsedAnswer::read(&many, "/workspace");
        assert_eq!(read.files.len(), 10);
        assert!(read.text.contains("enough"));
    }
}
