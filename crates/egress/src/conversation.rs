//! One conversation's side of the proxy: its rules, its credentials, its answers, its account.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures::future::select_all;
use hermetic_types::ConversationKey;
use tokio::sync::{Semaphore, watch};

use crate::account::{AgentTraffic, AgentTrafficSum, BudgetSpent, TrafficAccount};
use crate::ask::OpenQuestions;
use crate::book::{RuleBook, RuleEffect, WrittenRule};
use crate::credential::{Credential, GuessCounter, SharedParts};
use crate::limits::EgressLimits;
use crate::outgoing::OutgoingBudget;
use crate::owner::OwnerShare;
use crate::remedy::rule_of;
use crate::resolve::LookupTurns;
use crate::rules::{Authority, CompiledRules, ProxyMethod, RuleVerdict};
use crate::scope::ConversationScope;
use crate::upstream::UpstreamRoute;

/// One conversation's rules, credentials and account.
///
/// The proxy learns whose connection it serves from the stream it came by, never from the connection itself.
/// Credentials live here and nowhere else, so a conversation can only ever be given its own.
#[derive(Debug)]
pub struct ConversationEgress {
    key: ConversationKey,
    rules: watch::Sender<Arc<CompiledRules>>,
    /// Replaced when another agent answers here.
    credentials: Mutex<Vec<Credential>>,
    pub(crate) questions: OpenQuestions,
    account: Arc<TrafficAccount>,
    outgoing: OnceLock<Arc<dyn OutgoingBudget>>,
    lookups: Arc<Semaphore>,
    /// What it holds together with the other conversations of its owner; replaced when somebody else speaks here.
    owner: Mutex<Arc<OwnerShare>>,
    refused: Mutex<Vec<RefusedHost>>,
    /// Where it is written that a credential was lost.
    book: Option<RuleBook>,
    /// Counts what goes to the hosts of somebody else's agent, while one answers.
    agent: Mutex<Option<AgentHosts>>,
    login_guesses: OnceLock<Arc<GuessCounter>>,
}

/// The hosts of an agent, and what went there.
#[derive(Debug)]
struct AgentHosts {
    name: String,
    rules: CompiledRules,
    traffic: Arc<AgentTraffic>,
}

/// A host that no rule lets this conversation reach, and what a person can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedHost {
    /// `host:port`.
    pub target: String,
    pub remedy: String,
}

/// Hosts remembered until somebody is told. More are in the journal.
const MOST_REFUSED: usize = 8;

impl ConversationEgress {
    pub fn new(
        key: ConversationKey,
        rules: CompiledRules,
        credentials: Vec<Credential>,
        limits: &EgressLimits,
    ) -> Arc<Self> {
        Self::writing_to(None, key, rules, credentials, limits)
    }

    /// What a guesser loses is written into the book.
    pub(crate) fn writing_to(
        book: Option<RuleBook>,
        key: ConversationKey,
        rules: CompiledRules,
        credentials: Vec<Credential>,
        limits: &EgressLimits,
    ) -> Arc<Self> {
        // Whoever brings no counter gets one: a credential that nobody counts guesses at could be
        // read out letter by letter.
        let counted = |credential: Credential| match credential.counter() {
            Some(_) => credential,
            None => {
                let counter = GuessCounter::new(
                    credential.secret_letters(),
                    Arc::new(SharedParts::default()),
                );
                credential.counted_by(counter)
            }
        };
        let credentials = credentials.into_iter().map(counted).collect();
        Arc::new(Self {
            book,
            agent: Mutex::default(),
            login_guesses: OnceLock::new(),
            key,
            rules: watch::Sender::new(Arc::new(rules)),
            credentials: Mutex::new(credentials),
            questions: OpenQuestions::default(),
            account: TrafficAccount::new(limits.connections, limits.budget),
            outgoing: OnceLock::new(),
            lookups: Arc::new(Semaphore::new(limits.lookups)),
            owner: Mutex::new(OwnerShare::new(limits)),
            refused: Mutex::default(),
        })
    }

    pub fn key(&self) -> &ConversationKey {
        &self.key
    }

    pub fn rules(&self) -> Arc<CompiledRules> {
        Arc::clone(&self.rules.borrow())
    }

    /// From now on these rules count, also for connections that stand: those they do not allow are cut.
    pub fn set_rules(&self, rules: CompiledRules) {
        self.rules.send_replace(Arc::new(rules));
    }

    /// From now on these credentials are put in. A connection that stands keeps those it began with.
    pub(crate) fn set_credentials(&self, credentials: Vec<Credential>) {
        *self.credentials() = credentials;
    }

    /// Counts from now on what goes to the hosts of this agent. What was counted of the same one stays.
    pub(crate) fn count_for(&self, agent: Option<(&str, CompiledRules)>) {
        let mut counted = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        let before = counted.take();
        *counted = agent.map(|(name, rules)| AgentHosts {
            name: name.to_owned(),
            rules,
            traffic: match before {
                Some(before) if before.name == name => before.traffic,
                _ => Arc::default(),
            },
        });
    }

    /// Where what goes to this host is counted, if it is one of the agent's.
    pub(crate) fn agent_traffic_to(&self, target: &Authority) -> Option<Arc<AgentTraffic>> {
        let counted = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        let agent = counted.as_ref()?;
        let verdict = agent.rules.decide(target, ProxyMethod::Tunnel);
        matches!(verdict, RuleVerdict::Allow(_)).then(|| Arc::clone(&agent.traffic))
    }

    /// What went to the hosts of the agent that answers.
    pub(crate) fn agent_traffic(&self) -> AgentTrafficSum {
        let counted = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        counted
            .as_ref()
            .map_or_else(AgentTrafficSum::default, |agent| agent.traffic.sum())
    }

