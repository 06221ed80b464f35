//! Memories of each owner, in the store.

use std::path::{Path, PathBuf};

use hermetic_redact::Redactor;
use hermetic_store::{MemoryRequestRow, MemoryRow, MemoryRows, MemoryWrite, StoreError};
use hermetic_types::Timestamp;
use serde_json::{Value, json};
use thiserror::Error;
use uuid::Uuid;

use crate::entries::{fraction, usage};
use crate::operations::acceptable;
use crate::{
    BadOperation, MemoryChange, MemoryEntries, MemoryOperation, MemoryOwner, MemoryTarget,
    small_file,
};

#[derive(Clone, Debug)]
pub struct MemorySettings {
    /// Hermes' folder with the files of its single user. It is only read.
    pub folder: PathBuf,
    pub memory: MemoryTargetSettings,
    pub user: MemoryTargetSettings,
    /// Whether changes wait for a person.
    pub write_approval: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct MemoryTargetSettings {
    pub enabled: bool,
    pub char_limit: usize,
}

/// What is remembered, by whom it is.
#[derive(Clone, Debug)]
pub struct Memories {
    rows: MemoryRows,
    settings: MemorySettings,
    redactor: Redactor,
}

/// What a conversation is shown for as long as it lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemorySnapshot {
    /// A block for each target that has entries.
    pub blocks: Vec<String>,
    /// How often people had changed it by then.
    pub reviewed: u64,
}

#[derive(Debug, Error)]
pub enum MemoryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Bad(#[from] BadOperation),
    #[error(
        "memory is switched off for this target (memory.memory_enabled, memory.user_profile_enabled)"
    )]
    Off,
    #[error("would have {size}, which is over the limit; shorten or remove entries first")]
    TooLong { size: String },
    #[error("somebody else changes it at this moment; try again")]
    Outrun,
    #[error(
        "no more can be remembered here for anybody new; the operator can remove what is not needed"
    )]
    Full,
    #[error("too many changes wait for review already; they have to be approved or rejected first")]
    TooManyWait,
    #[error("there is no such change")]
    NoSuchRequest,
}

/// Rows of all owners; guests may fill half of them, so that nobody is locked out by strangers.
const MOST_ROWS: u32 = 20_000;
/// Changes that may wait, for one owner and for all.
const MOST_WAITING: (u32, u32) = (20, 2000);
/// Of Hermes' file.
const MOST_BYTES: u64 = 128 << 10;
/// How often a write is tried again after somebody was faster.
const TRIES: usize = 5;

impl Memories {
    pub fn new(rows: MemoryRows, settings: MemorySettings, redactor: Redactor) -> Self {
        Self {
            rows,
            settings,
            redactor,
        }
    }

    pub fn rows(&self) -> &MemoryRows {
        &self.rows
    }

    /// Whether anything is remembered at all.
    pub fn is_enabled(&self) -> bool {
        self.settings.memory.enabled || self.settings.user.enabled
    }

    pub fn of_target(&self, target: MemoryTarget) -> MemoryTargetSettings {
        match target {
            MemoryTarget::Memory => self.settings.memory,
            MemoryTarget::User => self.settings.user,
        }
    }

    /// What the system prompt shows from now on.
    pub async fn snapshot(&self, owner: &MemoryOwner) -> Result<MemorySnapshot, StoreError> {
        let rows = self.rows.of(&owner.to_string()).await?;
        let mut snapshot = MemorySnapshot {
            reviewed: reviewed(&rows),
            ..MemorySnapshot::default()
        };
        for target in MemoryTarget::ALL {
            let settings = self.of_target(target);
            if settings.enabled {
                let (entries, _) = self.found(owner, target, &rows);
                let block = entries.block(target, settings.char_limit);
                snapshot.blocks.extend((!block.is_empty()).then_some(block));
            }
        }
        Ok(snapshot)
    }

    /// How often people changed what is remembered for this owner.
    pub async fn reviewed(&self, owner: &MemoryOwner) -> Result<u64, StoreError> {
        Ok(reviewed(&self.rows.of(&owner.to_string()).await?))
    }

    pub async fn read(
        &self,
        owner: &MemoryOwner,
        target: MemoryTarget,
    ) -> Result<MemoryEntries, StoreError> {
        let rows = self.rows.of(&owner.to_string()).await?;
        Ok(self.found(owner, target, &rows).0)
    }

