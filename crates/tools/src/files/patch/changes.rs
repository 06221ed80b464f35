//! What a patch makes of every file it names, before any of it is written.

use hermetic_redact::MASK;
use hermetic_warden::protocol::FileVersion;
use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::text::FileText;
use super::{LONGEST_PATCHED_FILE, apply, replace, seek, v4a};
use crate::files::FileToolFailure;
use crate::files::file_session::FileSession;
use crate::files::path_policy::PathAct;
use crate::files::place::ResolvedPath;
use crate::files::write::{MODE, lost_secret};

#[derive(Debug)]
pub(super) struct PatchChanges<'a> {
    session: &'a FileSession<'a>,
    drafts: Vec<PatchDraft>,
}

/// A file as it was and as it is to be.
#[derive(Debug)]
pub(super) struct PatchDraft {
    pub(super) place: ResolvedPath,
    pub(super) old: Option<OldFile>,
    pub(super) new: Option<FileText>,
    pub(super) mode: u32,
}

#[derive(Debug)]
pub(super) struct OldFile {
    pub(super) text: FileText,
    pub(super) stamp: Option<FileVersion>,
}

/// Files of one patch that are looked at.
const MOST_LINTED: usize = 16;
/// How much of the differences is shown.
const DIFF_CHARS: usize = 40_000;
const DIFF_PATIENCE: std::time::Duration = std::time::Duration::from_millis(500);

impl<'a> PatchChanges<'a> {
    pub(super) fn new(session: &'a FileSession<'a>) -> Self {
        Self {
            session,
            drafts: Vec::new(),
        }
    }

    pub(super) async fn update(
        &mut self,
        path: &str,
        change: impl FnOnce(&str) -> Result<String, FileToolFailure>,
    ) -> Result<(), FileToolFailure> {
        let at = self.open(path).await?;
        let draft = &mut self.drafts[at];
        let Some(text) = &draft.new else {
            return Err(match draft.old {
                Some(_) => {
                    FileToolFailure::new(format!("{path}: the patch has removed it already"))
                }
                None => self.not_found(path).await,
            });
        };
        let changed = change(&text.lines).map_err(|failed| failed.within(path))?;
        draft.new = Some(text.with(changed));
        Ok(())
    }

    pub(super) async fn add(&mut self, path: &str, text: String) -> Result<(), FileToolFailure> {
        let at = self.open(path).await?;
        let draft = &mut self.drafts[at];
        if draft.new.is_some() {
            return Err(FileToolFailure::new(format!(
                "{path}: there is such a file already; change it with `*** Update File:`"
            )));
        }
        draft.new = Some(FileText::plain(text));
        Ok(())
    }

    pub(super) async fn delete(&mut self, path: &str) -> Result<(), FileToolFailure> {
        let at = self.open(path).await?;
        if self.drafts[at].new.take().is_none() {
            return Err(self.not_found(path).await);
        }
        Ok(())
    }

    pub(super) async fn rename(&mut self, from: &str, to: &str) -> Result<(), FileToolFailure> {
        let from_at = self.open(from).await?;
        let to_at = self.open(to).await?;
        if self.drafts[to_at].new.is_some() {
            return Err(FileToolFailure::new(format!(
                "{to}: there is such a file already"
            )));
        }
        let mode = self.drafts[from_at].mode;
        let Some(text) = self.drafts[from_at].new.take() else {
            return Err(self.not_found(from).await);
        };
        self.drafts[to_at].new = Some(text);
        self.drafts[to_at].mode = mode;
        Ok(())
    }

    /// Judges every change, then makes them.
    pub(super) async fn commit(self) -> Result<Value, FileToolFailure> {
        let session = self.session;
        let drafts: Vec<PatchDraft> = self
            .drafts
            .into_iter()
            .filter(PatchDraft::is_change)
            .collect();
        if drafts.is_empty() {
            return Err(FileToolFailure::new("the patch changes nothing"));
        }
        for draft in &drafts {
            draft.refuse_masked()?;
            let act = if draft.new.is_some() {
                PathAct::Write
            } else {
                PathAct::Remove
            };
            session.clear(act, &draft.place).await?;
        }
        // Before they are written, after which the files are the agent's own.
        let stale = drafts
            .iter()
            .filter_map(|draft| session.stale_warning(&draft.place));
        let warnings: Vec<String> = stale.collect();
        let mut json = apply::apply(session, &drafts).await?;
        json["success"] = json!(true);
        json["diff"] = json!(diffs(session, &drafts));
        let lint = lint(session, &drafts).await;
        match &drafts[..] {
            [only] => {
                json["resolved_path"] = json!(only.place.shown());
                if let Some(lint) = lint.into_values().next() {
                    json["lint"] = lint;
                }
            }
            _ if lint.is_empty() => {}
            _ => json["lint"] = Value::Object(lint),
        }
        if !warnings.is_empty() {
            json["_warning"] = json!(warnings.join(" "));
        }
        Ok(json)
    }

