//! What the stories of every backend have in common: a sandbox is wanted, shell text runs in it, and
//! something comes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_types::{Command, ConversationKey, InstallationId, SandboxId, SandboxLimits};
use hermetic_warden::client::{RunEvent, RunningCommand};
use tokio_util::sync::CancellationToken;

use super::cleared;
use crate::{
    FinishedCommand, NetworkMode, Sandbox, SandboxLifeline, SandboxPersistence, SandboxSpec,
    SystemView,
};

/// Long enough for a loaded machine; nothing waits for it when all is well.
pub const STORY_TIMEOUT: Duration = Duration::from_secs(120);

const BOUND: usize = 1 << 20;
/// How often is looked for what will come, where nothing tells.
const STORY_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A sandbox as most stories want it: closed, with nothing kept, and looked after by a ledger.
pub fn spec(installation: &InstallationId, system: SystemView) -> SandboxSpec {
    SandboxSpec {
        installation: installation.clone(),
        conversation: ConversationKey::new("agent:main:telegram:dm:4711"),
        id: SandboxId::random(),
        system,
        limits: SandboxLimits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: SandboxPersistence::Ephemeral,
        lifeline: SandboxLifeline::Ledger,
        lifetime: Duration::from_secs(600),
    }
}

/// Limits that are soon reached.
pub fn small() -> SandboxLimits {
    SandboxLimits {
        memory_bytes: 256 << 20,
        disk_bytes: 32 << 20,
        inodes: 5000,
        pids: 40,
        open_files: 200,
        ..SandboxLimits::default()
    }
}

pub async fn finish(sandbox: &Sandbox, text: &str) -> FinishedCommand {
    let mut command = Command::script(text);
    command.timeout = Some(STORY_TIMEOUT);
    sandbox
        .run(cleared(command), BOUND, &CancellationToken::new())
        .await
        .expect("a command can be run")
}

/// What shell text says, both streams.
pub async fn sh(sandbox: &Sandbox, text: &str) -> String {
    let finished = finish(sandbox, &format!("exec 2>&1\n{text}")).await;
    String::from_utf8_lossy(&finished.stdout.into_bytes()).into_owned()
}

/// Starts what goes on; it has said a first word, or ended.
pub async fn begin(sandbox: &Sandbox, text: &str) -> RunningCommand {
    let command = cleared(Command::script(text));
    let mut running = sandbox
        .start(command)
        .await
        .expect("a command can be started");
    while !matches!(
        running.next().await,
        Ok(Some(RunEvent::Out(_)) | None) | Err(_)
    ) {}
    running
}

/// Waits for what will come, and fails when it does not.
pub async fn until(what: &str, mut seen: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !seen().await {
            tokio::time::sleep(STORY_POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(STORY_TIMEOUT, waiting)
        .await
        .unwrap_or_else(|_| panic!("never came: {what}"));
}
