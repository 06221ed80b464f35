//! All changes of a patch, or none.
//!
//! Every new text is first written aside, next to its place, where a full disk or a folder that cannot
//! be written to shows while nothing has changed yet. Then the files take their places, one rename
//! each, and what is to go is removed. Should one of these fail all the same, those before it are
//! undone, last first, and what could not be undone is named.

use hermetic_warden::client::FileWriter;
use hermetic_warden::protocol::{ByteString, PathAt, WriteRequest};
use serde_json::{Value, json};

use super::changes::PatchDraft;
use super::text::FileText;
use crate::files::FileToolFailure;
use crate::files::file_session::FileSession;

/// Files that are open at once. What a patch changes beyond these is written when its turn comes.
const MOST_ASIDE: usize = 256;

/// Makes the changes; the files they concern, by what was done to them.
pub(super) async fn apply(
    session: &FileSession<'_>,
    drafts: &[PatchDraft],
) -> Result<Value, FileToolFailure> {
    // What is removed goes last: until then every text is somewhere.
    let (written, removed): (Vec<&PatchDraft>, Vec<_>) =
        drafts.iter().partition(|draft| draft.new.is_some());
    // What is written is compared by the warden as it takes its place; a removal knows no version,
    // so it is looked at here.
    for draft in &removed {
        draft.check_unchanged(session).await?;
    }
    let mut aside = Vec::new();
    for draft in written.iter().take(MOST_ASIDE) {
        match draft.write_aside(session).await {
            Ok(file) => aside.push(file),
            Err(failed) => {
                // What was written aside goes first: only an empty folder is removed.
                drop(aside);
                for draft in &written {
                    draft.remove_folders(session).await;
                }
                return Err(failed.unchanged());
            }
        }
    }
    // From here on an interrupt waits.
    session.begin_committing();
    let mut done: Vec<&PatchDraft> = Vec::new();
    let mut aside = aside.into_iter();
    for draft in written.into_iter().chain(removed) {
        let made = match (&draft.new, aside.next()) {
            (Some(_), Some(file)) => session.patiently(&draft.place, file.finish()).await,
            (Some(_), None) => match draft.write_aside(session).await {
                Ok(file) => session.patiently(&draft.place, file.finish()).await,
                Err(failed) => Err(failed),
            },
            (None, _) => session.remove(&draft.place).await,
        };
        if let Err(failed) = made {
            drop(aside);
            return Err(undo(session, &done, draft, failed).await);
        }
        done.push(draft);
    }
    for draft in done.iter().filter(|draft| draft.new.is_some()) {
        session.note_written(&draft.place).await;
    }
    Ok(named(&done))
}

/// Puts back what was there before.
async fn undo(
    session: &FileSession<'_>,
    done: &[&PatchDraft],
    last: &PatchDraft,
    failed: FileToolFailure,
) -> FileToolFailure {
    last.remove_folders(session).await;
    let mut stuck = Vec::new();
    for draft in done.iter().rev() {
        let undone = match &draft.old {
            Some(old) => draft.put(session, &old.text).await,
            None => session.remove(&draft.place).await,
        };
        match undone {
            Ok(()) if draft.old.is_some() => session.note_written(&draft.place).await,
            Ok(()) => draft.remove_folders(session).await,
            Err(error) => {
                tracing::error!(%error, "a change of a patch could not be undone");
                stuck.push(*draft);
            }
        }
    }
    if stuck.is_empty() {
        return failed.unchanged();
    }
    let mut failed =
        failed.and("Part of the patch was made and could not be undone; see the files named here.");
    if let Value::Object(lists) = named(&stuck) {
        for (key, list) in lists {
            failed = failed.with(&key, list);
        }
    }
    failed
}

fn named(drafts: &[&PatchDraft]) -> Value {
    let (mut modified, mut created, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    for draft in drafts {
        let list = match (&draft.old, &draft.new) {
            (_, None) => &mut deleted,
            (None, Some(_)) => &mut created,
            (Some(_), Some(_)) => &mut modified,
        };
        list.push(draft.place.shown());
    }
    let mut json = json!({});
    for (key, list) in [
        ("files_modified", modified),
        ("files_created", created),
        ("files_deleted", deleted),
    ] {
        if !list.is_empty() {
            json[key] = json!(list);
        }
    }
    json
}

impl PatchDraft {
    /// The new text, next to its place.
    async fn write_aside(&self, session: &FileSession<'_>) -> Result<FileWriter, FileToolFailure> {
        let text = self
            .new
            .as_ref()
            .map(FileText::to_bytes)
            .unwrap_or_default();
        let write = WriteRequest {
            mode: self.mode,
            parents: true,
            replaces: self.old.as_ref().and_then(|old| old.stamp),
            ..WriteRequest::new(PathAt::resolved(self.place.path.clone()))
        };
        let warden = session.sandbox.warden();
        session
            .patiently(&self.place, async {
                let mut file = warden.write_file(write).await?;
                file.write(&text).await?;
                Ok(file)
            })
            .await
    }

    async fn put(&self, session: &FileSession<'_>, text: &FileText) -> Result<(), FileToolFailure> {
        let write = WriteRequest {
            mode: self.mode,
            parents: true,
            ..WriteRequest::new(PathAt::resolved(self.place.path.clone()))
        };
        session.store(&self.place, &text.to_bytes(), write).await
    }

    /// A file that somebody changed meanwhile is not removed for what it was.
    async fn check_unchanged(&self, session: &FileSession<'_>) -> Result<(), FileToolFailure> {
        let at = PathAt::resolved(self.place.path.clone());
        let now = session
            .patiently(&self.place, session.sandbox.warden().stat(at))
            .await?;
        if self.old.as_ref().and_then(|old| old.stamp) == Some(now.stamp()) {
            return Ok(());
        }
        let changed = format!(
            "{}: the file was changed by somebody else meanwhile; read it again and repeat the change",
            self.place.asked
        );
        Err(FileToolFailure::new(changed).unchanged())
    }

    /// Folders that were made for it and are empty.
    async fn remove_folders(&self, session: &FileSession<'_>) {
        let mut path = self.place.path.0.as_slice();
        for _ in 1..self.place.missing {
            let Some(end) = path.iter().rposition(|byte| *byte == b'/') else {
                return;
            };
            path = &path[..end];
            let at = PathAt::resolved(ByteString(path.to_vec()));
            if session.sandbox.warden().remove(at).await.is_err() {
                return;
            }
        }
    }
}
