//! A sandbox to try things in, gone when the story is over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hermetic_types::{Command, ConversationKey, InstallationId, SandboxId, SandboxLimits};
use tokio_util::sync::CancellationToken;

use super::cleared;
use crate::{
    Backend, FinishedCommand, NetworkMode, Sandbox, SandboxLifeline, SandboxPersistence,
    SandboxSpec, SystemView,
};

/// A backend to be examined.
#[expect(missing_debug_implementations, reason = "nobody prints it")]
pub struct BackendCandidate {
    pub backend: Arc<dyn Backend>,
    /// The same kind of backend for another installation, on the same host.
    pub other: Arc<dyn Backend>,
    pub installation: InstallationId,
    pub system: SystemView,
    /// Whether it bounds processes and open files.
    pub keeps_limits: bool,
    /// Whether a sandbox sees only its own processes and files.
    pub is_sealed: bool,
    /// Whether a stopped sandbox can come back.
    pub resumes: bool,
    /// Keeps what the backend lives on, such as a temporary state folder.
    pub holds: Box<dyn Send + Sync>,
}

#[expect(missing_debug_implementations, reason = "nobody prints it")]
pub struct ConformanceLab {
    pub candidate: BackendCandidate,
    pub spec: SandboxSpec,
    pub sandbox: Sandbox,
}

/// Long enough for a loaded machine; nothing waits for it when all is well.
const DEADLINE: Duration = Duration::from_secs(60);

/// What a story may collect of a command's output.
const BOUND: usize = 1 << 20;

impl BackendCandidate {
    pub fn spec(&self, conversation: &str, persistence: SandboxPersistence) -> SandboxSpec {
        SandboxSpec {
            installation: self.installation.clone(),
            conversation: ConversationKey::new(conversation),
            id: SandboxId::random(),
            system: self.system.clone(),
            limits: SandboxLimits::default(),
            mounts: Vec::new(),
            env: BTreeMap::from([("FROM_SPEC".to_owned(), "yes".to_owned())]),
            network: NetworkMode::Closed,
            persistence,
            lifeline: SandboxLifeline::Ledger,
            lifetime: Duration::from_secs(600),
        }
    }

    pub async fn make(&self, spec: &SandboxSpec) -> Sandbox {
        let link = self
            .backend
            .create(spec)
            .await
            .expect("a sandbox can be created");
        Sandbox::greet(&spec.id, self.backend.description(), link)
            .await
            .expect("its warden answers")
    }

    /// A second link to a living sandbox.
    pub async fn reach(&self, spec: &SandboxSpec) -> Sandbox {
        let link = self
            .backend
            .connect(&spec.id)
            .await
            .expect("a sandbox can be reached again");
        Sandbox::greet(&spec.id, self.backend.description(), link)
            .await
            .expect("its warden answers")
    }
}

impl ConformanceLab {
    pub async fn open(candidate: BackendCandidate) -> Self {
        let spec = candidate.spec("conformance", SandboxPersistence::Ephemeral);
        let sandbox = candidate.make(&spec).await;
        Self {
            candidate,
            spec,
            sandbox,
        }
    }

    /// Runs shell text to its end.
    pub async fn sh(&self, text: &str) -> FinishedCommand {
        run(&self.sandbox, Command::script(text)).await
    }

    pub async fn close(self) {
        self.candidate
            .backend
            .destroy(&self.spec.id)
            .await
            .expect("a sandbox can be destroyed");
        let left = self
            .candidate
            .backend
            .list()
            .await
            .expect("sandboxes can be listed");
        assert!(
            !left.iter().any(|found| found.id == self.spec.id),
            "still listed: {left:?}"
        );
    }
}

pub(super) async fn run(sandbox: &Sandbox, mut command: Command) -> FinishedCommand {
    command.timeout.get_or_insert(DEADLINE);
    sandbox
        .run(cleared(command), BOUND, &CancellationToken::new())
        .await
        .expect("a command can be run")
}

pub(super) fn stdout(finished: &FinishedCommand) -> String {
    String::from_utf8_lossy(&finished.stdout.clone().into_bytes()).into_owned()
}

/// How many living processes have `marker` among their words, as seen from inside.
pub(super) async fn count_marked(sandbox: &Sandbox, marker: &str) -> usize {
    // No searching process may carry the marker itself: it is put together at run time and read
    // from a pipe.
    let (front, back) = marker.split_at(marker.len() / 2);
    let text = format!("printf %s%s {front} {back} | grep -lsFf - /proc/[0-9]*/cmdline | wc -l");
    let counted = run(sandbox, Command::script(text)).await;
    stdout(&counted)
        .trim()
        .parse()
        .expect("the count is a number")
}

/// Waits until no process carries the marker.
pub(super) async fn until_gone(sandbox: &Sandbox, marker: &str) {
    for _ in 0..200 {
        if count_marked(sandbox, marker).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("processes marked {marker} are still alive");
}
