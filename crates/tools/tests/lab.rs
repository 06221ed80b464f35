//! One conversation with its tools, in a sandbox of its own.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use hermetic_native::{Config, Native};
use hermetic_policy::{Context, Policy};
use hermetic_redact::Redactor;
use hermetic_sandbox::{Backend, Lifeline, Network, Persistence, Sandbox, Spec, SystemView};
use hermetic_tools::{
    Background, BackgroundSettings, Bounds, Code, CodeSettings, Directory, Files, Held, Kit,
    NoOneToAsk, NoSandbox, NoWayBack, Settings, Terminal, Workplace,
};
use hermetic_types::{BackendKind, ConversationKey, InstallationId, Limits, SandboxId, Secret};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(120);
/// A secret that the configuration knows.
pub(crate) const SECRET: &str = "correct-horse-battery";

pub(crate) struct Lab {
    kit: Kit,
    place: Place,
    pub(crate) stop: CancellationToken,
}

#[derive(Debug)]
struct Place {
    conversation: ConversationKey,
    sandbox: Arc<Sandbox>,
}

struct Shared(Arc<Sandbox>);

impl Deref for Shared {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.0
    }
}

impl Workplace for Place {
    fn conversation(&self) -> &ConversationKey {
        &self.conversation
    }

    fn sandbox(&self) -> BoxFuture<'_, Result<Held, NoSandbox>> {
        let held = Box::new(Shared(Arc::clone(&self.sandbox))) as Held;
        async { Ok(held) }.boxed()
    }
}

/// Tells a story in a native sandbox.
pub(crate) fn native(story: impl AsyncFnOnce(&Lab)) {
    runtime().block_on(async {
        let state = tempfile::tempdir().unwrap();
        let installation = InstallationId::random();
        let native = Native::open(Config {
            state: state.path().to_owned(),
            installation: installation.clone(),
            program: hermetic_embedded::WARDEN,
            require: Vec::new(),
            authority: None,
        })
        .unwrap();
        let context = Context::new(BackendKind::Native, "/workspace", "/home/agent");
        tell(&native, &installation, context, story).await;
    });
}

/// Tells a story on this machine itself, with `home` for a home.
pub(crate) fn local(home: &Path, story: impl AsyncFnOnce(&Lab)) {
    runtime().block_on(async {
        let state = tempfile::tempdir().unwrap();
        let workspace = home.join("work");
        std::fs::create_dir_all(&workspace).unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let local = hermetic_local::Local::open(hermetic_local::Config {
            state: state.path().to_owned(),
            program: hermetic_embedded::WARDEN,
            workdir: workspace.clone(),
            env: BTreeMap::from([
                ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
                ("HOME".to_owned(), text(home)),
            ]),
        })
        .unwrap();
        let context = Context::new(BackendKind::Local, text(&workspace), text(home));
        tell(&local, &InstallationId::random(), context, story).await;
    });
}

async fn tell(
    backend: &dyn Backend,
    installation: &InstallationId,
    context: Context,
    story: impl AsyncFnOnce(&Lab),
) {
    let spec = spec(installation);
    let link = backend.create(&spec).await.unwrap();
    let sandbox = Sandbox::greet(&spec.id, backend.kind(), link)
        .await
        .unwrap();
    let lab = Lab {
        kit: kit(context),
        place: Place {
            conversation: spec.conversation.clone(),
            sandbox: Arc::new(sandbox),
        },
        stop: CancellationToken::new(),
    };
    tokio::time::timeout(PATIENCE, story(&lab))
        .await
        .expect("the story ends");
    drop(lab);
    backend.destroy(&spec.id).await.unwrap();
}

impl Lab {
    /// Calls a tool as a model does: a name and JSON in, JSON out.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Value {
        let toolbox = self.kit.toolbox(&self.place, &NoOneToAsk);
        let arguments = arguments.as_object().unwrap();
        let answered = toolbox.call(name, arguments, &self.stop).await.unwrap();
        assert!(
            answered.json.to_string().chars().count() <= 100_000,
            "a result is bounded"
        );
        answered.json
    }

    /// How many commands run in the sandbox.
    pub(crate) async fn running(&self) -> usize {
        let runs = self.place.sandbox.warden().runs().await.unwrap();
        runs.iter().filter(|run| run.ended.is_none()).count()
    }

    /// What a shell command prints, for looking at the state from another side.
    pub(crate) async fn sh(&self, command: &str) -> String {
        let json = self
            .call("terminal", serde_json::json!({"command": command}))
            .await;
        json["output"].as_str().unwrap().to_owned()
    }
}

fn kit(context: Context) -> Kit {
    let redactor = Redactor::new([Secret::new(SECRET)], hermetic_redact::Settings::default());
    let policy = Arc::new(Policy::default());
    let settings = Settings {
        context: context.clone(),
        timeout: Duration::from_secs(60),
        longest_timeout: Duration::from_secs(600),
        persistent_shell: true,
        output_chars: 50_000,
        sudo_password: None,
    };
    Kit {
        terminal: Terminal::new(Arc::clone(&policy), redactor.clone(), settings),
        files: Files::new(policy, context, redactor.clone(), Bounds::default()),
        background: Background::new(
            BackgroundSettings {
                longest_hold: PATIENCE,
            },
            redactor,
            None,
            Arc::new(NoWayBack),
        ),
        code: Code::new(CodeSettings {
            timeout: PATIENCE,
            most_calls: 50,
            directory: Directory::Project,
        }),
    }
}

fn spec(installation: &InstallationId) -> Spec {
    Spec {
        installation: installation.clone(),
        conversation: ConversationKey::new("agent:main:test:dm:1"),
        id: SandboxId::random(),
        system: SystemView::Host,
        limits: Limits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: Network::Closed,
        persistence: Persistence::Ephemeral,
        lifeline: Lifeline::Ledger,
        lifetime: PATIENCE,
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}