    /// Answers a call of the tool. Whatever goes wrong is told in the answer, and changes nothing.
    pub async fn call(
        &self,
        owner: &MemoryOwner,
        change: Result<MemoryChange, BadOperation>,
        (is_guest, now): (bool, Timestamp),
    ) -> Result<(Value, bool), StoreError> {
        let target = change
            .as_ref()
            .map_or(MemoryTarget::Memory, |change| change.target);
        let done = match change {
            Ok(change) => self.take(owner, change, is_guest, now).await,
            Err(bad) => Err(bad.into()),
        };
        let error = match done {
            Ok(done) => return Ok((done, false)),
            Err(MemoryError::Store(error)) => return Err(error),
            Err(error) => error,
        };
        let mut answer = json!({"success": false, "error": error.to_string()});
        // Whoever has to make room or meant another entry has to see what is there.
        let helps = matches!(
            error,
            MemoryError::TooLong { .. }
                | MemoryError::Bad(
                    BadOperation::NoOldText
                        | BadOperation::NoMatch(_)
                        | BadOperation::SeveralMatch(_)
                )
        );
        if helps {
            let entries = self.read(owner, target).await?;
            let limit = self.of_target(target).char_limit;
            answer["current_entries"] = entries.shown(target, limit).into();
            answer["usage"] = fraction(entries.chars(), limit).into();
        }
        Ok((answer, true))
    }

    async fn take(
        &self,
        owner: &MemoryOwner,
        change: MemoryChange,
        is_guest: bool,
        now: Timestamp,
    ) -> Result<Value, MemoryError> {
        let settings = self.of_target(change.target);
        if !settings.enabled {
            return Err(MemoryError::Off);
        }
        // Before anything else is done with it: what waits for a person lies in the store just as
        // what is remembered.
        let change = self.redacted(change);
        if self.settings.write_approval {
            // What cannot be done is said now, and not to the person who reviews it.
            let rows = self.rows.of(&owner.to_string()).await?;
            let (entries, _) = self.found(owner, change.target, &rows);
            self.changed(entries, &change)?;
            let id = self.ask(owner, &change, now).await?;
            return Ok(json!({
                "success": true, "staged": true, "pending_id": id,
                "message": "Not remembered yet: it waits for a person to approve it (/memory pending).",
            }));
        }
        // Looked at by the write itself, where the rows are counted, so that many strangers at once
        // do not each find the last place.
        let most_rows = if is_guest { MOST_ROWS / 2 } else { MOST_ROWS };
        let entries = self.apply(owner, &change, (false, most_rows), now).await?;
        Ok(json!({
            "success": true, "done": true, "target": change.target.name(),
            "usage": usage(entries.chars(), settings.char_limit),
            "entry_count": entries.len(),
            "message": format!("Applied {} change(s).", change.operations.len()),
            "note": "It is remembered, and shown from the next conversation on. Do not repeat it.",
        }))
    }

    /// Changes entries, by a person where it says so. All or nothing.
    async fn apply(
        &self,
        owner: &MemoryOwner,
        change: &MemoryChange,
        (by_person, most_rows): (bool, u32),
        now: Timestamp,
    ) -> Result<MemoryEntries, MemoryError> {
        let name = owner.to_string();
        for _ in 0..TRIES {
            let rows = self.rows.of(&name).await?;
            // Read anew at each try, and the change made on what was read: writing the text of the
            // first try would undo what the other one wrote.
            let (entries, expected) = self.found(owner, change.target, &rows);
            let before = entries.text();
            let entries = self.changed(entries, change)?;
            let text = entries.text();
            // A person's word is written even where it changes nothing: the count of those is how
            // conversations learn that they have to look anew.
            if text == before && !by_person {
                return Ok(entries);
            }
            let write = MemoryWrite {
                owner: &name,
                target: change.target.name(),
                entries: &text,
                expected,
                by_person,
                most_rows,
            };
            if self.rows.replace(write, now).await? {
                return Ok(entries);
            }
            let is_new = |row: &MemoryRow| row.target == change.target.name();
            // The write says no for two reasons. Looked up again, a row that is there now means
            // that somebody was faster, and none that there is no room for a new one.
            if expected == 0 && !self.rows.of(&name).await?.iter().any(is_new) {
                return Err(MemoryError::Full);
            }
        }
        Err(MemoryError::Outrun)
    }

    /// The entries after a change, if they still fit. What makes them shorter is taken whatever they have.
    fn changed(
        &self,
        entries: MemoryEntries,
        change: &MemoryChange,
    ) -> Result<MemoryEntries, MemoryError> {
        let before = entries.chars();
        let mut changed = entries;
        for operation in &change.operations {
            changed = changed.with(operation)?;
        }
        let (size, limit) = (changed.chars(), self.of_target(change.target).char_limit);
        // Only what makes it longer is refused: with a limit that was lowered, nobody could
        // otherwise remove anything.
        if size > limit && size >= before {
            return Err(MemoryError::TooLong {
                size: fraction(size, limit),
            });
        }
        Ok(changed)
    }

    /// Secrets are not remembered.
    fn redacted(&self, mut change: MemoryChange) -> MemoryChange {
        for operation in &mut change.operations {
            if let MemoryOperation::Add { content } | MemoryOperation::Replace { content, .. } =
                operation
            {
                *content = self.redactor.redact(&content).into_inner();
            }
        }
        change
    }

