//! Who answers in a conversation: our own agent, or somebody else's in its sandbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use hermetic_acp::{
    AgentBounds, AgentProgram, AgentPrograms, AgentSupervisor, ModelTraffic, PermissionAnswer,
    PermissionRequest, ReportedTool, SettingCommand,
};
use hermetic_agent::Agent;
use hermetic_approvals::CommandApprovals;
use hermetic_chat::{ChatReply, ReplyRule};
use hermetic_redact::Redacted;
use hermetic_session::PROXY_PORT;
use hermetic_store::{AgentSettingKind, AgentSettings, StoreError};
use hermetic_types::{Boundary, ConversationKey, Platform};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::CommandError;
use crate::Gateway;
use crate::message::AcceptedMessage;

/// The name by which our own agent is chosen.
pub const OWN_AGENT: &str = "hermetic";

/// Agents of others that may answer, and who does where nobody chose.
#[derive(Clone, Debug)]
pub struct AgentChoices {
    pub programs: Arc<dyn AgentPrograms>,
    /// Who answers where nothing else is said; our own agent where absent.
    pub usual: Option<String>,
    /// Who answers on a platform.
    pub platforms: BTreeMap<Platform, String>,
    pub bounds: AgentBounds,
    /// Whether what an agent thinks is shown while its answer grows.
    pub shows_thoughts: bool,
}

/// Whoever takes the next turn of a conversation.
pub(crate) enum Answerer<'a> {
    Own(&'a Agent),
    /// Somebody else's, with what was chosen of it here.
    Sealed(Box<AgentProgram>, AgentSettings),
    /// The one that was chosen cannot; why, in words for the person.
    Nobody(String),
}

