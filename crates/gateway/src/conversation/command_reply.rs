//! What is said when a command has run: its output, or a head of it and a file, and the hosts it did not reach.

use hermetic_redact::Redacted;
use hermetic_types::ConversationKey;
use hermetic_warden::client::WardenCallError;
use hermetic_warden::protocol::{PathAt, WriteRequest};
use thiserror::Error;

use crate::Gateway;
use crate::conversation::sandbox_tools::holder_of;
use crate::message::AcceptedMessage;

/// The reply to a slash command.
#[derive(Debug)]
pub(crate) struct CommandReply {
    pub(crate) text: Redacted<String>,
    /// Below the workspace.
    pub(crate) files: Vec<String>,
}

impl From<Redacted<String>> for CommandReply {
    fn from(text: Redacted<String>) -> Self {
        Self {
            text,
            files: Vec::new(),
        }
    }
}

/// Longer than this, output would fill the chat: about what a phone shows in three screens.
const LONGEST_IN_CHAT: usize = 3500;
/// Of what is shown of longer output.
const HEAD_LINES: usize = 20;
const HEAD_CHARACTERS: usize = 1200;
/// Below the workspace.
const FOLDER: &str = "output";
/// Hosts that are named at once.
const MOST_NAMED: usize = 4;

#[derive(Debug, Error)]
enum KeepError {
    #[error("there is no sandbox to keep it in")]
    NoSandbox,
    #[error("it could not be written into the workspace")]
    Write(#[from] WardenCallError),
}

/// Output for the chat, and where all of it is.
pub(crate) struct ShownOutput {
    pub(crate) text: String,
    pub(crate) files: Vec<String>,
}

impl Gateway {
    /// Makes a file of long output, where the platform takes files. What cannot be kept is shown whole.
    pub(crate) async fn shown_output(
        &self,
        message: &AcceptedMessage,
        output: &str,
    ) -> ShownOutput {
        let whole = || ShownOutput {
            text: output.to_owned(),
            files: Vec::new(),
        };
        let chat = self.outbox.chat(&message.said().account);
        let takes_files = chat.is_some_and(|chat| chat.capabilities().files_out.is_some());
        if !takes_files || output.chars().count() <= LONGEST_IN_CHAT {
            return whole();
        }
        // Named after the message, so that doing it once more after a crash replaces the file.
        let path = format!("{FOLDER}/{}.txt", message.row().0);
        match self.keep_output(message, &path, output).await {
            Ok(()) => ShownOutput {
                text: headed(output),
                files: vec![path],
            },
            Err(error) => {
                tracing::warn!(row = message.row().0, %error, "output stays in the chat");
                whole()
            }
        }
    }

    async fn keep_output(
        &self,
        message: &AcceptedMessage,
        path: &str,
        output: &str,
    ) -> Result<(), KeepError> {
        let lease = self
            .sandboxes
            .lease_for(message.conversation(), &holder_of(message))
            .await
            .map_err(|error| {
                tracing::debug!(%error, "no sandbox for output");
                KeepError::NoSandbox
            })?;
        let workspace = self.toolsets.workspace(message.said().platform());
        let write = WriteRequest {
            at: PathAt::beneath(workspace, path),
            mode: 0o644,
            parents: true,
            replaces: None,
        };
        let mut file = lease.warden().write_file(write).await?;
        file.write(output.as_bytes()).await?;
        file.finish().await?;
        Ok(())
    }

    /// The hosts that were not reached for want of a rule, and how each is allowed.
    pub(crate) fn refused_hosts(&self, message: &AcceptedMessage) -> String {
        self.refused_hosts_of(message.conversation())
    }

    fn refused_hosts_of(&self, conversation: &ConversationKey) -> String {
        // Taken, not looked at: a host is named once, in the first thing that is said after it was
        // refused.
        let refused = self.sandboxes.take_refused(conversation);
        let mut told = String::new();
        for host in refused.iter().take(MOST_NAMED) {
            told.push_str(&format!(
                "\n🚫 {} was not reached: no rule allows it. The operator allows it with `{}`",
                host.target, host.remedy
            ));
        }
        if refused.len() > MOST_NAMED {
            told.push_str("\n🚫 and more; `hermetic egress log` names them all");
        }
        if told.is_empty() {
            told
        } else {
            format!("\n{told}")
        }
    }
}

/// The first lines of long output, and how much more there is.
fn headed(output: &str) -> String {
    let mut head = String::new();
    let mut lines = output.lines();
    for line in lines.by_ref().take(HEAD_LINES) {
        let room = HEAD_CHARACTERS.saturating_sub(head.chars().count());
        if line.chars().count() >= room {
            head.extend(line.chars().take(room));
            head.push('…');
            break;
        }
        head.push_str(line);
        head.push('\n');
    }
    let all = output.lines().count();
    format!(
        "{}\n[the beginning of {all} lines, {} characters; all of it is in the file]",
        head.trim_end(),
        output.chars().count()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_short_whatever_the_output_is() {
        let many: String = (1..=5000).map(|n| format!("line {n}\n")).collect();
        let head = headed(&many);
        assert!(head.starts_with("line 1\n"), "{head}");
        assert!(
            head.contains("line 20\n[the beginning of 5000 lines"),
            "{head}"
        );
        for output in [
            "x".repeat(100_000),
            "é".repeat(100_000),
            "a\n".repeat(90_000),
        ] {
            let head = headed(&output);
            assert!(
                head.chars().count() < HEAD_CHARACTERS + 200,
                "{}",
                head.len()
            );
        }
    }
}
