//! Skills that an agent wrote: kept until a person has read them, and used by nobody before.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use hermetic_redact::Redactor;
use hermetic_store::{SkillDraftRow, SkillDraftRows, StoreError};
use hermetic_types::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::catalog::{LONGEST_NAME, MOST_FILES, SkillCatalog, is_support_path};
use super::front_matter::FrontMatter;
use super::skill_folder;
use crate::MemoryOwner;
use crate::scan::{self, ScanFinding, ScanScope};

/// What a skill shall become.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillDraft {
    pub name: String,
    pub category: Option<String>,
    /// The files that differ from what there is, by their paths.
    pub files: BTreeMap<String, DraftedFile>,
    /// Whether the whole skill shall go.
    #[serde(default)]
    pub deleted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftedFile {
    Written(String),
    Removed,
}

#[derive(Debug, Error)]
pub enum DraftError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("Unknown action. Use: create, patch, edit, delete, write_file, remove_file.")]
    Action,
    #[error(
        "A name has 1 to 64 small letters, digits, dots, dashes and underscores, and begins with a letter or digit."
    )]
    Name,
    #[error("A category is a name like that of a skill.")]
    Category,
    #[error("There is a skill of this name already. Use patch or edit.")]
    Exists,
    #[error("There is no such skill. skills_list names those there are.")]
    NoSkill,
    #[error("{0} is required for this action.")]
    Missing(&'static str),
    #[error("A file of a skill lies below references/, templates/, scripts/ or assets/.")]
    Path,
    #[error("The skill has no such file.")]
    NoFile,
    #[error("SKILL.md begins with a head between lines of ---, which has name and description.")]
    Head,
    #[error("old_string was not found.")]
    NoMatch,
    #[error("old_string was found {0} times; make it unique or set replace_all.")]
    SeveralMatch(usize),
    #[error("Too large: a SKILL.md may have 100,000 characters, and a draft {MOST_BODY} bytes.")]
    TooLarge,
    #[error("Blocked: {0}. A skill is followed by every later conversation.")]
    Found(ScanFinding),
    #[error("Only the operator removes this skill: it was not written here.")]
    NotOurs,
    #[error("Too many skills wait for review already; they have to be approved or rejected first.")]
    TooManyWait,
    #[error("no skill waits under this name; it may have been changed since: review it again")]
    NoSuchDraft,
    #[error("cannot write the skill")]
    Write(#[source] io::Error),
}

const MOST_CHARS: usize = 100_000;
const MOST_BODY: usize = 512 << 10;
/// Drafts of one owner, and of all.
const MOST_WAITING: (u32, u32) = (10, 100);

/// Where drafts are kept.
#[derive(Clone, Debug)]
pub struct SkillDrafts {
    rows: SkillDraftRows,
    catalog: SkillCatalog,
    redactor: Redactor,
}

impl SkillDrafts {
    pub const TOOL: &str = "skill_manage";

    pub fn new(rows: SkillDraftRows, catalog: SkillCatalog, redactor: Redactor) -> Self {
        Self {
            rows,
            catalog,
            redactor,
        }
    }

    /// Answers a call of the tool, and says whether it failed.
    pub async fn call(
        &self,
        owner: &MemoryOwner,
        arguments: &Map<String, Value>,
        now: Timestamp,
    ) -> Result<(Value, bool), StoreError> {
        match self.draft(owner, arguments, now).await {
            Ok(digest) => Ok((
                json!({"success": true, "staged": true, "pending_id": digest,
                    "message": "Written down for review. It is not used before the operator approved it \
                        (hermetic skills review)."}),
                false,
            )),
            Err(DraftError::Store(error)) => Err(error),
            Err(error) => Ok((json!({"success": false, "error": error.to_string()}), true)),
        }
    }

    async fn draft(
        &self,
        owner: &MemoryOwner,
        arguments: &Map<String, Value>,
        now: Timestamp,
    ) -> Result<String, DraftError> {
        let text = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let name = text("name");
        if !is_name(name) {
            return Err(DraftError::Name);
        }
        let owner = owner.to_string();
        // On top of what waits already: several calls make one skill, and the person reviews it
        // whole.
        let waiting = self.rows.of(&owner, name).await?;
        let before = waiting.and_then(|row| SkillDraft::read(&row));
        let base = self.used(name).await;
        // Only what differs is kept, and joined with the skill as it is when a person approves:
        // what the operator changed in other files meanwhile is not undone.
        let mut draft = before.unwrap_or_else(|| SkillDraft {
            name: name.to_owned(),
            category: base.category.clone(),
            ..SkillDraft::default()
        });
        // Changed, then redacted, then checked, and only then named by its digest: what a person
        // reviews and approves is the very text that is kept.
        draft.change(&base, arguments)?;
        for file in draft.files.values_mut() {
            if let DraftedFile::Written(text) = file {
                *text = self.redactor.redact(&text).into_inner();
            }
        }
        draft.check()?;
        let body = serde_json::to_string(&draft).unwrap_or_default();
        let row = SkillDraftRow {
            digest: digest(&owner, &body),
            owner,
            name: name.to_owned(),
            body,
            written_at: now,
        };
        // The bound is looked at in the same statement as the write: two agents at once would
        // otherwise both find room for the last.
        match self.rows.put(&row, MOST_WAITING).await? {
            true => Ok(row.digest),
            false => Err(DraftError::TooManyWait),
        }
    }

    async fn used(&self, name: &str) -> UsedSkill {
        let (catalog, wanted) = (self.catalog.clone(), name.to_owned());
        // Files are read aside.
        let found = tokio::task::spawn_blocking(move || {
            let skill = catalog.find(&wanted)?;
            Some(UsedSkill {
                files: catalog.files(&skill),
                exists: true,
                is_own: skill.is_own,
                category: skill.category,
            })
        });
        found.await.unwrap_or(None).unwrap_or_default()
    }

    pub async fn waiting(&self) -> Result<Vec<(SkillDraftRow, SkillDraft)>, StoreError> {
        let rows = self.rows.all().await?.into_iter();
        Ok(rows
            .filter_map(|row| SkillDraft::read(&row).map(|draft| (row, draft)))
            .collect())
    }

    /// The draft of exactly this text.
    pub async fn find(&self, digest: &str) -> Result<(SkillDraftRow, SkillDraft), DraftError> {
        let mut waiting = self.waiting().await?.into_iter();
        let found = waiting.find(|(row, _)| row.digest == digest);
        found.ok_or(DraftError::NoSuchDraft)
    }

    /// Makes a skill of it, by a person's word: from now on it is used.
    pub async fn approve(&self, digest: &str) -> Result<SkillDraft, DraftError> {
        let (row, draft) = self.find(digest).await?;
        // Before the draft is taken away: killed between the two, it waits once more, and approving
        // it again writes the same files.
        draft.apply(&self.catalog).map_err(DraftError::Write)?;
        self.rows.settle(&row.digest).await?;
        Ok(draft)
    }

    pub async fn reject(&self, digest: &str) -> Result<(), DraftError> {
        match self.rows.settle(digest).await? {
            true => Ok(()),
            false => Err(DraftError::NoSuchDraft),
        }
    }
}

/// The skill as it is used today; empty where there is none of the name.
#[derive(Default)]
struct UsedSkill {
    files: BTreeMap<String, String>,
    exists: bool,
    is_own: bool,
    category: Option<String>,
}

impl SkillDraft {
    fn read(row: &SkillDraftRow) -> Option<Self> {
        serde_json::from_str(&row.body).ok()
    }

    fn change(
        &mut self,
        base: &UsedSkill,
        arguments: &Map<String, Value>,
    ) -> Result<(), DraftError> {
        let text = |name: &'static str| {
            let text = arguments.get(name).and_then(Value::as_str);
            text.filter(|text| !text.is_empty())
                .ok_or(DraftError::Missing(name))
        };
        let is_there = base.exists || self.files.contains_key("SKILL.md");
        let action = arguments
            .get("action")
            .and_then(Value::as_str)
            .unwrap_or_default();
        // A draft that waits counts as there, so that an agent can mend what it has just written.
        if action != "create" && !is_there {
            return Err(DraftError::NoSkill);
        }
        match action {
            "create" if base.exists => return Err(DraftError::Exists),
            "create" => {
                let category = text("category").ok();
                if category.is_some_and(|category| !is_name(category)) {
                    return Err(DraftError::Category);
                }
                self.category = category.map(str::to_owned);
                self.write("SKILL.md", text("content")?.to_owned());
            }
            "edit" => self.write("SKILL.md", text("content")?.to_owned()),
            "patch" => {
                let path = text("file_path").unwrap_or("SKILL.md");
                let now = self.current(base, path).ok_or(DraftError::NoFile)?;
                let new = arguments.get("new_string").and_then(Value::as_str);
                let new = new.ok_or(DraftError::Missing("new_string"))?;
                let all = arguments.get("replace_all").and_then(Value::as_bool);
                let patched = patched(&now, text("old_string")?, new, all.unwrap_or(false))?;
                self.write(path, patched);
            }
            "write_file" => {
                let path = text("file_path")?;
                let content = arguments.get("file_content").and_then(Value::as_str);
                let content = content.ok_or(DraftError::Missing("file_content"))?;
                self.write(path, content.to_owned());
            }
            "remove_file" => {
                let path = text("file_path")?;
                if path == "SKILL.md" || self.current(base, path).is_none() {
                    return Err(DraftError::NoFile);
                }
                self.files.insert(path.to_owned(), DraftedFile::Removed);
            }
            // Folders of others are only read, so nothing would come of it. Said now, and not to
            // the person who says yes to it.
            "delete" if base.exists && !base.is_own => return Err(DraftError::NotOurs),
            "delete" => {
                self.files.clear();
                self.deleted = true;
            }
            _ => return Err(DraftError::Action),
        }
        Ok(())
    }

    fn write(&mut self, path: &str, text: String) {
        self.deleted = false;
        self.files
            .insert(path.to_owned(), DraftedFile::Written(text));
    }

    /// A file as the draft leaves it.
    fn current(&self, base: &UsedSkill, path: &str) -> Option<String> {
        match self.files.get(path) {
            Some(DraftedFile::Written(text)) => Some(text.clone()),
            Some(DraftedFile::Removed) => None,
            None => base.files.get(path).cloned(),
        }
    }

    fn check(&self) -> Result<(), DraftError> {
        let mut size = 0;
        for (path, file) in &self.files {
            let is_head = path == "SKILL.md";
            if !is_head && !is_support_path(path) {
                return Err(DraftError::Path);
            }
            let DraftedFile::Written(text) = file else {
                continue;
            };
            size += path.len() + text.len();
            if is_head {
                let (head, _) = FrontMatter::split(text);
                // The catalogue goes by the head and not by the folder: another name there would
                // put this text in the place of another skill.
                if head.name.as_deref() != Some(&self.name) || head.description.is_none() {
                    return Err(DraftError::Head);
                }
                if text.chars().count() > MOST_CHARS {
                    return Err(DraftError::TooLarge);
                }
            }
            if let Some(finding) = scan::first_finding(text, ScanScope::Strict) {
                return Err(DraftError::Found(finding));
            }
        }
        match size > MOST_BODY || self.files.len() > MOST_FILES {
            true => Err(DraftError::TooLarge),
            false => Ok(()),
        }
    }

    /// Writes it into our folder. A skill of somebody else is copied there first, as far as it is text.
    fn apply(&self, catalog: &SkillCatalog) -> io::Result<()> {
        let known = catalog.find(&self.name);
        // It may also be the name of a folder of others, which nobody has looked at, and becomes
        // part of a path here.
        let category = self.category.as_deref().filter(|name| is_name(name));
        let usual = catalog
            .own_folder()
            .join(category.unwrap_or("general"))
            .join(&self.name);
        let folder = match &known {
            // Where it lies already, whatever category the draft names: in two folders there would
            // be two of one name.
            Some(skill) if skill.is_own => skill.folder.clone(),
            _ => usual,
        };
        if self.deleted {
            return match known {
                Some(skill) if skill.is_own => fs::remove_dir_all(skill.folder),
                _ => Ok(()),
            };
        }
        // What is our own stays where it lies, with whatever is beside it: only the drafted files change. A skill
        // of somebody else is copied first.
        let mut changes: BTreeMap<String, DraftedFile> = match &known {
            Some(skill) if !skill.is_own => {
                let files = catalog.files(skill).into_iter();
                files
                    .map(|(path, text)| (path, DraftedFile::Written(text)))
                    .collect()
            }
            _ => BTreeMap::new(),
        };
        changes.extend(self.files.clone());
        skill_folder::change(&folder, &changes)
    }
}

fn patched(text: &str, old: &str, new: &str, all: bool) -> Result<String, DraftError> {
    match text.matches(old).count() {
        0 => Err(DraftError::NoMatch),
        1 => Ok(text.replacen(old, new, 1)),
        _ if all => Ok(text.replace(old, new)),
        several => Err(DraftError::SeveralMatch(several)),
    }
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=LONGEST_NAME).contains(&name.len())
        && name.starts_with(plain)
        && name
            .chars()
            .all(|c| plain(c) || matches!(c, '.' | '_' | '-'))
}

/// Short enough to be typed, and another one for another text.
fn digest(owner: &str, body: &str) -> String {
    let hash = Sha256::new()
        .chain_update(owner)
        .chain_update("\n")
        .chain_update(body);
    let hash = hash.finalize();
    hash.iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
#[path = "draft_tests.rs"]
mod tests;
