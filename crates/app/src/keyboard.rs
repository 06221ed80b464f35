//! What a conversation at a keyboard needs, from the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use hermetic_agent::{Agent, prompt};
use hermetic_approvals::{
    ApprovalMetrics, ApprovalPrompt, ApprovalRegistry, CommandApprovals, FixedPrompt, Requester,
};
use hermetic_config::Config;
use hermetic_egress::EgressMetrics;
use hermetic_gateway::ReachableSandboxes;
use hermetic_redact::Redactor;
use hermetic_session::{Sandboxes, SpendingBook};
use hermetic_store::HistoryRows;
use hermetic_tools::ToolKit;
use hermetic_types::{BackendKind, ConversationKey, SystemClock};

use super::egress::EgressApprovers;
use super::{BackendCaller, ShowProgress, approvals, facts, kit, model};
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
    pub redactor: Redactor,
    pub facts: prompt::PromptFacts,
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
    let backends = super::backends(config, &installation, kind, caller, &clock)?;
    let store = super::store(config).await?;
    let reviewer = approvals::reviewer(config, &clock)?;
    let reviewed = (reviewer, Arc::clone(&clock));
    let metrics = ApprovalMetrics::default();
    let approvals = approvals::guarded(config, &store, &redactor, reviewed, metrics)?;
    let requester = Requester {
        conversation: conversation.clone(),
        message: None,
        by: person.name,
    };
    let people = EgressApprovers {
        hosts: approvals.hosts(
            Arc::new(FixedPrompt {
                requester: requester.clone(),
                prompt: Arc::clone(&screen),
            }),
            super::rule_book(config),
        ),
        record: approvals.egress_record(),
        metrics: EgressMetrics::default(),
        feed: None,
    };
    let gate = super::egress::timed_gate(config, Some(people), &clock)?;
    let lifetime = config.terminal().lifetime;
    let mut plan = super::plan(config, kind, lifetime, caller);
    plan.network = super::network(config, kind, gate.as_ref());
    let mut facts = facts::facts(config, &plan);
    facts.chat = "a terminal".to_owned();
    let sandboxes = Sandboxes::new(
        plan,
        installation,
        backends,
        store.ledger(),
        Arc::clone(&clock),
    );
    let model = model::model(config, &clock)?;
    let sandboxes = match gate {
        Some(gate) => sandboxes.with_egress(gate, SpendingBook::in_store(store.documents())),
        None => sandboxes,
    };
    let reach = Arc::new(ReachableSandboxes(sandboxes.clone()));
    let background = kit::background(config, &redactor, None, reach, &clock);
    Ok(KeyboardChat {
        model: model.name().to_owned(),
        agent: model::agent(config, model, &redactor, &clock)?,
        kit: kit::kit(
            config,
            kind,
            &redactor,
            background,
            kit::mcp(config, kind, &redactor, Some(store.documents()), &clock),
            &clock,
        ),
        asker: approvals.commands(requester, screen),
        approvals,
        sandboxes,
        history: store.history(),
        redactor,
        facts,
        confirm_destructive: config.approvals().confirm_destructive_slash,
        line_history: config.home().state().join("chat-history"),
    })
}
