//! All changes of a patch, or none.
//!
//! Every new text is first written aside, next to its place, where a full disk or a folder that cannot
//! be written to shows while nothing has changed yet. Then the files take their places, one rename
//! each, and what is to go is removed. Should one of these fail all the same, those before it are
//! undone, last first, and what could not be undone is named.

use hermetic_warden::client::FileWriter;
use hermetic_warden::protocol::{ByteString, PathAt, Write};
use serde_json::{Value, json};

use super::changes::Draft;
use super::text::Text;
use crate::files::Failed;
use crate::files::desk::Desk;

/// Files that are open at once. What a patch changes beyond these is written when its turn comes.
const MOST_ASIDE: usize = 256;

/// Makes the changes; the files they concern, by what was done to them.
pub(super) async fn apply(desk: &Desk<'_>, drafts: &[Draft]) -> Result<Value, Failed> {
    // What is removed goes last: until then every text is somewhere.
    let (written, removed): (Vec<&Draft>, Vec<_>) =
        drafts.iter().partition(|draft| draft.new.is_some());
    for draft in &removed {
        draft.check_unchanged(desk).await?;
    }
    let mut aside = Vec::new();
    for draft in written.iter().take(MOST_ASIDE) {
        match draft.write_aside(desk).await {
            Ok(file) => aside.push(file),
            Err(failed) => {
                drop(aside);
                for draft in &written {
                    draft.remove_folders(desk).await;
                }
                return Err(failed.unchanged());
            }
        }
    }
    // From here on an interrupt waits.
    desk.begin_committing();
    let mut done: Vec<&Draft> = Vec::new();
    let mut aside = aside.into_iter();
    for draft in written.into_iter().chain(removed) {
        let made = match (&draft.new, aside.next()) {
            (Some(_), Some(file)) => desk.patiently(&draft.place, file.finish()).await,
            (Some(_), None) => match draft.write_aside(desk).await {
                Ok(file) => desk.patiently(&draft.place, file.finish()).await,
                Err(failed) => Err(failed),
            },
            (None, _) => desk.remove(&draft.place).await,
        };
        if let Err(failed) = made {
            drop(aside);
            return Err(undo(desk, &done, draft, failed).await);
        }
        done.push(draft);
    }
    for draft in done.iter().filter(|draft| draft.new.is_some()) {
        desk.note_written(&draft.place).await;
    }
    Ok(named(&done))
}

/// Puts back what was there before.
async fn undo(desk: &Desk<'_>, done: &[&Draft], last: &Draft, failed: Failed) -> Failed {
    last.remove_folders(desk).await;
    let mut stuck = Vec::new();
    for draft in done.iter().rev() {
        let undone = match &draft.old {
            Some(old) => draft.put(desk, &old.text).await,
            None => desk.remove(&draft.place).await,
        };
        match undone {
            Ok(()) if draft.old.is_some() => desk.note_written(&draft.place).await,
            Ok(()) => draft.remove_folders(desk).await,
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

fn named(drafts: &[&Draft]) -> Value {
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

impl Draft {
    /// The new text, next to its place.
    async fn write_aside(&self, desk: &Desk<'_>) -> Result<FileWriter, Failed> {
        let text = self.new.as_ref().map(Text::to_bytes).unwrap_or_default();
        let write = Write {
            mode: self.mode,
            parents: true,
            replaces: self.old.as_ref().and_then(|old| old.stamp),
            ..Write::new(PathAt::resolved(self.place.path.clone()))
        };
        let warden = desk.sandbox.warden();
        desk.patiently(&self.place, async {
            let mut file = warden.write_file(write).await?;
            file.write(&text).await?;
            Ok(file)
        })
        .await
    }

    async fn put(&self, desk: &Desk<'_>, text: &Text) -> Result<(), Failed> {
        let write = Write {
            mode: self.mode,
            parents: true,
            ..Write::new(PathAt::resolved(self.place.path.clone()))
        };
        desk.store(&self.place, &text.to_bytes(), write).await
    }

    /// A file that somebody changed meanwhile is not removed for what it was.
    async fn check_unchanged(&self, desk: &Desk<'_>) -> Result<(), Failed> {
        let at = PathAt::resolved(self.place.path.clone());
        let now = desk
            .patiently(&self.place, desk.sandbox.warden().stat(at))
            .await?;
        if self.old.as_ref().and_then(|old| old.stamp) == Some(now.stamp()) {
            return Ok(());
        }
        let changed = format!(
            "{}: the file was changed by somebody else meanwhile; read it again and repeat the change",
            self.place.asked
        );
        Err(Failed::new(changed).unchanged())
    }

    /// Folders that were made for it and are empty.
    async fn remove_folders(&self, desk: &Desk<'_>) {
        let mut path = self.place.path.0.as_slice();
        for _ in 1..self.place.missing {
            let Some(end) = path.iter().rposition(|byte| *byte == b'/') else {
                return;
            };
            path = &path[..end];
            let at = PathAt::resolved(ByteString(path.to_vec()));
            if desk.sandbox.warden().remove(at).await.is_err() {
                return;
            }
        }
    }
}
