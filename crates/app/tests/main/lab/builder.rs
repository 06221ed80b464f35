//! How a lab is set up.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use hermetic_acp::AgentPrograms;
use hermetic_agent::LanguageModel;
use hermetic_app::{BackendCaller, Surroundings};
use hermetic_config::{ConfigInputs, HomeFolder};
use hermetic_sandbox::Backend;
use hermetic_testkit::backend::{Commands, StandInBackend};
use hermetic_testkit::chat::FakeChat;
use hermetic_testkit::clock::ManualClock;
use hermetic_testkit::discord::DiscordServer;
use hermetic_testkit::matrix::MatrixPerson;
use hermetic_testkit::model::{Reply, ScriptedServer};
use hermetic_testkit::signal_server;
use hermetic_testkit::slack::{self, SlackServer};
use hermetic_testkit::telegram::{TOKEN, TelegramServer};
use hermetic_testkit::whatsapp::{
    APP_SECRET, PHONE_NUMBER_ID, TOKEN as WHATSAPP_TOKEN, VERIFY_TOKEN, WhatsAppServer,
};
use hermetic_types::{BackendKind, Platform};
use serde_json::Value;

use super::{KEY, Lab};

/// What differs from an ordinary lab.
#[derive(Debug)]
pub(crate) struct Builder {
    config: String,
    access: String,
    script: Vec<Reply>,
    model: Option<Arc<dyn LanguageModel>>,
    answering: Option<fn(&Value) -> Reply>,
    configured_chats: bool,
    configured_backends: bool,
    agents: Option<Arc<dyn AgentPrograms>>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            config: String::new(),
            access: "TELEGRAM_ALLOWED_USERS=7,8".to_owned(),
            script: Vec::new(),
            model: None,
            answering: None,
            configured_chats: false,
            configured_backends: false,
            agents: None,
        }
    }
}

impl Builder {
    /// Text for `config.yaml`.
    pub(crate) fn config(mut self, text: &str) -> Self {
        self.config.push_str(text);
        self
    }

