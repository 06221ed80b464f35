//! One session with an agent: opened, loaded, set up.

use serde_json::{Value, json};

use crate::bounds::{AgentBounds, LONGEST_WORDS};
use crate::connection::AgentConnection;
use crate::failure::AgentFailure;
use crate::program::AgentProgram;
use crate::stream::{AgentInput, AgentStream};
use crate::update::{listed, words};

const PROTOCOL_VERSION: u64 = 1;

/// A session with a living agent. Dropping it ends the agent.
#[derive(Debug)]
pub struct AgentSession {
    pub(crate) connection: AgentConnection,
    pub(crate) id: String,
    pub(crate) agent: String,
    /// Whether it can be shown images.
    pub(crate) takes_images: bool,
    /// Whether it finds a session again after it was ended.
    pub(crate) loads: bool,
    pub(crate) bounds: AgentBounds,
    /// What the session has cost before this turn, in dollars by the agent's word.
    pub(crate) cost: f64,
}

/// How a session came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionOrigin {
    New,
    /// The agent remembers what was said.
    Loaded,
    /// There was one before, and the agent does not find it any more.
    Lost,
}

impl AgentSession {
    /// Opens a session with an agent that was just started: the earlier one where the agent finds it, else a
    /// new one.
    pub async fn open(
        (stream, input): (impl AgentStream + 'static, impl AgentInput + 'static),
        program: &AgentProgram,
        (workspace, earlier): (&str, Option<&str>),
        bounds: AgentBounds,
    ) -> Result<(Self, SessionOrigin), AgentFailure> {
        let connection = AgentConnection::over(stream, input, bounds.bytes);
        let hello = connection.request("initialize", initialize(), bounds.start);
        let hello = hello.await?;
        let version = hello.get("protocolVersion").and_then(Value::as_u64);
        // Before anything else is asked: of another version not even an error would be understood.
        if version != Some(PROTOCOL_VERSION) {
            let version = version.map_or("none".to_owned(), |version| version.to_string());
            return Err(AgentFailure::Version { version });
        }
        if let Some(method) = &program.authenticate {
            let params = json!({"methodId": method});
            connection
                .request("authenticate", params, bounds.start)
                .await?;
        }
        let can = |path: &str| hello.pointer(path).and_then(Value::as_bool) == Some(true);
        let mut session = Self {
            connection,
            id: String::new(),
            agent: program.name.clone(),
            takes_images: can("/agentCapabilities/promptCapabilities/image"),
            loads: can("/agentCapabilities/loadSession"),
            bounds,
            cost: 0.0,
        };
        let (opened, origin) = session.find(workspace, earlier).await?;
        session.set_up(&opened, program).await;
        // A session that was replayed is long, and nobody asked for its words.
        session.connection.put_back();
        Ok((session, origin))
    }

    /// What the agent calls the session.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn is_alive(&self) -> bool {
        self.connection.is_alive()
    }

    async fn find(
        &mut self,
        workspace: &str,
        earlier: Option<&str>,
    ) -> Result<(Value, SessionOrigin), AgentFailure> {
        if let Some(earlier) = earlier.filter(|_| self.loads) {
            let params = json!({"sessionId": earlier, "cwd": workspace, "mcpServers": []});
            let loaded = self
                .connection
                .request("session/load", params, self.bounds.start);
            match loaded.await {
                Ok(opened) => {
                    earlier.clone_into(&mut self.id);
                    return Ok((opened, SessionOrigin::Loaded));
                }
                // Only a refusal means that the session is not there. An agent that died or hangs
                // while loading would do so with a new one.
                Err(failure) if failure.is_final() => return Err(failure),
                Err(failure) => tracing::info!(agent = self.agent, %failure, "a session is lost"),
            }
        }
        let params = json!({"cwd": workspace, "mcpServers": []});
        let opened = self
            .connection
            .request("session/new", params, self.bounds.start)
            .await?;
        let id = opened.get("sessionId").and_then(Value::as_str);
        let id = id.filter(|id| !id.is_empty() && id.len() <= LONGEST_WORDS);
        self.id = id
            .map(str::to_owned)
            .ok_or_else(|| AgentFailure::Unreadable {
                method: "session/new".to_owned(),
            })?;
        let origin = match earlier {
            Some(_) => SessionOrigin::Lost,
            None => SessionOrigin::New,
        };
        Ok((opened, origin))
    }

    /// Sets mode and model where the agent offers them. One that it does not offer, or refuses, is no
    /// reason to answer nothing: the sandbox holds whatever the mode is.
    async fn set_up(&self, opened: &Value, program: &AgentProgram) {
        if let Some(mode) = &program.session_mode {
            let modes = opened.get("modes").unwrap_or(&Value::Null);
            let is_offered =
                listed(modes, "availableModes").any(|one| words(one, "id").as_ref() == Some(mode));
            let params = json!({"sessionId": self.id, "modeId": mode});
            match is_offered {
                true => self.set("session/set_mode", params).await,
                false => self.set_option(opened, "mode", mode).await,
            }
        }
        if let Some(model) = &program.session_model {
            let models = opened.get("models").unwrap_or(&Value::Null);
            let is_offered = listed(models, "availableModels")
                .any(|one| words(one, "modelId").as_ref() == Some(model));
            let params = json!({"sessionId": self.id, "modelId": model});
            match is_offered {
                true => self.set("session/set_model", params).await,
                false => self.set_option(opened, "model", model).await,
            }
        }
    }

    /// Newer agents have modes and models among their options.
    async fn set_option(&self, opened: &Value, category: &str, value: &str) {
        let mut options = listed(opened, "configOptions");
        let option = options.find(|one| words(one, "category").as_deref() == Some(category));
        match option.and_then(|option| words(option, "id")) {
            Some(id) => {
                let params = json!({"sessionId": self.id, "configId": id, "value": value});
                self.set("session/set_config_option", params).await;
            }
            None => tracing::warn!(
                agent = self.agent,
                category,
                value,
                "the agent does not offer it"
            ),
        }
    }

    async fn set(&self, method: &str, params: Value) {
        let set = self
            .connection
            .request(method, params, self.bounds.start)
            .await;
        if let Err(failure) = set {
            tracing::warn!(agent = self.agent, method, %failure, "a session is not as it was wanted");
        }
    }
}

/// Neither files nor terminals of ours are offered: the agent has those of its sandbox.
fn initialize() -> Value {
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": {
            "fs": {"readTextFile": false, "writeTextFile": false},
            "terminal": false,
        },
        "clientInfo": {"name": "hermetic", "title": "Hermetic", "version": env!("CARGO_PKG_VERSION")},
    })
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