    async fn ask(
        &self,
        owner: &MemoryOwner,
        change: &MemoryChange,
        now: Timestamp,
    ) -> Result<String, MemoryError> {
        let id = Uuid::new_v4().simple().to_string()[..8].to_owned();
        let request = MemoryRequestRow {
            id: id.clone(),
            owner: owner.to_string(),
            target: change.target.name().to_owned(),
            // Plain data of strings always serialises.
            operations: serde_json::to_string(&change.operations).unwrap_or_default(),
            asked_at: now,
        };
        match self.rows.ask(&request, MOST_WAITING).await? {
            true => Ok(id),
            false => Err(MemoryError::TooManyWait),
        }
    }

    /// Takes over a change that waited, by a person's word. A change of somebody else is none.
    pub async fn approve(
        &self,
        owner: &MemoryOwner,
        id: &str,
        now: Timestamp,
    ) -> Result<(), MemoryError> {
        let request = self.waiting_request(owner, id).await?;
        let change = MemoryChange {
            target: MemoryTarget::of_name(&request.target).ok_or(BadOperation::Target)?,
            operations: serde_json::from_str(&request.operations)
                .map_err(|_| BadOperation::Operations)?,
        };
        // Killed between the two, the change is offered once more: adding twice adds once.
        self.apply(owner, &change, (true, MOST_ROWS), now).await?;
        self.rows.settle(id).await?;
        Ok(())
    }

    pub async fn reject(&self, owner: &MemoryOwner, id: &str) -> Result<(), MemoryError> {
        let request = self.waiting_request(owner, id).await?;
        self.rows.settle(&request.id).await?;
        Ok(())
    }

    async fn waiting_request(
        &self,
        owner: &MemoryOwner,
        id: &str,
    ) -> Result<MemoryRequestRow, MemoryError> {
        let waiting = self.rows.waiting_of(&owner.to_string()).await?;
        let found = waiting.into_iter().find(|request| request.id == id);
        found.ok_or(MemoryError::NoSuchRequest)
    }

    /// Removes the one entry that has this text in it, by a person's word.
    pub async fn remove(
        &self,
        owner: &MemoryOwner,
        target: MemoryTarget,
        text: &str,
        now: Timestamp,
    ) -> Result<(), MemoryError> {
        let change = MemoryChange {
            target,
            operations: vec![MemoryOperation::Remove {
                old_text: text.to_owned(),
            }],
        };
        let removed = self.apply(owner, &change, (true, MOST_ROWS), now);
        removed.await.map(drop)
    }

    /// Writes all entries anew, by a person's word. What a person writes is scanned and bounded like the rest.
    pub async fn rewrite(
        &self,
        owner: &MemoryOwner,
        target: MemoryTarget,
        (text, expected): (&str, u64),
        now: Timestamp,
    ) -> Result<(), MemoryError> {
        let entries = MemoryEntries::parse(text);
        for entry in entries.iter() {
            acceptable(entry)?;
        }
        let (size, limit) = (entries.chars(), self.of_target(target).char_limit);
        if size > limit {
            return Err(MemoryError::TooLong {
                size: fraction(size, limit),
            });
        }
        let write = MemoryWrite {
            owner: &owner.to_string(),
            target: target.name(),
            entries: &entries.text(),
            expected,
            by_person: true,
            most_rows: MOST_ROWS,
        };
        match self.rows.replace(write, now).await? {
            true => Ok(()),
            false => Err(MemoryError::Outrun),
        }
    }

    /// The entries and the version they have; 0 for those that nobody changed here.
    pub async fn versioned(
        &self,
        owner: &MemoryOwner,
        target: MemoryTarget,
    ) -> Result<(MemoryEntries, u64), StoreError> {
        let rows = self.rows.of(&owner.to_string()).await?;
        Ok(self.found(owner, target, &rows))
    }

    /// What is kept for a target, and its version. For the owner, what Hermes wrote counts until it is
    /// changed here: then all of it becomes ours, and Hermes' file stays as it is.
    fn found(
        &self,
        owner: &MemoryOwner,
        target: MemoryTarget,
        rows: &[MemoryRow],
    ) -> (MemoryEntries, u64) {
        if let Some(row) = rows.iter().find(|row| row.target == target.name()) {
            return (MemoryEntries::parse(&row.entries), row.version);
        }
        match owner {
            MemoryOwner::Owner => (of_hermes(&self.settings.folder, target), 0),
            MemoryOwner::Person(_) | MemoryOwner::Group(_) => (MemoryEntries::default(), 0),
        }
    }
}

fn reviewed(rows: &[MemoryRow]) -> u64 {
    rows.iter().map(|row| row.reviewed).sum()
}

fn of_hermes(folder: &Path, target: MemoryTarget) -> MemoryEntries {
    match small_file::read(&folder.join(target.file()), MOST_BYTES) {
        Ok(Some((text, _))) => MemoryEntries::parse(text.trim_start_matches('\u{feff}')),
        Ok(None) => MemoryEntries::default(),
        Err(error) => {
            tracing::warn!(%error, file = target.file(), "cannot be read");
            MemoryEntries::default()
        }
    }
}

#[cfg(test)]
#[path = "memories_tests.rs"]
mod tests;
