//! Files of sandboxes, put from a backup into sandboxes of a restored home.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use hermetic_app::{self as app, BackendCaller};
use hermetic_config::Config;
use hermetic_policy::{Cleared, OwnProgram};
use hermetic_sandbox::{Backend, Sandbox, SandboxSpec};
use hermetic_store::{LedgerEntry, LedgerState, SandboxLedger};
use hermetic_types::{Clock as _, InstallationId, SystemClock};
use hermetic_warden::client::{RunEvent, StdinStream};
use serde::Serialize;

use super::archive;
use super::manifest::{BackupManifest, PackedWorkspace, workspace_name};
use super::restore::in_use;
use super::workspaces::{judge, remember};
use crate::cli::CommandLine;
use crate::commands::load;
use crate::failure::CommandFailure;
use crate::gateway_state::GatewayLock;
use crate::output::{self, printable};

/// What became of the files of one sandbox.
#[derive(Debug, Serialize)]
pub(super) struct BroughtBack {
    pub(super) workspace: PackedWorkspace,
    pub(super) outcome: BringBackOutcome,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BringBackOutcome {
    /// With what was said by the way, where not everything went well.
    Back(Option<String>),
    /// A sandbox of this name is there and stays as it is.
    Stays,
    Failed(String),
}

impl BroughtBack {
    pub(super) fn line(&self) -> String {
        let of = format!(
            "files of {} ({})",
            printable(&self.workspace.conversation),
            output::size(self.workspace.bytes)
        );
        match &self.outcome {
            BringBackOutcome::Back(None) => format!("{of}: back\n"),
            BringBackOutcome::Back(Some(doubt)) => format!("{of}: back, but: {doubt}\n"),
            BringBackOutcome::Stays => format!("{of}: its sandbox is there, and stays as it is\n"),
            BringBackOutcome::Failed(why) => format!("{of}: NOT back: {why}\n"),
        }
    }
}

const CHUNK: usize = 64 << 10;

/// Into a home that is restored, by its own configuration. No gateway starts there meanwhile.
pub(super) async fn into_home(
    cli: &CommandLine,
    file: &mut File,
    manifest: &BackupManifest,
) -> Result<Vec<BroughtBack>, CommandFailure> {
    if manifest.workspaces.is_empty() {
        return Ok(Vec::new());
    }
    let config = load(cli)?;
    let _lock = GatewayLock::take(config.home()).map_err(|error| in_use(config.home(), &error))?;
    bring_back(file, manifest, &config).await
}

/// One sandbox after the other; one that cannot be made is named and hinders no other. A sandbox that is there
/// stays as it is, so that this can be done again.
async fn bring_back(
    file: &mut File,
    manifest: &BackupManifest,
    config: &Config,
) -> Result<Vec<BroughtBack>, CommandFailure> {
    let installation = app::installation(config.home())?;
    let store = app::store(config).await?;
    app::refuse_beside_shared_work(config, &store).await?;
    let ledger = store.ledger();
    let mut done = Vec::new();
    for workspace in &manifest.workspaces {
        let home = WorkspaceHome {
            config,
            ledger: &ledger,
            installation: &installation,
        };
        let filled = home.fill(workspace, file).await;
        done.push(BroughtBack {
            workspace: workspace.clone(),
            outcome: filled.unwrap_or_else(BringBackOutcome::Failed),
        });
    }
    Ok(done)
}

/// Where sandboxes of a restored home are made.
struct WorkspaceHome<'a> {
    config: &'a Config,
    ledger: &'a SandboxLedger,
    installation: &'a InstallationId,
}

fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text = format!("{text}: {source}");
        cause = source.source();
    }
    printable(&text)
}

impl WorkspaceHome<'_> {
    /// As whoever made it had it: in a container the two are other users.
    fn backend(&self, entry: &LedgerEntry) -> Result<Arc<dyn Backend>, String> {
        let caller = match entry.conversation.as_str().starts_with("cli:") {
            true => BackendCaller::CommandLine(output::progress),
            false => BackendCaller::Chats,
        };
        app::backend(self.config, self.installation, entry.backend, caller)
            .map_err(|failure| printable(&failure.to_string()))
    }

    async fn fill(
        &self,
        workspace: &PackedWorkspace,
        file: &mut File,
    ) -> Result<BringBackOutcome, String> {
        let id = &workspace.sandbox;
        let entry = self.ledger.find(id).await.map_err(|error| said(&error))?;
        let entry = entry.ok_or("its conversation is not in the store any more")?;
        let mut spec: SandboxSpec =
            serde_json::from_str(&entry.spec).map_err(|_| "nobody knows how it was made")?;
        let backend = self.backend(&entry)?;
        let there = backend.list().await.map_err(|error| error.with_causes())?;
        if there.iter().any(|found| &found.id == id) {
            return Ok(BringBackOutcome::Stays);
        }
        // A copy of an installation has a name of its own.
        spec.installation = self.installation.clone();
        let text = serde_json::to_string(&spec).map_err(|error| said(&error))?;
        let now = SystemClock.now();
        let given = self.ledger.give(id, &entry.conversation, &text, now).await;
        given.map_err(|error| said(&error))?;
        let filled = make_and_fill(backend.as_ref(), &spec, workspace, file).await;
        let kept = match &filled {
            Ok(_) => backend.stop(id).await,
            // Nothing half is left: the conversation begins with an empty one.
            Err(_) => backend.destroy(id).await,
        };
        kept.map_err(|error| error.with_causes())?;
        if filled.is_ok() {
            let marked = self.ledger.mark(id, LedgerState::Stopped).await;
            marked.map_err(|error| said(&error))?;
        }
        filled.map(BringBackOutcome::Back)
    }
}

async fn make_and_fill(
    backend: &dyn Backend,
    spec: &SandboxSpec,
    workspace: &PackedWorkspace,
    file: &mut File,
) -> Result<Option<String>, String> {
    let name = workspace_name(&workspace.sandbox);
    let place = archive::place_in(file, &name).map_err(|error| said(&error))?;
    let (at, bytes) = place.ok_or("it is not in the backup")?;
    file.seek(SeekFrom::Start(at))
        .map_err(|error| said(&error))?;
    let sandbox = Sandbox::create(backend, spec)
        .await
        .map_err(|error| said(&error))?;
    let command = Cleared::own_program(OwnProgram::UnpackFiles);
    let mut running = sandbox.start(command).await.map_err(|error| said(&error))?;
    let feeding = feed(running.stdin(), file, bytes);
    let mut words = Vec::new();
    let following = async {
        loop {
            match running.next().await.map_err(|error| said(&error))? {
                Some(RunEvent::Err(bytes)) => remember(&mut words, &bytes),
                Some(RunEvent::Ended(ended)) => break Ok(ended),
                Some(RunEvent::Started { .. } | RunEvent::Out(_) | RunEvent::Skipped(_)) => {}
                None => break Err("it ended meanwhile".to_owned()),
            }
        }
    };
    let (fed, ended) = tokio::join!(feeding, following);
    // A program that ended early says more than the pipe that broke.
    let doubt = judge(&ended?, &words)?;
    fed.map_err(|error| format!("the backup cannot be read: {error}"))?;
    Ok(doubt)
}

async fn feed(stdin: StdinStream, file: &mut File, bytes: u64) -> io::Result<()> {
    let mut rest = file.take(bytes);
    let mut buffer = vec![0; CHUNK];
    loop {
        let length = rest.read(&mut buffer)?;
        if length == 0 || stdin.write(&buffer[..length]).await.is_err() {
            break;
        }
    }
    let _ = stdin.end().await;
    Ok(())
}