impl Gateway {
    /// Whoever answers this message.
    pub(crate) async fn answerer(
        &self,
        message: &AcceptedMessage,
    ) -> Result<Answerer<'_>, StoreError> {
        let conversation = message.conversation();
        let Some(name) = self.agent_name(message).await? else {
            // Hosts and keys of the agent that answered before go with it, before our own takes a
            // step: they were allowed for its program, not for this conversation.
            if let Some(egress) = self.sandboxes.egress_of(conversation) {
                egress.choose_agent(conversation, None);
            }
            self.running_agents.end(conversation);
            return Ok(Answerer::Own(self.agent_of(conversation).await?));
        };
        let ready = self.ready_program(message, &name);
        Ok(match ready {
            Ok(program) => {
                let chosen = self.store.agent_settings().of(conversation, &name).await?;
                Answerer::Sealed(Box::new(program), chosen)
            }
            Err(why) => Answerer::Nobody(format!(
                "{why} Nothing was done. /agent {OWN_AGENT} has our own agent answer here."
            )),
        })
    }

    /// The name of the agent of somebody else's that answers here: chosen here, or for the platform, or for all.
    pub(crate) async fn agent_name(
        &self,
        message: &AcceptedMessage,
    ) -> Result<Option<String>, StoreError> {
        let chosen = self
            .store
            .conversation_agents()
            .of(message.conversation())
            .await?;
        let platform = self.agents.platforms.get(&message.said().platform());
        let name = chosen.or_else(|| platform.cloned());
        let name = name.or_else(|| self.agents.usual.clone());
        Ok(name.filter(|name| name != OWN_AGENT))
    }

    /// The program, if it can run where this conversation's commands do.
    fn usable_program(
        &self,
        message: &AcceptedMessage,
        name: &str,
    ) -> Result<AgentProgram, String> {
        let facts = &self.toolsets.of(message.said().platform()).facts;
        // What somebody else's program does is judged by nobody: only a seal holds it.
        if facts.boundary != Boundary::Sealed {
            return Err(format!(
                "{name} does not run on the backend {}: what it does there is held by no sandbox. The operator \
                 can choose a sealed backend (terminal.backend: native or docker).",
                facts.backend
            ));
        }
        let program = self.agents.programs.program(name, facts.backend);
        let program = program.map_err(|error| format!("{error}."))?;
        let egress = self.sandboxes.egress_of(message.conversation());
        if egress.is_none() && !program.hosts.is_empty() {
            return Err(format!(
                "{name} needs {}, and sandboxes of this gateway have no way out (gateway.egress.mode is closed).",
                program.hosts.join(", ")
            ));
        }
        Ok(program)
    }

    /// The same, with what its conversation may reach made ready.
    fn ready_program(&self, message: &AcceptedMessage, name: &str) -> Result<AgentProgram, String> {
        let conversation = message.conversation();
        let mut program = self.usable_program(message, name)?;
        let Some(egress) = self.sandboxes.egress_of(conversation) else {
            return Ok(program);
        };
        // A sandbox that is older than the certificates does not name them to its programs.
        let mut environment = egress.env(conversation, PROXY_PORT);
        environment.extend(program.environment);
        // Last: the placeholders that the proxy knows.
        environment.extend(egress.choose_agent(conversation, Some(name)));
        program.environment = environment;
        Ok(program)
    }

    /// Shows who answers here, or has another answer.
    pub(crate) async fn choose_agent(
        &self,
        message: &AcceptedMessage,
        wanted: &str,
    ) -> Result<Redacted<String>, CommandError> {
        let rows = self.store.conversation_agents();
        let conversation = message.conversation();
        if wanted.is_empty() {
            return Ok(self.redactor.redact(self.agent_list(message).await?));
        }
        // Another agent may be dearer, and its keys are somebody's.
        if !message.may_answer() {
            return Ok(Redacted::constant(
                "Only somebody who may approve chooses the agent. /agent alone says who answers here.",
            ));
        }
        let wanted = wanted.to_ascii_lowercase();
        if wanted == "default" {
            rows.forget(conversation).await?;
        } else if wanted == OWN_AGENT {
            rows.choose(conversation, OWN_AGENT).await?;
        } else {
            // Only looked at: what the agent may reach changes with its first turn, not under one that runs.
            if let Err(why) = self.usable_program(message, &wanted) {
                return Ok(self.redactor.redact(format!("{why} Nothing was changed.")));
            }
            rows.choose(conversation, &wanted).await?;
        }
        let now = self.agent_name(message).await?;
        Ok(self.redactor.redact(format!(
            "From now on {} answers here. It does not know what was said to another; the files are the same.",
            now.as_deref().unwrap_or(OWN_AGENT)
        )))
    }

    /// Shows the mode or the model of the agent of somebody else's that answers here, or has it take another.
    pub(crate) async fn agent_setting(
        &self,
        message: &AcceptedMessage,
        agent: &str,
        (kind, wanted): (AgentSettingKind, &str),
    ) -> Result<Redacted<String>, CommandError> {
        let rows = self.store.agent_settings();
        let command = SettingCommand {
            rows: &rows,
            agents: &self.running_agents,
            conversation: message.conversation(),
            agent,
            kind,
        };
        let text = match (wanted.is_empty(), message.may_answer()) {
            (true, _) => command.list().await?,
            (false, true) => command.choose(wanted).await?,
            // A mode may ask less, and a model be dearer.
            (false, false) => format!(
                "Only somebody who may approve chooses that. /{} alone lists what there is.",
                kind.name()
            ),
        };
        Ok(self.redactor.redact(text))
    }

    /// `/mode`: those of somebody else's agent, where one answers.
    pub(crate) async fn mode(
        &self,
        message: &AcceptedMessage,
        wanted: &str,
    ) -> Result<Redacted<String>, CommandError> {
        let Some(agent) = self.agent_name(message).await? else {
            return Ok(Redacted::constant(
                "Our own agent answers here, and has no modes. /agent lists others.",
            ));
        };
        self.agent_setting(message, &agent, (AgentSettingKind::Mode, wanted))
            .await
    }

    async fn agent_list(&self, message: &AcceptedMessage) -> Result<String, StoreError> {
        let here = self.agent_name(message).await?;
        let here = here.as_deref().unwrap_or(OWN_AGENT);
        let mut text = format!("here: {here}");
        if here != OWN_AGENT {
            text.push_str(&format!(
                "\n/agent {OWN_AGENT} - our own agent, with the model of this gateway"
            ));
        }
        let backend = self.toolsets.of(message.said().platform()).facts.backend;
        let listed = self.agents.programs.list(backend);
        for agent in listed.iter().filter(|agent| agent.name != here) {
            let missing = agent.missing.as_deref();
            let missing = missing.map_or_else(String::new, |why| format!(" (not now: {why})"));
            text.push_str(&format!(
                "\n/agent {} - {}{missing}",
                agent.name, agent.about
            ));
        }
        if listed.is_empty() {
            text.push_str("\nNo other agent is set up on this gateway.");
        }
        Ok(text)
    }

    /// The conversation starts anew for agents of others too.
    pub(crate) async fn forget_agents(
        &self,
        conversation: &ConversationKey,
    ) -> Result<(), StoreError> {
        // The process first, which cannot fail: one that is still there would go on with its
        // session, whatever the rows say.
        self.running_agents.end(conversation);
        self.store.agent_sessions().forget(conversation).await
    }
}

