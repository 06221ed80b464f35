//! patch: a replacement in one file, or a V4A patch over many.
//!
//! Both first work out every file's new text, and only when all of them are known is anything judged
//! and written. A file that somebody else changed in between is not overwritten.

mod apply;
mod changes;
mod nearest;
mod replace;
mod seek;
mod text;
mod v4a;

use serde_json::{Value, json};

use super::FileToolFailure;
use super::arguments::FileArguments;
use super::file_session::FileSession;
use changes::PatchChanges;
use v4a::PatchStep;

/// Longer files are no texts that a model edits.
const LONGEST_PATCHED_FILE: usize = 16 << 20;

pub(super) fn properties() -> Value {
    json!({
        "mode": {
            "type": "string", "enum": ["replace", "patch"], "default": "replace",
            "description": "replace needs path, old_string and new_string; patch needs patch",
        },
        "path": {"type": "string", "description": "mode=replace: the file"},
        "old_string": {
            "type": "string",
            "description": "mode=replace: the exact text, with enough around it to occur once",
        },
        "new_string": {
            "type": "string", "description": "mode=replace: what stands there instead; may be empty",
        },
        "replace_all": {
            "type": "boolean", "default": false,
            "description": "mode=replace: every occurrence instead of the only one",
        },
        "patch": {
            "type": "string",
            "description": "mode=patch, in V4A form:\n*** Begin Patch\n*** Update File: path\n\
                            @@ a line above the change @@\n context\n-removed\n+added\n\
                            *** Add File: path\n+text\n*** Delete File: path\n\
                            *** Move File: from -> to\n*** End Patch",
        },
        "cross_profile": {
            "type": "boolean", "default": false, "description": "has no effect here",
        },
    })
}

impl FileSession<'_> {
    pub(super) async fn patch(
        &self,
        arguments: &FileArguments<'_>,
    ) -> Result<Value, FileToolFailure> {
        let mut changes = PatchChanges::new(self);
        match arguments.text("mode")?.unwrap_or("replace") {
            "replace" => {
                let path = arguments.path("path")?;
                let old = arguments.needed("old_string")?;
                let new = arguments.needed("new_string")?;
                let all = arguments.flag("replace_all")?;
                changes
                    .update(path, |text| Ok(replace::replace(text, old, new, all)?))
                    .await?;
            }
            "patch" => {
                for step in v4a::parse(arguments.needed("patch")?)? {
                    apply(&mut changes, step).await?;
                }
            }
            other => {
                return Err(FileToolFailure::new(format!(
                    "mode is {other:?}; expected replace or patch"
                )));
            }
        }
        changes.commit().await
    }
}

async fn apply(changes: &mut PatchChanges<'_>, step: PatchStep) -> Result<(), FileToolFailure> {
    match step {
        PatchStep::Add { path, text } => changes.add(&path, text).await,
        PatchStep::Delete { path } => changes.delete(&path).await,
        PatchStep::Move { from, to } => changes.rename(&from, &to).await,
        PatchStep::Update { path, to, hunks } => {
            changes
                .update(&path, |text| Ok(seek::apply(text, &hunks)?))
                .await?;
            match to {
                Some(to) => changes.rename(&path, &to).await,
                None => Ok(()),
            }
        }
    }
}
