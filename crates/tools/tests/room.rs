//! One conversation with its tools, in a sandbox of its own.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use hermetic_egress::{Egress, EgressClient};
use hermetic_policy::{JudgementContext, Policy, PolicyRules};
use hermetic_redact::Redactor;
use hermetic_sandbox::{
    Backend, HostMount, MountMode, NetworkMode, Sandbox, SandboxLifeline, SandboxPersistence,
    SandboxSpec,
};
use hermetic_store::{RowOwner, Store};
use hermetic_tools::{
    BackgroundProcesses, BackgroundSettings, BackgroundStarts, CodeSettings, CodeTool, FileTools,
    Held, McpServerSettings, McpServers, NoOneToAsk, NoSandbox, ResultBounds, SandboxReach,
    ScriptDirectory, SharedDescriptions, TerminalSettings, TerminalTool, TodoLists, ToolKit,
    ToolWorkplace, WebSettings, WebTools,
};
use hermetic_types::{
    BackendDescription, BackendKind, ConversationKey, InstallationId, SandboxId, SandboxLimits,
    Secret, SystemClock,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::places;

/// What the configuration knows and nobody may read.
pub(crate) const SECRET: &str = "correct-horse-battery-staple";

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Lab {
    pub(crate) kit: ToolKit,
    pub(crate) room: Arc<Room>,
    backend: Arc<dyn Backend>,
    spec: SandboxSpec,
    store: Store,
    pub(crate) folder: tempfile::TempDir,
    /// What the backend itself lives on.
    _holds: Box<dyn Any + Send + Sync>,
}

/// What a test wants otherwise than usual.
#[derive(Clone)]
pub(crate) struct Wishes {
    pub(crate) backend: BackendKind,
    /// Of the person whose machine `local` is; its folder `work` is where commands begin.
    pub(crate) home: Option<PathBuf>,
    pub(crate) persistent_shell: bool,
    pub(crate) timeout: Duration,
    pub(crate) code: CodeSettings,
    pub(crate) sudo_password: Option<Secret>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) rules: PolicyRules,
    pub(crate) mcp: Vec<McpServerSettings>,
    /// Seen inside where it is outside, and read only.
    pub(crate) shows: Vec<PathBuf>,
    pub(crate) egress: Option<Arc<Egress>>,
    pub(crate) web: WebTools,
    /// Instead of one that knows [`SECRET`].
    pub(crate) redactor: Option<Redactor>,
}

/// The conversation's sandbox, as a session would keep it.
pub(crate) struct Room {
    conversation: ConversationKey,
    backend: Arc<dyn Backend>,
    sandbox: Mutex<Arc<Sandbox>>,
    origin: Option<String>,
    egress: Option<Arc<Egress>>,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            backend: BackendKind::Native,
            home: None,
            persistent_shell: true,
            timeout: Duration::from_secs(30),
            code: CodeSettings {
                timeout: Duration::from_secs(30),
                most_calls: 50,
                directory: ScriptDirectory::Project,
            },
            sudo_password: None,
            env: BTreeMap::new(),
            rules: PolicyRules::default(),
            mcp: Vec::new(),
            shows: Vec::new(),
            egress: None,
            web: WebTools::new(None, WebSettings::default()),
            redactor: None,
        }
    }
}

impl Lab {
    /// `None`, said aloud, where no sandbox can be had.
    pub(crate) async fn open(test: &str) -> Option<Self> {
        Self::open_with(test, Wishes::default()).await
    }

