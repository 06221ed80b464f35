//! What a conversation at a keyboard needs, from the configuration.

use std::sync::Arc;

use hermetic_agent::{Agent, prompt};
use hermetic_approvals::{ApprovalPrompt, Approvals, CommandApprovals, FixedPrompt, Requester};
use hermetic_config::Config;
use hermetic_gateway::Reachable;
use hermetic_redact::Redactor;
use hermetic_session::{Sandboxes, Spending};
use hermetic_store::History;
use hermetic_tools::Kit;
use hermetic_types::{BackendKind, ConversationKey};

use super::egress::People;
use super::{Caller, asking, facts, kit, model, redactor};
use crate::by_hand;
use crate::failure::Failure;

#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) agent: Agent,
    /// Its name, for people.
    pub(crate) model: String,
    pub(crate) kit: Kit,
    pub(crate) approvals: Approvals,
    pub(crate) asker: CommandApprovals,
    pub(crate) sandboxes: Sandboxes,
    pub(crate) history: History,
    pub(crate) redactor: Redactor,
    pub(crate) facts: prompt::Facts,
    /// Whether `/destroy` asks first.
    pub(crate) confirm_destructive: bool,
}

/// Questions of the conversation are shown on the given screen.
pub(crate) async fn desk(
    config: &Config,
    kind: BackendKind,
    conversation: &ConversationKey,
    screen: Arc<dyn ApprovalPrompt>,
) -> Result<Desk, Failure> {
    let installation = super::installation(config.home())?;
    // Opened first: where no sandbox can be had, nothing else matters.
    let backends = super::backends(config, &installation, kind, Caller::CommandLine)?;
    let store = super::store(config).await?;
    let redactor = redactor::redactor(config);
    let approvals = asking::guarded(config, &store, &redactor)?;
    let requester = Requester {
        conversation: conversation.clone(),
        message: None,
        by: by_hand::who(),
    };
    let people = People {
        hosts: approvals.hosts(
            Arc::new(FixedPrompt {
                requester: requester.clone(),
                prompt: Arc::clone(&screen),
            }),
            super::rule_book(config),
        ),
        record: approvals.egress_record(),
    };
    let gate = super::gate(config, Some(people))?;
    let lifetime = config.terminal().lifetime;
    let mut plan = super::plan(config, kind, lifetime, Caller::CommandLine);
    plan.network = super::network(config, kind, gate.as_ref());
    let mut facts = facts::facts(config, &plan);
    facts.chat = "a terminal".to_owned();
    let sandboxes = Sandboxes::new(plan, installation, backends, store.ledger());
    let model = model::model(config)?;
    let sandboxes = match gate {
        Some(gate) => sandboxes.leaving_by(gate, Spending::in_store(store.documents())),
        None => sandboxes,
    };
    let reach = Arc::new(Reachable(sandboxes.clone()));
    let background = kit::background(config, &redactor, None, reach);
    Ok(Desk {
        model: model.name().to_owned(),
        agent: Agent::new(model, model::limits(config)),
        kit: kit::kit(config, kind, &redactor, background),
        asker: approvals.commands(requester, screen),
        approvals,
        sandboxes,
        history: store.history(),
        redactor,
        facts,
        confirm_destructive: config.approvals().confirm_destructive_slash,
    })
}
