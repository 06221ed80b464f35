//! The files that sandboxes keep, as a part of a backup.
//!
//! They are packed by a program of ours inside, and what that writes is stored without being looked at: no path
//! that a sandbox could have replaced is opened from outside, and no name of its choosing is read here. They are
//! unpacked the same way, in a sandbox of the same conversation.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hermetic_app as app;
use hermetic_config::Config;
use hermetic_policy::{Cleared, OwnProgram};
use hermetic_sandbox::{Sandbox, SandboxSpec};
use hermetic_store::{LedgerState, SandboxLedger};
use hermetic_types::{BackendKind, InstallationId};
use hermetic_warden::client::RunEvent;
use hermetic_warden::protocol::{CommandEnd, ExitState};

use super::archive::ArchiveWriter;
use super::manifest::{LeftOutWorkspace, PackedWorkspace, workspace_name};
use super::new_file::folder_of;
use super::no_backup;
use crate::commands::sandbox::reach;
use crate::commands::sandbox::rows::{ListedSandbox, RowState, gather};
use crate::failure::CommandFailure;
use crate::output::printable;

/// What became of the files of each sandbox that keeps some.
#[derive(Debug, Default)]
pub(super) struct PackedWorkspaces {
    pub(super) packed: Vec<PackedWorkspace>,
    pub(super) left_out: Vec<LeftOutWorkspace>,
}

/// What an archive has beside the files, at the most: a header for each and the ends of blocks.
const HEADERS: u64 = 256 << 20;
/// What is kept of the words of a program inside.
const MOST_WORDS: usize = 300;

/// Packs one sandbox after the other. One that cannot be packed is named, and is no reason to have no backup.
pub(super) async fn add(
    archive: &mut ArchiveWriter<impl Write>,
    config: &Config,
    (to, installation): (&Path, &InstallationId),
) -> Result<PackedWorkspaces, CommandFailure> {
    let backends = app::all_backends(config, installation);
    let ledger = app::store(config).await?.ledger();
    let mut done = PackedWorkspaces::default();
    for row in gather(&backends, &ledger).await? {
        // What is gone has no files, and what was made for one command keeps none.
        if !row.keeps_files() || row.state == RowState::Gone {
            continue;
        }
        let spool = WorkspaceSpool::of(to, installation);
        let conversation = row.conversation.as_ref().map(ToString::to_string);
        let conversation = conversation.unwrap_or_default();
        let backend = row.kind.to_string();
        match pack(&row, &ledger, &spool).await {
            Ok(doubt) => {
                let file = File::open(&spool.0).map_err(|error| no_backup(to, &error))?;
                let bytes = file
                    .metadata()
                    .map_err(|error| no_backup(to, &error))?
                    .len();
                let added = archive.add(&workspace_name(&row.id), bytes, file);
                added.map_err(|error| no_backup(to, &error))?;
                done.packed.push(PackedWorkspace {
                    sandbox: row.id.clone(),
                    conversation,
                    backend,
                    bytes,
                    doubt,
                });
            }
            Err(PackError::NoRoom(error)) => return Err(no_backup(to, &error)),
            Err(PackError::LeftOut(why)) => done.left_out.push(LeftOutWorkspace {
                sandbox: row.id.clone(),
                conversation,
                backend,
                why,
            }),
        }
    }
    Ok(done)
}

/// Why the files of one sandbox were not packed.
#[derive(Debug)]
enum PackError {
    /// The disk of the backup ends it for all.
    NoRoom(io::Error),
    LeftOut(String),
}

impl PackError {
    fn of(error: &dyn std::error::Error) -> Self {
        Self::LeftOut(printable(&error.to_string()))
    }
}

/// Into a file beside the backup, because nobody knows its length before. Returns what was said by the way.
async fn pack(
    row: &ListedSandbox,
    ledger: &SandboxLedger,
    spool: &WorkspaceSpool,
) -> Result<Option<String>, PackError> {
    if !lies_here(row.kind) {
        let why = format!("its files are at {}, and stay there", row.kind);
        return Err(PackError::LeftOut(why));
    }
    let spec = row.ledger.as_ref().map(|entry| entry.spec.as_str());
    let spec: SandboxSpec = spec
        .and_then(|spec| serde_json::from_str(spec).ok())
        .ok_or_else(|| PackError::LeftOut("nobody knows how it was made".to_owned()))?;
    match row.state {
        RowState::Running => {
            let sandbox = reach(row).await;
            let sandbox = sandbox.map_err(|failure| PackError::LeftOut(failure.to_string()))?;
            packed(&sandbox, &spec, spool).await
        }
        RowState::Stopped => woken(row, &spec, ledger, spool).await,
        state => Err(PackError::LeftOut(format!("it is {}", state.name()))),
    }
}

