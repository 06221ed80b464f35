//! Somebody else's agents that live at the moment, and the memory of each.

use std::time::Duration;

use hermetic_app as app;
use hermetic_config::Config;
use hermetic_sandbox::{Backend, FoundState, SandboxProcess};
use hermetic_store::{LedgerEntry, RowOwner};
use hermetic_types::{BackendKind, ConversationKey, SandboxId};
use serde::Serialize;
use tokio::time::timeout;

use crate::commands::on_this_thread;
use crate::failure::CommandFailure;
use crate::output::size;

/// An agent in the sandbox of a conversation.
#[derive(Debug, Serialize)]
pub(super) struct LivingAgent {
    pub(super) conversation: ConversationKey,
    pub(super) agent: String,
    sandbox: SandboxId,
    backend: BackendKind,
    /// Of all that runs in the sandbox, the agent with what it started; where the backend can tell.
    memory_bytes: Option<u64>,
    processes: Option<u64>,
}

/// For a backend to answer. One that does not holds up nobody.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);
const MOST_PROCESSES: usize = 2000;

/// Those whose sandbox runs. What cannot be looked at is left out: this is no more than a look.
pub(super) fn living(config: &Config) -> Vec<LivingAgent> {
    let mut found = Vec::new();
    let looked = on_this_thread(async {
        found = look(config).await?;
        Ok(crate::exit::ExitReason::Ok)
    });
    if let Err(error) = looked {
        tracing::debug!(
            error = error.why().to_string(),
            "agents cannot be looked at"
        );
    }
    found
}

async fn look(config: &Config) -> Result<Vec<LivingAgent>, CommandFailure> {
    // Where no gateway ever served, nothing is made by looking.
    let store = app::store(config).await?;
    let installation = app::installation(config.home())?;
    let entries = store.ledger().entries(RowOwner::AnyGateway).await?;
    let mut living = Vec::new();
    for backend in app::all_backends(config, &installation) {
        let own = entries
            .iter()
            .filter(|entry| entry.backend == backend.kind());
        let own: Vec<_> = own.collect();
        if own.is_empty() {
            continue;
        }
        let Ok(Ok(listed)) = timeout(LOOK_TIMEOUT, backend.list()).await else {
            continue;
        };
        let running = listed.iter().filter(|one| one.state == FoundState::Running);
        for sandbox in running {
            let Some(entry) = own.iter().find(|entry| entry.id == sandbox.id) else {
                continue;
            };
            let agents = store
                .agent_sessions()
                .agents_of(&entry.conversation)
                .await?;
            let Some(agent) = chosen(config, &store, entry, agents).await? else {
                continue;
            };
            living.extend(measure(&*backend, entry, agent).await);
        }
    }
    living.sort_by(|one, two| one.conversation.as_str().cmp(two.conversation.as_str()));
    Ok(living)
}

/// Of the agents that have a session there, the one that answers.
async fn chosen(
    config: &Config,
    store: &hermetic_store::Store,
    entry: &LedgerEntry,
    agents: Vec<String>,
) -> Result<Option<String>, CommandFailure> {
    if agents.is_empty() {
        return Ok(None);
    }
    let conversation = &entry.conversation;
    let chosen = store.conversation_agents().of(conversation).await?;
    let answers = chosen.or_else(|| configured(config, conversation));
    Ok(answers.filter(|name| agents.contains(name)))
}

/// Whoever answers where nobody chose: for the conversation's platform, or for all.
fn configured(config: &Config, conversation: &ConversationKey) -> Option<String> {
    let platform = conversation.platform();
    let platforms = config.platforms().all().into_iter();
    let mut own = platforms.filter(|one| one.kind() == platform && platform.is_some());
    let of_platform = own.find_map(|one| one.agent.clone());
    of_platform.or_else(|| config.acp_agents().first().map(|agent| agent.name.clone()))
}

/// `None` where nothing but the warden runs: the agent has ended.
async fn measure(backend: &dyn Backend, entry: &LedgerEntry, agent: String) -> Option<LivingAgent> {
    let looked = timeout(LOOK_TIMEOUT, backend.processes(&entry.id, MOST_PROCESSES)).await;
    let processes = looked.ok().flatten();
    // The first is the warden.
    let own = |processes: &[SandboxProcess]| -> Vec<u64> {
        let own = processes
            .iter()
            .filter(|one| !one.name.starts_with("hermetic"));
        own.map(|one| one.memory_bytes).collect()
    };
    let own = processes.as_deref().map(own);
    if own.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    Some(LivingAgent {
        conversation: entry.conversation.clone(),
        agent,
        sandbox: entry.id.clone(),
        backend: entry.backend,
        memory_bytes: own.as_ref().map(|own| own.iter().sum()),
        processes: own.map(|own| own.len() as u64),
    })
}

impl LivingAgent {
    pub(super) fn line(&self) -> String {
        let memory = match (self.memory_bytes, self.processes) {
            (Some(bytes), Some(processes)) => format!("{}, {processes} processes", size(bytes)),
            _ => format!("memory not known on {}", self.backend),
        };
        format!("{} in {}: {memory}", self.agent, self.conversation)
    }
}

#[cfg(test)]
mod tests {
    use hermetic_config::{ConfigInputs, HomeFolder};

    use super::*;

    #[test]
    fn a_platform_that_has_an_agent_of_its_own_is_found_in_the_key_of_a_conversation() {
        let home = tempfile::tempdir().unwrap();
        let text = "agent: {acp: opencode}\nplatforms: {telegram: {agent: claude}}\n";
        std::fs::write(home.path().join("config.yaml"), text).unwrap();
        let inputs = ConfigInputs {
            home: HomeFolder::at(home.path()),
            managed: home.path().join("no-such-file"),
            variables: Default::default(),
            unreadable: Vec::new(),
        };
        let config = hermetic_config::load(&inputs).unwrap();
        let answers = |key: &str| configured(&config, &ConversationKey::new(key));
        assert_eq!(
            answers("agent:main:telegram:dm:7").as_deref(),
            Some("claude")
        );
        assert_eq!(
            answers("agent:main:slack:dm:7").as_deref(),
            Some("opencode")
        );
        assert_eq!(answers("keyboard").as_deref(), Some("opencode"));
    }
}