/// Looks after somebody else's agent while it works on a message.
pub(crate) struct TurnSupervisor<'a> {
    gateway: &'a Gateway,
    message: &'a AcceptedMessage,
    people: &'a CommandApprovals,
    told: AtomicUsize,
}

/// Messages about refused hosts in one turn. What comes later is told with the answer.
const MOST_NOTICES: usize = 3;
/// For one of them to be sent. The agent waits meanwhile.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(3);

impl<'a> TurnSupervisor<'a> {
    pub(crate) fn new(
        gateway: &'a Gateway,
        message: &'a AcceptedMessage,
        people: &'a CommandApprovals,
    ) -> Self {
        Self {
            gateway,
            message,
            people,
            told: AtomicUsize::new(0),
        }
    }

    async fn tell_refused(&self) {
        let said = self.message.said();
        let chat = self.gateway.outbox.chat(&said.account);
        // Where a message takes one answer, this is not it.
        let Some(chat) = chat.filter(|chat| chat.capabilities().replies == ReplyRule::Free) else {
            return;
        };
        // Looked at before the refused hosts are taken, because taking empties the list: what is
        // not told now is told with the answer, which takes it too.
        if self.told.load(Ordering::Relaxed) >= MOST_NOTICES {
            return;
        }
        let refused = self.gateway.refused_hosts(self.message);
        if refused.is_empty() {
            return;
        }
        self.told.fetch_add(1, Ordering::Relaxed);
        let text = self.gateway.redactor.redact(refused.trim());
        let reply = ChatReply::text(text.into());
        match timeout(NOTICE_TIMEOUT, chat.send(&said.place, &reply)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "nobody was told of a refused host"),
            Err(_) => tracing::debug!("telling of a refused host takes long"),
        }
    }
}

impl AgentSupervisor for TurnSupervisor<'_> {
    fn ask<'a>(
        &'a self,
        request: &'a PermissionRequest,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionAnswer> {
        self.people.ask_for_agent(request, stop).boxed()
    }

    fn note_tool(&self, tool: &ReportedTool) {
        self.people.note_agent_tool(tool);
    }

    fn look_out(&self) -> BoxFuture<'_, ()> {
        self.tell_refused().boxed()
    }

    fn model_traffic(&self) -> ModelTraffic {
        let conversation = self.message.conversation();
        let Some(egress) = self.gateway.sandboxes.egress_of(conversation) else {
            return ModelTraffic::default();
        };
        let seen = egress.agent_traffic(conversation);
        ModelTraffic {
            requests: seen.requests,
            bytes_up: seen.bytes_up,
            bytes_down: seen.bytes_down,
        }
    }
}
