//! The folder, the bait and the gateway of the story.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermetic_app::{self as app, BackendCaller, Surroundings};
use hermetic_config::{Config, ConfigInputs, HomeFolder, resolve_gateway_backend};
use hermetic_gateway::{GatewayCondition, serve};
use hermetic_types::{BackendKind, SandboxId};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::attempt::{DemoAttempt, DemoBait};
use super::chat::StoryChat;
use super::model::{DemoCallResult, TalkedInto};
use crate::failure::CommandFailure;

/// Small enough for any machine.
const CONFIG: &str = "\
gateway: {terminal_backend: native, disk_reserve: 16}
terminal: {container_memory: 256, container_disk: 256, container_pids: 128, container_persistent: false}
";

pub(super) struct DemoStage {
    folder: PathBuf,
    config: Config,
    pub(super) bait: DemoBait,
}

/// A gateway at work.
pub(super) struct StoryGateway {
    pub(super) chat: Arc<StoryChat>,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

impl DemoStage {
    pub(super) async fn build() -> Result<Self, CommandFailure> {
        let mark = format!("hermetic-demo-{}", SandboxId::random());
        let folder = std::env::temp_dir().join(&mark);
        let built = Self::lay(&folder, mark);
        let stage = built.inspect_err(|_| {
            let _ = fs::remove_dir_all(&folder);
        })?;
        match stage.can_have_sandboxes().await {
            Ok(()) => Ok(stage),
            Err(failure) => {
                stage.clear().await;
                Err(failure)
            }
        }
    }

    fn lay(folder: &Path, mark: String) -> Result<Self, CommandFailure> {
        let failed = |error: io::Error| CommandFailure::file("write", folder, &error);
        let made = DirBuilder::new().mode(0o700).create(folder);
        made.map_err(failed)?;
        let word = || SandboxId::random().to_string();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bait = DemoBait {
            file: folder.join("tax-return.txt"),
            file_text: word(),
            key: format!("sk-demo-{}", word()),
            dotenv: folder.join(".env"),
            diary: word(),
            mark,
            listener,
        };
        let dotenv = format!(
            "OPENAI_API_KEY={}\nTELEGRAM_BOT_TOKEN=1:nobody-is-called\nTELEGRAM_ALLOWED_USERS=1,2\n",
            bait.key
        );
        for (path, text) in [
            (&folder.join("config.yaml"), CONFIG),
            (&bait.dotenv, &dotenv),
            (&bait.file, &bait.file_text),
        ] {
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).mode(0o600).open(path);
            file.and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(failed)?;
        }
        let inputs = ConfigInputs {
            home: HomeFolder::at(folder),
            // Whatever holds on this machine otherwise: the story has a configuration of its own.
            managed: folder.join("managed.yaml"),
            variables: Default::default(),
            unreadable: Vec::new(),
        };
        Ok(Self {
            folder: folder.to_owned(),
            config: hermetic_config::load(&inputs)?,
            bait,
        })
    }

    async fn can_have_sandboxes(&self) -> Result<(), CommandFailure> {
        let installation = app::installation(self.config.home())?;
        let native = BackendKind::Native;
        let backend = app::backend(&self.config, &installation, native, BackendCaller::Onlooker)?;
        let readiness = backend.readiness().await;
        match readiness.missing() {
            None => Ok(()),
            Some(layer) => Err(CommandFailure::new(
                format!(
                    "no sandbox can be had here: {}: {}",
                    layer.name, layer.detail
                ),
                layer
                    .remedy
                    .clone()
                    .unwrap_or_else(|| "`hermetic doctor` tells more".to_owned()),
            )),
        }
    }

    /// The real gateway, on this chat and with this model.
    pub(super) async fn open(
        &self,
        attempts: &[DemoAttempt],
        tell: mpsc::Sender<DemoCallResult>,
    ) -> Result<StoryGateway, CommandFailure> {
        let chat = Arc::new(StoryChat::new());
        let commands = attempts.iter().map(|attempt| attempt.command.clone());
        let model = TalkedInto::new(commands.collect(), &self.bait.key, tell);
        let surroundings = Surroundings {
            chats: Some(vec![Arc::clone(&chat) as _]),
            model: Some(Arc::new(model)),
            ..Surroundings::default()
        };
        let resolved = resolve_gateway_backend(&self.config)?;
        let redactor = app::redactor(&self.config);
        let parts = app::gateway(&self.config, &resolved, redactor, surroundings).await?;
        let health = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let health = health.map_err(|error| CommandFailure::caused(&error, "free a port"))?;
        let stop = CancellationToken::new();
        let (serving, mut is_serving) = watch::channel(false);
        let report = Box::new(move |condition: &GatewayCondition| {
            if condition.stage == hermetic_gateway::GatewayStage::Serving {
                serving.send_replace(true);
            }
        });
        let served = tokio::spawn({
            let stop = stop.clone();
            async move {
                if let Err(error) = serve(parts, health, stop, report).await {
                    tracing::error!(%error, "the gateway ended");
                }
            }
        });
        // It ends the channel with itself where it does not come up.
        let _ = is_serving.wait_for(|serving| *serving).await;
        Ok(StoryGateway { chat, stop, served })
    }

    /// Takes every sandbox and file of the story away.
    pub(super) async fn clear(self) {
        if let Ok(installation) = app::installation(self.config.home()) {
            let native = BackendKind::Native;
            let backend =
                app::backend(&self.config, &installation, native, BackendCaller::Onlooker);
            if let Ok(backend) = backend {
                for found in backend.list().await.unwrap_or_default() {
                    let _ = backend.destroy(&found.id).await;
                }
            }
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl StoryGateway {
    pub(super) async fn stop(self) {
        self.stop.cancel();
        let _ = self.served.await;
    }
}
