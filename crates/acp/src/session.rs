//! One session with an agent: opened, loaded, set up.

use hermetic_store::AgentSettings;
use serde_json::{Value, json};

use crate::bounds::{AgentBounds, LONGEST_REPLAY, LONGEST_WORDS};
use crate::connection::AgentConnection;
use crate::failure::AgentFailure;
use crate::offers::{OfferedChoices, SessionOffers};
use crate::program::AgentProgram;
use crate::stream::{AgentInput, AgentStream};

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
    is_loaded: bool,
    /// What it can be set to.
    pub(crate) offers: SessionOffers,
    /// The mode and the model that it was opened with.
    first: AgentSettings,
    /// What it was last asked to be set to.
    wanted: AgentSettings,
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
        let connection = AgentConnection::over(&program.name, stream, input, bounds.bytes);
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
                .await
                .map_err(AgentFailure::at_the_start)?;
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
            is_loaded: false,
            offers: SessionOffers::default(),
            first: AgentSettings::default(),
            wanted: AgentSettings::default(),
        };
        let (opened, origin) = session.find(workspace, earlier).await?;
        session.is_loaded = origin == SessionOrigin::Loaded;
        session.offers = SessionOffers::read(&opened);
        session.first = AgentSettings {
            mode: session.offers.modes.current.clone(),
            model: session.offers.models.current.clone(),
        };
        session.set(&program.settings()).await;
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
            // All that was ever said comes again, which is no flood.
            let replay = self.bounds.bytes.saturating_mul(LONGEST_REPLAY);
            self.connection.bound_written(replay);
            let loaded = self
                .connection
                .request("session/load", params, self.bounds.start)
                .await;
            self.connection.put_back();
            self.connection.bound_written(self.bounds.bytes);
            match loaded {
                Ok(opened) => {
                    earlier.clone_into(&mut self.id);
                    return Ok((opened, SessionOrigin::Loaded));
                }
                // Only a refusal means that the session is not there. For any other reason it is not
                // given up here: that may pass, and what an agent remembers cannot be had back.
                Err(failure) if failure.is_final() => {
                    let why = failure.to_string();
                    return Err(AgentFailure::NotLoaded { why });
                }
                Err(failure) => tracing::info!(agent = self.agent, %failure, "a session is lost"),
            }
        }
        let params = json!({"cwd": workspace, "mcpServers": []});
        let opened = self
            .connection
            .request("session/new", params, self.bounds.start)
            .await
            .map_err(AgentFailure::at_the_start)?;
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

    /// Sets mode and model to what is wanted, where that changed since it was last asked for: an agent may go
    /// from one mode to the next by itself. What does not come about is told, and is no reason to answer
    /// nothing: the sandbox holds whatever the mode is.
    pub(crate) async fn set(&mut self, wanted: &AgentSettings) -> Vec<String> {
        let mut told = Vec::new();
        if wanted.mode != self.wanted.mode {
            let mode = wanted.mode.clone().or_else(|| self.first.mode.clone());
            told.extend(match mode {
                Some(mode) => self.set_mode(&mode).await,
                None => None,
            });
        }
        if wanted.model != self.wanted.model {
            let model = wanted.model.clone().or_else(|| self.first.model.clone());
            told.extend(match model {
                Some(model) => self.set_model(&model).await,
                None => None,
            });
        }
        self.wanted = wanted.clone();
        told
    }

    async fn set_mode(&mut self, wanted: &str) -> Option<String> {
        let Some(id) = self.id_of(&self.offers.modes, wanted) else {
            return Some(self.not_offered("mode", wanted));
        };
        let call = self.offers.set_mode(&self.id, &id);
        let failed = self.call("mode", &id, call).await;
        if failed.is_none() {
            self.offers.modes.current = Some(id);
        }
        failed
    }

    async fn set_model(&mut self, wanted: &str) -> Option<String> {
        let Some(id) = self.id_of(&self.offers.models, wanted) else {
            return Some(self.not_offered("model", wanted));
        };
        let call = self.offers.set_model(&self.id, &id);
        let failed = self.call("model", &id, call).await;
        if failed.is_none() {
            self.offers.models.current = Some(id);
        }
        failed
    }

    /// Some say nothing of what they offer when they load a session: then it is tried.
    fn id_of(&self, offered: &OfferedChoices, wanted: &str) -> Option<String> {
        let is_unknown = self.is_loaded && offered.choices.is_empty();
        let found = offered.find(wanted).map(|choice| choice.id.clone());
        found.or_else(|| is_unknown.then(|| wanted.to_owned()))
    }

    fn not_offered(&self, kind: &str, wanted: &str) -> String {
        format!(
            "{} does not offer the {kind} {wanted}, and goes on as it was",
            self.agent
        )
    }

    /// Why it was not set.
    async fn call(
        &self,
        kind: &str,
        value: &str,
        (method, params): (&str, Value),
    ) -> Option<String> {
        let set = self.connection.request(method, params, self.bounds.start);
        let failure = set.await.err()?;
        tracing::warn!(agent = self.agent, method, %failure, "a session is not as it was wanted");
        Some(format!(
            "{} did not take the {kind} {value}: it {failure}",
            self.agent
        ))
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