    fn credentials(&self) -> MutexGuard<'_, Vec<Credential>> {
        self.credentials
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a host for whoever is told of it.
    pub(crate) fn note_refused(&self, host: RefusedHost) {
        let mut refused = self.refused();
        // A sandbox can make up as many as it likes.
        if refused.len() < MOST_REFUSED && !refused.contains(&host) {
            refused.push(host);
        }
    }

    /// The hosts that were refused since this was last asked.
    pub fn take_refused(&self) -> Vec<RefusedHost> {
        std::mem::take(&mut *self.refused())
    }

    fn refused(&self) -> MutexGuard<'_, Vec<RefusedHost>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this conversation has guessed at the credential of this host too often.
    pub(crate) fn has_lost(&self, target: &Authority) -> bool {
        let counters = self.counters(target);
        counters.iter().any(|counter| counter.is_exhausted())
    }

    /// Returns when it has.
    pub(crate) async fn loses(&self, target: &Authority) {
        let counters = self.counters(target);
        let lost: Vec<_> = counters
            .iter()
            .map(|counter| Box::pin(counter.exhausted()))
            .collect();
        // Without a credential there is none to lose; an empty selection would panic.
        match lost.is_empty() {
            true => std::future::pending().await,
            false => drop(select_all(lost).await),
        }
    }

    /// Writes down that the credential of this host was lost, where that was not done. `true` where nobody
    /// has been told of it.
    pub(crate) fn write_loss(&self, target: &Authority) -> bool {
        let mut is_news = false;
        let counters = self.counters(target);
        for counter in counters.iter().filter(|c| c.is_exhausted()) {
            is_news |= counter.is_news();
            let (Some(book), Some(rule)) = (&self.book, self.loss_rule(target)) else {
                continue;
            };
            if counter.is_written() {
                continue;
            }
            match book.add_because(&rule, "its sandbox guessed at the credential of this host") {
                Ok(_) => counter.note_written(),
                Err(error) => {
                    let key = &self.key;
                    tracing::error!(%error, conversation = %key, "a lost credential could not be written down; it is lost until the gateway restarts");
                }
            }
        }
        is_news
    }

    /// How an operator gives the credential of this host back.
    pub(crate) fn how_to_lift(&self, target: &Authority) -> Option<String> {
        let rule = self.book.as_ref().and_then(|_| self.loss_rule(target))?;
        let scope = rule.scope?;
        Some(format!(
            "hermetic egress forget {} --for {scope}",
            rule.rule
        ))
    }

    fn loss_rule(&self, target: &Authority) -> Option<WrittenRule> {
        loss_rule(&self.key, target)
    }

    fn counters(&self, target: &Authority) -> Vec<Arc<GuessCounter>> {
        let credentials = self.credentials();
        let there = credentials
            .iter()
            .filter(|credential| credential.is_for(target));
        there.filter_map(Credential::counter).cloned().collect()
    }

    /// Counts the guesses at the login of a company's proxy.
    pub(crate) fn login_guesses(&self, route: &UpstreamRoute) -> &Arc<GuessCounter> {
        self.login_guesses.get_or_init(|| route.guess_counter())
    }

    pub(crate) fn watch_rules(&self) -> watch::Receiver<Arc<CompiledRules>> {
        self.rules.subscribe()
    }

    pub fn account(&self) -> &Arc<TrafficAccount> {
        &self.account
    }

    /// From now on what is opened here counts as this owner's. What is open stays with whom it was opened for.
    pub(crate) fn belong_to(&self, owner: Arc<OwnerShare>) {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = owner;
    }

    pub(crate) fn owner(&self) -> Arc<OwnerShare> {
        Arc::clone(&self.owner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn lookup_turns(&self) -> LookupTurns {
        LookupTurns {
            conversation: Arc::clone(&self.lookups),
            owner: Arc::clone(&self.owner().lookups),
        }
    }

    /// Bounds what leaves beyond this conversation's own account. The first holds.
    pub(crate) fn bound_outgoing(&self, budget: Arc<dyn OutgoingBudget>) {
        let _ = self.outgoing.set(budget);
    }

    pub(crate) fn outgoing(&self) -> Option<Arc<dyn OutgoingBudget>> {
        self.outgoing.get().cloned()
    }

    /// Whether a connection may be opened.
    pub(crate) fn check_budgets(&self) -> Result<(), BudgetSpent> {
        self.account.check()?;
        match self.outgoing.get() {
            Some(budget) => budget.check(&self.key),
            None => Ok(()),
        }
    }

    /// Whether the conversation still has this credential: a tunnel may be older than a change of its agent.
    pub(crate) fn holds(&self, credential: &Credential) -> bool {
        let held = self.credentials_for(credential.target());
        held.iter().any(|one| one.is_same(credential))
    }

    pub(crate) fn credentials_for(&self, target: &Authority) -> Vec<Credential> {
        let credentials = self.credentials();
        let there = credentials
            .iter()
            .filter(|credential| credential.is_for(target));
        there.cloned().collect()
    }
}

/// The rule that keeps a conversation from a host whose credential it guessed at. Nothing where a line of
/// the book cannot name the conversation: one that is not understood would close everything.
pub(crate) fn loss_rule(key: &ConversationKey, target: &Authority) -> Option<WrittenRule> {
    let scope = Some(ConversationScope::of(key));
    let rule = WrittenRule::new(RuleEffect::Deny, &rule_of(target), scope).ok()?;
    let read = WrittenRule::parse_line(&rule.to_string()).ok().flatten();
    (read.as_ref() == Some(&rule)).then_some(rule)
}
