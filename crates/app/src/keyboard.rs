//! What a conversation at a keyboard needs, from the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use hermetic_acp::{AgentProgram, AgentPrograms, RunningAgents};
use hermetic_agent::{Agent, prompt};
use hermetic_approvals::{
    ApprovalMetrics, ApprovalPrompt, ApprovalRegistry, CommandApprovals, FixedPrompt, Requester,
};
use hermetic_config::Config;
use hermetic_egress::EgressMetrics;
use hermetic_gateway::{KeyboardMemory, OWN_AGENT, ReachableSandboxes};
use hermetic_redact::Redactor;
use hermetic_session::{PROXY_PORT, Sandboxes, SpendingBook};
use hermetic_store::{AgentSessionRows, AgentSettingRows, HistoryRows, Store};
use hermetic_tools::{TodoLists, ToolKit};
use hermetic_types::{BackendKind, Boundary, ConversationKey, SharedClock, SystemClock};

use super::agents::AgentMounts;
use super::egress::EgressApprovers;
use super::{BackendCaller, ShowProgress, agents, approvals, facts, kit, model};
use crate::AppFailure;

#[derive(Debug)]
pub struct KeyboardChat {
    pub agent: Agent,
    /// Its name, for people.
    pub model: String,
    pub kit: ToolKit,
    pub approvals: ApprovalRegistry,
    pub asker: CommandApprovals,
    pub sandboxes: Sandboxes,
    pub history: HistoryRows,
    /// Somebody else's agent, where that one answers.
    pub sealed: Option<AgentProgram>,
    pub running_agents: RunningAgents,
    pub agent_sessions: AgentSessionRows,
    /// The modes and models that were chosen of such agents.
    pub agent_settings: AgentSettingRows,
    /// Whether what such an agent thinks is shown.
    pub shows_thoughts: bool,
    pub redactor: Redactor,
    pub facts: prompt::PromptFacts,
    /// What outlives the conversation; nothing where it is not a person who types.
    pub memory: Option<KeyboardMemory>,
    /// Whether `/destroy` asks first.
    pub confirm_destructive: bool,
    /// Where the lines are remembered that were typed.
    pub line_history: PathBuf,
}

/// The person at the keyboard.
#[derive(Debug)]
pub struct KeyboardPerson {
    /// Who answers, for the record.
    pub name: String,
    /// Where questions of the conversation are shown.
    pub screen: Arc<dyn ApprovalPrompt>,
    pub progress: ShowProgress,
    /// The agent that was asked for, by its name.
    pub agent: Option<String>,
    pub memories: KeyboardMemories,
}

/// Whether somebody at a keyboard is shown what is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyboardMemories {
    /// Something that the agent runs may have started this.
    Withheld,
    /// The conversation is gone at its end.
    Passing,
    /// It has a name and is found again.
    Kept,
}

