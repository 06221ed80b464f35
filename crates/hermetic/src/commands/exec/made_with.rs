//! What a session's sandbox was made with.
//!
//! Folders and image are settled when a sandbox is made. Flags that ask for others later would be
//! without effect, so they are refused.

use hermetic_sandbox::{Mount, MountMode};
use hermetic_store::Store;
use hermetic_types::{ConversationKey, SandboxId};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MadeWith {
    sandbox: String,
    image: Option<String>,
    mounts: Vec<String>,
}

impl MadeWith {
    pub(super) fn new(id: &SandboxId, image: Option<&str>, mounts: &[Mount]) -> Self {
        Self {
            sandbox: id.to_string(),
            image: image.map(str::to_owned),
            mounts: mounts.iter().map(described).collect(),
        }
    }

    /// Writes it down for a sandbox that is new; for one that was there, says what it lacks.
    pub(super) async fn settle(
        &self,
        store: &Store,
        session: &str,
        key: &ConversationKey,
        is_new: bool,
    ) -> Result<(), Failure> {
        let documents = store.documents();
        let name = format!("exec.session.{key}");
        if is_new {
            let body = serde_json::to_string(self)
                .map_err(|error| Failure::caused(&error, "report this as a bug"))?;
            return Ok(documents.put(&name, &body).await?);
        }
        let known: Option<Self> = documents
            .load(&name)
            .await?
            .and_then(|document| serde_json::from_str(&document.body).ok())
            .filter(|known: &Self| known.sandbox == self.sandbox);
        match self.lacking(known.as_ref()) {
            None => Ok(()),
            Some(what) => Err(Failure::new(
                format!("the sandbox of session {session} was made without {what}"),
                format!(
                    "use another --session, or destroy it first: hermetic sandbox destroy {}",
                    self.sandbox
                ),
            )),
        }
    }

    /// The first thing asked for that the sandbox was not made with.
    fn lacking(&self, known: Option<&Self>) -> Option<String> {
        let image = self.image.as_ref();
        if let Some(image) = image.filter(|_| known.is_none_or(|known| known.image != self.image)) {
            return Some(format!("--image {image}"));
        }
        let missing = |mount: &&String| known.is_none_or(|known| !known.mounts.contains(mount));
        let mount = self.mounts.iter().find(missing)?;
        Some(format!("--mount {mount}"))
    }
}

fn described(mount: &Mount) -> String {
    let mode = match mount.mode {
        MountMode::ReadOnly => "",
        MountMode::ReadWrite => ":rw",
    };
    let (source, target) = (mount.source.display(), mount.target.display());
    format!("{source}:{target}{mode}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(image: Option<&str>, mounts: &[&str]) -> MadeWith {
        MadeWith {
            sandbox: "s".to_owned(),
            image: image.map(str::to_owned),
            mounts: mounts.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn what_it_was_made_with_may_be_said_again_or_left_out() {
        let known = made(Some("python:3"), &["/a:/a", "/b:/b:rw"]);
        for asked in [
            made(None, &[]),
            made(Some("python:3"), &["/b:/b:rw"]),
            made(None, &["/a:/a", "/b:/b:rw"]),
        ] {
            assert_eq!(asked.lacking(Some(&known)), None, "{asked:?}");
        }
        assert_eq!(made(None, &[]).lacking(None), None);
    }

    #[test]
    fn what_it_was_not_made_with_is_named() {
        let known = made(None, &["/a:/a"]);
        let lacking = |image, mounts| made(image, mounts).lacking(Some(&known));
        assert_eq!(
            lacking(None, &["/a:/a:rw"]),
            Some("--mount /a:/a:rw".to_owned())
        );
        assert_eq!(lacking(Some("x"), &[]), Some("--image x".to_owned()));
        assert_eq!(
            made(None, &["/a:/a"]).lacking(None),
            Some("--mount /a:/a".to_owned())
        );
    }
}