    /// The draft of this file, begun if this is the first time it is named.
    async fn open(&mut self, path: &str) -> Result<usize, FileToolFailure> {
        let place = self.session.locate(path).await?;
        // One draft for each file, whatever it is called: of two, each would undo what the other
        // changes.
        let same = |draft: &PatchDraft| draft.place.path == place.path;
        if let Some(at) = self.drafts.iter().position(same) {
            return Ok(at);
        }
        let old = if place.exists() {
            // What is not to be read is not to be shown in a difference either.
            self.session.clear(PathAct::Read, &place).await?;
            let bytes = self
                .session
                .fetch(&place, LONGEST_PATCHED_FILE)
                .await?
                .ok_or_else(|| {
                    FileToolFailure::new(format!(
                        "{path} is longer than {} MiB",
                        LONGEST_PATCHED_FILE >> 20
                    ))
                })?;
            let text = FileText::read(bytes).ok_or_else(|| {
                FileToolFailure::new(format!(
                    "{path} is not UTF-8 text; a patch would ruin it. Use the terminal."
                ))
            })?;
            Some(OldFile {
                text,
                stamp: place.stamp(),
            })
        } else {
            None
        };
        let mode = place
            .metadata
            .as_ref()
            .map_or(MODE, |metadata| metadata.mode);
        self.drafts.push(PatchDraft {
            new: old.as_ref().map(|old| old.text.clone()),
            place,
            old,
            mode,
        });
        Ok(self.drafts.len() - 1)
    }

    async fn not_found(&self, path: &str) -> FileToolFailure {
        match self.session.locate_existing(path).await {
            Err(failed) => failed,
            Ok(_) => FileToolFailure::new(format!("{path}: not there in this patch")),
        }
    }
}

impl PatchDraft {
    fn is_change(&self) -> bool {
        self.old.as_ref().map(|old| &old.text) != self.new.as_ref()
    }

    fn refuse_masked(&self) -> Result<(), FileToolFailure> {
        let masks = |text: &FileText| text.lines.matches(MASK).count();
        match (&self.old, &self.new) {
            (Some(old), Some(new)) if masks(new) > masks(&old.text) => {
                Err(lost_secret(&self.place.asked))
            }
            _ => Ok(()),
        }
    }
}

/// Of those files that somebody can tell about.
async fn lint(session: &FileSession<'_>, drafts: &[PatchDraft]) -> Map<String, Value> {
    let mut all = Map::new();
    for draft in drafts.iter().take(MOST_LINTED) {
        if let Some(text) = &draft.new
            && let Some(lint) = session.lint(&draft.place, &text.lines).await
        {
            all.insert(draft.place.asked.clone(), lint);
        }
    }
    all
}

/// Of texts without their secrets: the marks of a difference would hide them from the redactor.
fn diffs(session: &FileSession<'_>, drafts: &[PatchDraft]) -> String {
    let clean = |text: Option<&FileText>| {
        let lines = text.map_or("", |text| text.lines.as_str());
        session.files.redactor.redact(lines).into_inner()
    };
    let mut whole = String::new();
    for draft in drafts {
        let old = clean(draft.old.as_ref().map(|old| &old.text));
        let new = clean(draft.new.as_ref());
        let name = draft.place.shown();
        let name = name.trim_start_matches('/');
        let diff = TextDiff::configure()
            .timeout(DIFF_PATIENCE)
            .diff_lines(&old, &new);
        let diff = diff
            .unified_diff()
            .header(&format!("a/{name}"), &format!("b/{name}"))
            .to_string();
        whole.push_str(&diff);
    }
    match whole.char_indices().nth(DIFF_CHARS) {
        Some((end, _)) => format!("{}\n[… the rest is left out …]", &whole[..end]),
        None => whole,
    }
}

impl From<v4a::BadPatch> for FileToolFailure {
    fn from(bad: v4a::BadPatch) -> Self {
        Self::new(bad.to_string())
    }
}

impl From<seek::NoPlace> for FileToolFailure {
    fn from(none: seek::NoPlace) -> Self {
        Self::new(none.to_string())
    }
}

impl From<replace::NotReplaced> for FileToolFailure {
    fn from(not: replace::NotReplaced) -> Self {
        Self::new(not.to_string())
    }
}