    pub(crate) async fn open_with(test: &str, wishes: Wishes) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let installation = InstallationId::random();
        let place = places::open(&wishes, folder.path(), &installation).await;
        let (backend, holds) = match place {
            Ok(place) => place,
            Err(why) => {
                eprintln!("SKIP: {test}: there is no {} here: {why}", wishes.backend);
                return None;
            }
        };
        if let Some(layer) = backend.readiness().await.missing() {
            eprintln!("SKIP: {test}: {} ({})", layer.name, layer.detail);
            return None;
        }
        let conversation = ConversationKey::new("agent:main:test:dm:1");
        let spec = SandboxSpec {
            installation,
            conversation: conversation.clone(),
            id: SandboxId::random(),
            system: places::system(wishes.backend),
            limits: SandboxLimits::default(),
            mounts: shown(&wishes),
            env: wishes.env.clone(),
            network: NetworkMode::Closed,
            persistence: SandboxPersistence::Ephemeral,
            lifeline: SandboxLifeline::Ledger,
            lifetime: Duration::from_secs(300),
        };
        let link = backend.create(&spec).await.unwrap();
        let sandbox = Sandbox::greet(&spec.id, backend.description(), link)
            .await
            .unwrap();
        let room = Arc::new(Room {
            conversation,
            backend: Arc::clone(&backend),
            sandbox: Mutex::new(Arc::new(sandbox)),
            origin: Some("alice".to_owned()),
            egress: wishes.egress.clone(),
        });
        let store = Store::open(&folder.path().join("state.db"), SystemClock::shared())
            .await
            .unwrap();
        let kit = room_kit(&wishes, folder.path(), &store, &room);
        Some(Self {
            kit,
            room,
            backend,
            spec,
            store,
            folder,
            _holds: holds,
        })
    }

    /// The same sandbox, as the next gateway finds it: nothing but the store and the backend is left.
    pub(crate) async fn restart(&mut self, wishes: &Wishes) {
        self.kit.background.close().await;
        let link = self.backend.connect(&self.spec.id).await.unwrap();
        let sandbox = Sandbox::greet(&self.spec.id, self.backend.description(), link).await;
        *self.room.sandbox.lock().unwrap() = Arc::new(sandbox.unwrap());
        let folder = self.folder.path();
        self.kit = room_kit(wishes, folder, &self.store, &self.room);
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_until(tool, arguments, &CancellationToken::new())
            .await
    }

    pub(crate) async fn call_until(
        &self,
        tool: &str,
        arguments: Value,
        stop: &CancellationToken,
    ) -> Value {
        let toolbox = self.kit.toolbox(&*self.room, &NoOneToAsk);
        let arguments = arguments.as_object().unwrap().clone();
        let called = toolbox.call(tool, &arguments, stop);
        let answered = tokio::time::timeout(PATIENCE, called).await;
        let answered = answered.expect("the call ends").expect("a tool");
        answered.json.into_inner()
    }

    pub(crate) async fn terminal(&self, command: &str) -> Value {
        self.call("terminal", json!({"command": command})).await
    }

    /// What a command prints.
    pub(crate) async fn says(&self, command: &str) -> String {
        let ran = self.terminal(command).await;
        assert_eq!(ran["exit_code"], 0, "{ran}");
        ran["output"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn python(&self, code: &str) -> Value {
        self.call("execute_code", json!({"code": code})).await
    }

    /// Starts something in the background; its id.
    pub(crate) async fn starts(&self, command: &str) -> String {
        let started = self
            .call("terminal", json!({"command": command, "background": true}))
            .await;
        assert_eq!(started["exit_code"], 0, "{started}");
        started["session_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn process(&self, action: &str, id: &str) -> Value {
        self.call("process", json!({"action": action, "session_id": id}))
            .await
    }

    /// How many processes inside have this in their command line.
    pub(crate) async fn running(&self, marker: &str) -> usize {
        let (first, rest) = marker.split_at(1);
        let count = format!("pgrep -fc '[{first}]{rest}' || true");
        let ran = self
            .call("terminal", json!({"command": count, "workdir": "/tmp"}))
            .await;
        ran["output"].as_str().unwrap().trim().parse().unwrap()
    }

    /// Waits for something inside to be so; there is no event for what happens in another process.
    pub(crate) async fn until(&self, what: &str, mut so: impl AsyncFnMut() -> bool) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while !so().await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        waited
            .await
            .unwrap_or_else(|_| panic!("still not so: {what}"));
    }

    pub(crate) async fn destroy_sandbox(&self) {
        self.backend.destroy(&self.spec.id).await.unwrap();
    }

    pub(crate) async fn rows(&self) -> usize {
        self.store
            .processes()
            .all(RowOwner::ThisGateway)
            .await
            .unwrap()
            .len()
    }

    pub(crate) async fn close(self) {
        self.kit.background.close().await;
        self.backend.destroy(&self.spec.id).await.unwrap();
    }
}

fn shown(wishes: &Wishes) -> Vec<HostMount> {
    let shown = wishes.shows.iter();
    let shown = shown.map(|folder| HostMount {
        source: folder.clone(),
        target: folder.clone(),
        mode: MountMode::ReadOnly,
    });
    shown.collect()
}

/// Where commands begin, and whose home it is.
pub(crate) fn ground(wishes: &Wishes, folder: &Path) -> (PathBuf, PathBuf) {
    match &wishes.home {
        Some(home) => (home.join("work"), home.clone()),
        None => (folder.to_owned(), folder.to_owned()),
    }
}

fn room_kit(wishes: &Wishes, folder: &Path, store: &Store, room: &Arc<Room>) -> ToolKit {
    let description = room.backend.description();
    kit(
        wishes,
        folder,
        Some(store),
        description,
        Arc::clone(room) as _,
    )
}

/// Every tool, as a conversation has them.
pub(crate) fn kit(
    wishes: &Wishes,
    folder: &Path,
    store: Option<&Store>,
    description: BackendDescription,
    reach: Arc<dyn SandboxReach>,
) -> ToolKit {
    let (workspace, home) = ground(wishes, folder);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let redactor = wishes.redactor.clone().unwrap_or_else(|| {
        let settings = hermetic_redact::RedactorSettings::default();
        Redactor::new([Secret::new(SECRET)], settings)
    });
    let settings = TerminalSettings {
        context: JudgementContext::new(description, text(&workspace), text(&home)),
        timeout: wishes.timeout,
        max_foreground_timeout: Duration::from_secs(600),
        persistent_shell: wishes.persistent_shell,
        output_chars: 50_000,
        sudo_password: wishes.sudo_password.clone(),
    };
    let policy = Arc::new(Policy::new(wishes.rules.clone()));
    let context = settings.context.clone();
    let (mcp_policy, mcp_context, mcp_redactor) =
        (Arc::clone(&policy), context.clone(), redactor.clone());
    ToolKit {
        files: FileTools::new(
            Arc::clone(&policy),
            context,
            redactor.clone(),
            ResultBounds::default(),
        ),
        terminal: TerminalTool::new(policy, redactor.clone(), settings),
        background: BackgroundProcesses::new(
            BackgroundSettings {
                longest_hold: Duration::from_secs(3600),
                starts: BackgroundStarts::Allowed,
            },
            redactor,
            store.map(Store::processes),
            reach,
            SystemClock::shared(),
        ),
        code: CodeTool::new(wishes.code, SystemClock::shared()),
        mcp: McpServers::new(
            wishes.mcp.clone(),
            mcp_policy,
            mcp_context,
            JudgementContext::new(BackendDescription::judged(BackendKind::Local), "/", "/"),
            mcp_redactor,
            store.map(Store::documents),
            50_000,
        ),
        web: wishes.web.clone(),
        images: None,
        speech: None,
        todo: store.map(|store| TodoLists::new(store.todo_lists())),
        described: SharedDescriptions::default(),
    }
}

impl Room {
    pub(crate) fn sandbox(&self) -> Arc<Sandbox> {
        Arc::clone(&self.sandbox.lock().unwrap())
    }
}

impl ToolWorkplace for Room {
    fn conversation(&self) -> &ConversationKey {
        &self.conversation
    }

    fn sandbox(&self) -> BoxFuture<'_, Result<Held, NoSandbox>> {
        async { Ok(Box::new(Room::sandbox(self)) as Held) }.boxed()
    }

    fn egress(&self) -> BoxFuture<'_, Result<EgressClient, NoSandbox>> {
        let client = self.egress.as_ref();
        let client = client.map(|egress| EgressClient::new(Arc::clone(egress), &self.conversation));
        let client = client.ok_or(NoSandbox("no way out"));
        futures::future::ready(client).boxed()
    }

    fn origin(&self) -> Option<String> {
        self.origin.clone()
    }
}

impl SandboxReach for Room {
    fn living<'a>(
        &'a self,
        _: &'a ConversationKey,
        id: &'a SandboxId,
    ) -> BoxFuture<'a, Option<Held>> {
        async move {
            let sandbox = Room::sandbox(self);
            if sandbox.is_reachable() && sandbox.id() == id {
                return Some(Box::new(sandbox) as Held);
            }
            let link = self.backend.connect(id).await.ok()?;
            let again = Sandbox::greet(id, self.backend.description(), link)
                .await
                .ok()?;
            let again = Arc::new(again);
            *self.sandbox.lock().unwrap() = Arc::clone(&again);
            Some(Box::new(again) as Held)
        }
        .boxed()
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Room")
    }
}
