//! write_file.

use hermetic_redact::MASK;
use hermetic_warden::protocol::{PathAt, WriteRequest};
use serde_json::{Value, json};

use super::FileToolFailure;
use super::arguments::FileArguments;
use super::file_session::FileSession;
use super::path_policy::PathAct;
use super::place::ResolvedPath;

/// For a file that is new.
pub(super) const MODE: u32 = 0o644;
/// Longer ones are not looked through for what was masked.
const LOOKED_THROUGH: usize = 16 << 20;

impl FileSession<'_> {
    pub(super) async fn write(
        &self,
        arguments: &FileArguments<'_>,
    ) -> Result<Value, FileToolFailure> {
        let path = arguments.path("path")?;
        let content = arguments.needed("content")?;
        let place = self.locate(path).await?;
        self.clear(PathAct::Write, &place).await?;
        self.refuse_masked(&place, content).await?;
        // Before the write, after which the file is the agent's own.
        let warning = self.stale_warning(&place);
        let write = WriteRequest {
            mode: MODE,
            parents: true,
            ..WriteRequest::new(PathAt::resolved(place.path.clone()))
        };
        self.store(&place, content.as_bytes(), write).await?;
        self.note_written(&place).await;
        let mut json = json!({
            "bytes_written": content.len(),
            "dirs_created": place.missing > 1,
            "resolved_path": place.shown(),
            "files_modified": [place.shown()],
        });
        if let Some(lint) = self.lint(&place, content).await {
            json["lint"] = lint;
        }
        if let Some(warning) = warning {
            json["_warning"] = json!(warning);
        }
        Ok(json)
    }

    /// Who writes back what was shown would replace each secret of the file by the word that stood
    /// for it.
    async fn refuse_masked(
        &self,
        place: &ResolvedPath,
        content: &str,
    ) -> Result<(), FileToolFailure> {
        if !place.exists() || !content.contains(MASK) {
            return Ok(());
        }
        match self.fetch(place, LOOKED_THROUGH).await? {
            Some(old) if memchr::memmem::find(&old, MASK.as_bytes()).is_none() => {
                Err(lost_secret(&place.asked))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn stale_warning(&self, place: &ResolvedPath) -> Option<String> {
        let seen = self.files.seen.stamp(self.sandbox.id(), &place.path)?;
        (place.stamp()? != seen).then(|| {
            format!(
                "{} has changed since you last read it; what you know of it may be out of date. Read \
                 it again to be sure.",
                place.asked
            )
        })
    }

    /// Remembers the file as it is now, so that the agent's own writing is no surprise to it.
    pub(super) async fn note_written(&self, place: &ResolvedPath) {
        let at = PathAt::resolved(place.path.clone());
        if let Ok(metadata) = self.sandbox.warden().stat(at).await {
            let seen = &self.files.seen;
            seen.note_written(self.sandbox.id(), &place.path, metadata.stamp());
        }
    }
}

pub(super) fn lost_secret(path: &str) -> FileToolFailure {
    FileToolFailure::new(format!(
        "the new text holds {MASK}, which stands for a secret you were not shown; written to {path} it \
         would replace that secret. Use patch on the other lines. Nothing was written."
    ))
}