/// A conversation with somebody who sits in front of this program.
pub async fn keyboard_chat(
    config: &Config,
    kind: BackendKind,
    conversation: &ConversationKey,
    person: KeyboardPerson,
    redactor: Redactor,
) -> Result<KeyboardChat, AppFailure> {
    let (caller, screen) = (BackendCaller::CommandLine(person.progress), person.screen);
    let clock = SystemClock::shared();
    let installation = super::installation(config.home())?;
    // Opened first: where no sandbox can be had, nothing else matters.
    let backends = super::backends::backends(config, &installation, kind, caller, &clock)?;
    let store = super::store(config).await?;
    super::refuse_beside_shared_work(config, &store).await?;
    let reviewer = approvals::reviewer(config, &clock)?;
    let reviewed = (reviewer, Arc::clone(&clock));
    let metrics = ApprovalMetrics::default();
    let approvals = approvals::guarded(config, &store, &redactor, reviewed, metrics)?;
    let requester = Requester {
        conversation: conversation.clone(),
        message: None,
        by: person.name,
    };
    let prompt = Arc::new(FixedPrompt {
        requester: requester.clone(),
        prompt: Arc::clone(&screen),
    });
    let people = EgressApprovers {
        hosts: approvals.hosts(prompt, super::rule_book(config)),
        record: approvals.egress_record(),
        metrics: EgressMetrics::default(),
        feed: None,
    };
    let programs = agents::programs(config, agents::known(config));
    let foreseen = programs.foreseen(&[kind]);
    let gate = super::egress::timed_gate(config, Some(people), &foreseen, &clock)?;
    let lifetime = config.terminal().lifetime;
    let mut plan = super::plan(config, kind, lifetime, caller);
    plan.network = super::network(config, kind, gate.as_ref());
    let mut facts = facts::facts(config, &plan);
    facts.chat = "a terminal".to_owned();
    facts.character = super::memory::character(config);
    let sandboxes = Sandboxes::new(
        plan,
        installation,
        backends,
        store.ledger(),
        Arc::clone(&clock),
    )
    .with_installed(Arc::new(AgentMounts(Arc::clone(&programs))));
    let model = model::model(config, &clock)?;
    let sandboxes = match gate {
        Some(gate) => sandboxes.with_egress(gate, SpendingBook::in_store(store.documents())),
        None => sandboxes,
    };
    let sealed = match person.agent.or_else(|| agents::usual(config)) {
        Some(name) if name != OWN_AGENT => {
            let place = (conversation, &facts);
            Some(sealed_agent(&*programs, &name, place, &sandboxes)?)
        }
        _ => None,
    };
    let memory = (person.memories != KeyboardMemories::Withheld).then(|| {
        let is_kept = person.memories == KeyboardMemories::Kept;
        KeyboardMemory::new(
            super::memory::personal_memory(config, &store, &redactor),
            store.clone(),
            (approvals.clone(), redactor.clone()),
            (conversation.clone(), is_kept),
            Arc::clone(&clock),
        )
    });
    Ok(KeyboardChat {
        model: model.name().to_owned(),
        agent: model::agent(config, model, &redactor, &clock)?,
        kit: keyboard_kit(config, kind, (&store, &sandboxes), &redactor, &clock),
        asker: approvals.commands(requester, screen),
        approvals,
        sandboxes,
        history: store.history(),
        sealed,
        running_agents: RunningAgents::default(),
        agent_sessions: store.agent_sessions(),
        agent_settings: store.agent_settings(),
        shows_thoughts: config.agent().show_reasoning,
        redactor,
        facts,
        memory,
        confirm_destructive: config.approvals().confirm_destructive_slash,
        line_history: config.home().state().join("chat-history"),
    })
}

fn keyboard_kit(
    config: &Config,
    kind: BackendKind,
    (store, sandboxes): (&Store, &Sandboxes),
    redactor: &Redactor,
    clock: &SharedClock,
) -> ToolKit {
    let reach = Arc::new(ReachableSandboxes(sandboxes.clone()));
    kit::kit(
        config,
        kind,
        redactor,
        kit::background(config, redactor, None, reach, clock),
        kit::mcp(config, kind, redactor, Some(store.documents()), clock),
        Some(TodoLists::new(store.todo_lists())),
        clock,
    )
}

/// The agent that answers at the keyboard, with what it may reach made ready.
fn sealed_agent(
    programs: &dyn AgentPrograms,
    name: &str,
    (conversation, facts): (&ConversationKey, &prompt::PromptFacts),
    sandboxes: &Sandboxes,
) -> Result<AgentProgram, AppFailure> {
    if facts.boundary != Boundary::Sealed {
        return Err(AppFailure::new(
            format!(
                "{name} does not run on the backend {}: what it does there is held by no sandbox",
                facts.backend
            ),
            "choose a sealed backend with --backend, or our own agent with --agent hermetic",
        ));
    }
    let program = programs.program(name, facts.backend);
    let remedy = "--agent hermetic has our own agent answer";
    let mut program = program.map_err(|error| AppFailure::new(error.to_string(), remedy))?;
    if let Some(egress) = sandboxes.egress_of(conversation) {
        // What comes later stands over what came before: the operator's own variables over the
        // proxy's, and the stand-ins for keys over both, so that a real key in `env` does not get
        // in where there is a stand-in for it.
        let mut environment = egress.env(conversation, PROXY_PORT);
        environment.extend(program.environment);
        environment.extend(egress.choose_agent(conversation, Some(name)));
        program.environment = environment;
    }
    Ok(program)
}