/// Brings a sandbox back for the packing, and stops it again unless its conversation came to use it meanwhile.
async fn woken(
    row: &ListedSandbox,
    spec: &SandboxSpec,
    ledger: &SandboxLedger,
    spool: &WorkspaceSpool,
) -> Result<Option<String>, PackError> {
    let backend = row.backend();
    let backend = backend.map_err(|failure| PackError::LeftOut(failure.to_string()))?;
    let link = backend
        .resume(spec)
        .await
        .map_err(|error| PackError::of(&error))?;
    let packed = match Sandbox::greet(&row.id, backend.description(), link).await {
        Ok(sandbox) => packed(&sandbox, spec, spool).await,
        Err(error) => Err(PackError::of(&error)),
    };
    let entry = ledger.find(&row.id).await.ok().flatten();
    let is_used = entry.is_some_and(|entry| entry.state == LedgerState::Running);
    if !is_used && let Err(error) = backend.stop(&row.id).await {
        tracing::warn!(sandbox = %row.id, %error, "it was woken for a backup and does not stop");
    }
    packed
}

async fn packed(
    sandbox: &Sandbox,
    spec: &SandboxSpec,
    spool: &WorkspaceSpool,
) -> Result<Option<String>, PackError> {
    let mut file = io::BufWriter::new(spool.open().map_err(PackError::NoRoom)?);
    let command = Cleared::own_program(OwnProgram::PackFiles);
    let mut running = sandbox
        .start(command)
        .await
        .map_err(|error| PackError::of(&error))?;
    let mut left = spec.limits.disk_bytes.saturating_add(HEADERS);
    let mut words = Vec::new();
    let ended = loop {
        match running
            .next()
            .await
            .map_err(|error| PackError::of(&error))?
        {
            Some(RunEvent::Out(bytes)) => {
                // A sandbox can write without end.
                left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
                    PackError::LeftOut("its archive would be larger than its disk limit".to_owned())
                })?;
                file.write_all(&bytes).map_err(PackError::NoRoom)?;
            }
            Some(RunEvent::Err(bytes)) => remember(&mut words, &bytes),
            Some(RunEvent::Skipped(_)) => {
                return Err(PackError::LeftOut(
                    "a part of it was lost on the way".to_owned(),
                ));
            }
            Some(RunEvent::Started { .. }) => {}
            Some(RunEvent::Ended(ended)) => break ended,
            None => return Err(PackError::LeftOut("it ended meanwhile".to_owned())),
        }
    };
    file.flush().map_err(PackError::NoRoom)?;
    judge(&ended, &words).map_err(PackError::LeftOut)
}

/// What the end of the program inside means; words by the way where not everything went well.
pub(super) fn judge(ended: &CommandEnd, words: &[u8]) -> Result<Option<String>, String> {
    let words = String::from_utf8_lossy(words);
    let first = printable(words.lines().next().unwrap_or_default());
    match &ended.status {
        ExitState::Exited(0) if first.is_empty() => Ok(None),
        // Files that changed or were not readable: the others are there.
        ExitState::Exited(0..=2) => Ok(Some(first)),
        ExitState::Exited(3) => Err("it has no workspace".to_owned()),
        ExitState::Exited(4) => Err("there is no tar in it".to_owned()),
        _ => Err(format!("the program inside failed: {first}")),
    }
}

pub(super) fn remember(words: &mut Vec<u8>, bytes: &[u8]) {
    let room = MOST_WORDS.saturating_sub(words.len());
    words.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// Whether losing this machine would lose the files. What is elsewhere is found again by a restored home.
pub(super) fn lies_here(kind: BackendKind) -> bool {
    matches!(
        kind,
        BackendKind::Native | BackendKind::Docker | BackendKind::Singularity
    )
}

/// Removed however this ends; one that was killed leaves it to the next.
struct WorkspaceSpool(PathBuf);

impl WorkspaceSpool {
    fn of(to: &Path, installation: &InstallationId) -> Self {
        Self(folder_of(to).join(format!(".hermetic-{installation}.files.partial")))
    }

    fn open(&self) -> io::Result<File> {
        let _ = fs::remove_file(&self.0);
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        options.open(&self.0)
    }
}

impl Drop for WorkspaceSpool {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