    /// Lines of `.env` that say who may write, instead of Alice and Bob.
    pub(crate) fn access(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.access);
        self
    }

    /// What the model on the wire replies.
    pub(crate) fn script(mut self, script: impl IntoIterator<Item = Reply>) -> Self {
        self.script.extend(script);
        self
    }

    /// A model on the wire without a script: each reply is made from its question.
    pub(crate) fn answering(mut self, reply: fn(&Value) -> Reply) -> Self {
        self.answering = Some(reply);
        self
    }

    /// A model within the process, instead of the one on the wire.
    pub(crate) fn model(mut self, model: Arc<dyn LanguageModel>) -> Self {
        self.model = Some(model);
        self
    }

    /// The agents of others that can be chosen by name, instead of those that are installed.
    pub(crate) fn agents(mut self, agents: Arc<dyn AgentPrograms>) -> Self {
        self.agents = Some(agents);
        self
    }

    /// The platforms that the configuration names, instead of the fake one.
    pub(crate) fn configured_chats(mut self) -> Self {
        self.configured_chats = true;
        self
    }

    /// Telegram, spoken to over the wire.
    pub(crate) fn telegram(self, server: &TelegramServer) -> Self {
        let config = format!(
            "platforms: {{telegram: {{base_url: '{}'}}}}\n",
            server.url()
        );
        let mut builder = self.configured_chats().config(&config);
        builder.access = format!("TELEGRAM_BOT_TOKEN={TOKEN}\n{}", builder.access);
        builder
    }

    /// Discord, spoken to over the wire, with Alice (7) allowed.
    pub(crate) fn discord(self, server: &DiscordServer) -> Self {
        let config = format!("discord: {{base_url: '{}'}}\n", server.url());
        let mut builder = self.configured_chats().config(&config);
        builder.access = format!(
            "DISCORD_BOT_TOKEN={}\nDISCORD_ALLOWED_USERS=7",
            hermetic_testkit::discord::TOKEN
        );
        builder
    }

    /// Signal, spoken to over the wire.
    pub(crate) fn signal(self, url: &str) -> Self {
        let mut builder = self.configured_chats();
        builder.access = format!(
            "SIGNAL_HTTP_URL={url}\nSIGNAL_ACCOUNT={}\nSIGNAL_ALLOWED_USERS={}",
            signal_server::NUMBER,
            signal_server::ALICE.number.unwrap_or_default()
        );
        builder
    }

    /// Matrix, spoken to over the wire of a homeserver. This person may write.
    pub(crate) fn matrix(
        self,
        homeserver: &str,
        bot: &MatrixPerson,
        person: &MatrixPerson,
    ) -> Self {
        let mut builder = self.configured_chats();
        builder.access = format!(
            "MATRIX_HOMESERVER={homeserver}\nMATRIX_ACCESS_TOKEN={}\nMATRIX_ALLOWED_USERS={}",
            bot.token(),
            person.user()
        );
        builder
    }

    /// WhatsApp's Cloud API, spoken to over the wire. Who may write is said before this.
    pub(crate) fn whatsapp(self, server: &WhatsAppServer) -> Self {
        let config = format!(
            "platforms: {{whatsapp_cloud: {{base_url: '{}', webhook_host: 127.0.0.1, webhook_port: 0}}}}\n",
            server.url()
        );
        let mut builder = self.configured_chats().config(&config);
        builder.access = format!(
            "WHATSAPP_CLOUD_PHONE_NUMBER_ID={PHONE_NUMBER_ID}\nWHATSAPP_CLOUD_ACCESS_TOKEN={WHATSAPP_TOKEN}\n\
             WHATSAPP_CLOUD_APP_SECRET={APP_SECRET}\nWHATSAPP_CLOUD_VERIFY_TOKEN={VERIFY_TOKEN}\n{}",
            builder.access
        );
        builder
    }

    /// Slack, spoken to over the wire. Alice may write there, who is `U0ALICE`.
    pub(crate) fn slack(self, server: &SlackServer) -> Self {
        let config = format!("platforms: {{slack: {{base_url: '{}'}}}}\n", server.url());
        let mut builder = self.configured_chats().config(&config);
        builder.access = format!(
            "SLACK_BOT_TOKEN={}\nSLACK_APP_TOKEN={}\nSLACK_ALLOWED_USERS=U0ALICE",
            slack::BOT_TOKEN,
            slack::APP_TOKEN
        );
        builder
    }

    /// The backends that the configuration names, instead of the stand-in.
    pub(crate) fn configured_backends(mut self) -> Self {
        self.configured_backends = true;
        self
    }

    pub(crate) async fn start(self) -> Lab {
        let model = match self.answering {
            Some(reply) => ScriptedServer::answering(reply).await,
            None => ScriptedServer::start(self.script.clone()).await,
        };
        let model = model.unwrap();
        let home = tempfile::tempdir().unwrap();
        let clock = ManualClock::today();
        let chat = FakeChat::new(Platform::Telegram, Arc::new(clock.clone()));
        let backend = (!self.configured_backends).then(|| stand_in(BackendKind::Native));
        let host = stand_in(BackendKind::Local);
        self.write(&home, &model);
        let mut lab = Lab {
            running: None,
            surroundings: Surroundings {
                chats: (!self.configured_chats).then(|| vec![Arc::new(chat.clone()) as _]),
                backends: backend
                    .clone()
                    .map(|sealed| vec![sealed as Arc<dyn Backend>, host]),
                model: self.model,
                agents: self.agents,
                clock: clock.shared(),
                ..Surroundings::default()
            },
            chat,
            backend,
            clock,
            model,
            home,
        };
        lab.start().await;
        lab
    }

    fn write(&self, home: &tempfile::TempDir, model: &ScriptedServer) {
        let token = if self.configured_chats {
            ""
        } else {
            "TELEGRAM_BOT_TOKEN=42:nobody-is-called\n"
        };
        let env = format!("{token}OPENAI_API_KEY={KEY}\n{}\n", self.access);
        let config = format!(
            "model: {{default: scripted, base_url: '{}'}}\n{}",
            model.base_url(),
            self.config
        );
        for (name, text) in [("config.yaml", config), (".env", env)] {
            let path = home.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

fn stand_in(kind: BackendKind) -> Arc<StandInBackend> {
    let backend = StandInBackend::new(hermetic_app::description(kind), Commands::bash());
    // As the configuration has it where nothing is written.
    backend.keep_files(true);
    Arc::new(backend)
}

/// Whether real sandboxes can be had here; if not, that is said aloud.
pub(crate) async fn has_sandboxes(test: &str) -> bool {
    let home = tempfile::tempdir().unwrap();
    let inputs = ConfigInputs {
        home: HomeFolder::at(home.path()),
        managed: home.path().join("no-such-file"),
        variables: Default::default(),
        unreadable: Vec::new(),
    };
    let config = hermetic_config::load(&inputs).unwrap();
    let installation = hermetic_app::installation(config.home()).unwrap();
    let native = BackendKind::Native;
    let why = match hermetic_app::backend(&config, &installation, native, BackendCaller::Onlooker) {
        Err(failure) => Some(failure.to_string()),
        Ok(backend) => {
            let readiness = backend.readiness().await;
            readiness.missing().map(|layer| layer.detail.clone())
        }
    };
    if let Some(why) = &why {
        eprintln!("SKIP: {test}: {why}");
    }
    why.is_none()
}
