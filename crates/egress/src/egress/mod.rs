//! Every conversation's way out, kept in one place.
//!
//! The [`EgressRules`] are what the operator wrote: rules for all, for some, and credentials. A conversation
//! gets its part of it when its sandbox first needs one, and the same part for as long as somebody holds
//! it: a link that breaks and comes back resets no budget and forgets no answer.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use hermetic_types::ConversationKey;

use crate::account::AgentTrafficSum;
use crate::book::{BookError, FileStamp, RuleBook, WrittenRule};
use crate::client::roots;
use crate::conversation::{ConversationEgress, RefusedHost, loss_rule};
use crate::credential::{Credential, GuessCounter, SharedParts, TrustRootsError};
use crate::env::{CertificateTrust, sandbox_env};
use crate::outgoing::OutgoingBudget;
use crate::owner::{EgressOwner, OwnerShare};
use crate::proxy::Proxy;
use crate::rules::{CompiledRules, InvalidRules, RuleMode, RulesText};
use crate::scope::ConversationScope;

/// What may leave, as the operator wrote it.
#[derive(Clone, Debug, Default)]
pub struct EgressRules {
    pub rules: RulesText,
    /// Rules for some conversations, on top of those for all.
    pub more: Vec<(ConversationScope, RulesText)>,
    pub credentials: Vec<CredentialGrant>,
    /// What conversations may reach in which this agent of somebody else's answers, by its name.
    pub agents: BTreeMap<String, RulesText>,
}

/// A credential, the conversations that may use it, and the variable of its placeholder.
#[derive(Clone, Debug)]
pub struct CredentialGrant {
    pub credential: Credential,
    /// The conversations that may use it; all of them where absent.
    pub scope: Option<ConversationScope>,
    /// The variable in which the sandbox finds the placeholder.
    pub variable: Option<String>,
    /// The agent that it is for: only conversations in which that one answers have it.
    pub agent: Option<String>,
}

/// What a conversation can reach, in words a person or a model understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachSummary {
    pub mode: RuleMode,
    /// The rules that allow something, as they were written.
    pub allowed: Vec<String>,
    /// Whether a person is asked about the rest.
    pub asks: bool,
}

/// The certificates that programs in sandboxes have to believe.
#[derive(Clone, Debug)]
pub struct CertificateBundle {
    /// The path inside the sandbox.
    pub path: String,
    pub pem: String,
}

/// Holds every conversation's way out.
pub struct Egress {
    proxy: Proxy,
    written: EgressRules,
    book: Option<RuleBook>,
    bundle: Option<CertificateBundle>,
    /// The parts of each credential that were guessed, in the order of the grants.
    guessed: Vec<Arc<SharedParts>>,
    /// What our own tools believe, once one of them has asked.
    client_tls: OnceLock<Arc<rustls::ClientConfig>>,
    /// Bounds what leaves for all of them.
    outgoing: OnceLock<Arc<dyn OutgoingBudget>>,
    state: Mutex<EgressState>,
}

/// The conversations in use and the rules that people added.
#[derive(Default)]
struct EgressState {
    known: HashMap<ConversationKey, Weak<ConversationEgress>>,
    /// What each owner's conversations and connections hold together, for as long as there are some.
    shares: HashMap<EgressOwner, Weak<OwnerShare>>,
    /// What each conversation guessed at each credential, by the number of its grant: also of those that
    /// nobody holds, or waiting would be enough to guess on.
    guesses: HashMap<ConversationKey, HashMap<usize, Arc<GuessCounter>>>,
    /// The agent of somebody else's that answers in a conversation.
    agents: HashMap<ConversationKey, String>,
    read: Option<FileStamp>,
    added: Vec<(Option<ConversationScope>, RulesText)>,
    /// The book cannot be understood, so everything is closed.
    unreadable: bool,
}

impl Egress {
    /// Fails on rules that cannot be compiled, now rather than at somebody's first connection.
    pub fn new(proxy: Proxy, written: EgressRules) -> Result<Self, InvalidRules> {
        CompiledRules::compile(&written.rules)?;
        for (_, more) in &written.more {
            CompiledRules::compile(more)?;
        }
        for more in written.agents.values() {
            CompiledRules::compile(more)?;
        }
        let guessed = written.credentials.iter().map(|_| Arc::default()).collect();
        Ok(Self {
            guessed,
            proxy,
            written,
            book: None,
            bundle: None,
            client_tls: OnceLock::new(),
            outgoing: OnceLock::new(),
            state: Mutex::default(),
        })
    }

    /// Adds the rules that people may add and take away while we run.
    pub fn reading(mut self, book: RuleBook) -> Self {
        self.book = Some(book);
        self
    }

    /// Tells sandboxes to believe these certificates.
    pub fn trusting(mut self, bundle: CertificateBundle) -> Self {
        self.bundle = Some(bundle);
        self
    }

    /// Bounds what leaves, for conversations that come from now on. The first bound holds.
    pub fn bound_outgoing(&self, budget: Arc<dyn OutgoingBudget>) {
        let _ = self.outgoing.set(budget);
    }

    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    pub fn bundle(&self) -> Option<&CertificateBundle> {
        self.bundle.as_ref()
    }

    /// Returns what a tool of ours believes: the same certificates as a program in a sandbox.
    pub(crate) fn client_tls(&self) -> Result<Arc<rustls::ClientConfig>, TrustRootsError> {
        if let Some(ready) = self.client_tls.get() {
            return Ok(Arc::clone(ready));
        }
        let pem = self.bundle.as_ref().map(|bundle| bundle.pem.as_str());
        let made = roots(pem).client_config()?;
        Ok(Arc::clone(self.client_tls.get_or_init(|| made)))
    }

    /// Returns this conversation's part: the same one while anybody holds it.
    pub fn conversation(&self, key: &ConversationKey) -> Arc<ConversationEgress> {
        self.refresh();
        let mut state = self.state();
        // The same account for whoever asks meanwhile: a second one would double the budget and
        // forget the answers.
        if let Some(known) = state.known.get(key).and_then(Weak::upgrade) {
            return known;
        }
        // Before the credentials: guesses that nobody made are kept only for conversations that are
        // known.
        state.known.retain(|_, known| known.strong_count() > 0);
        let credentials = self.counted_credentials(&mut state, key);
        let rules = self.compile(&state, key);
        let limits = self.proxy.limits();
        let book = self.book.clone();
        let conversation =
            ConversationEgress::writing_to(book, key.clone(), rules, credentials, limits);
        if let Some(budget) = self.outgoing.get() {
            conversation.bound_outgoing(Arc::clone(budget));
        }
        conversation.belong_to(self.share_of(&mut state, EgressOwner::of_chat(key)));
        let agent = state.agents.get(key).map(String::as_str);
        conversation.count_for(self.counted_agent(agent));
        state
            .known
            // Weak: what holds it are its connections and its sandbox, and with them it goes.
            .insert(key.clone(), Arc::downgrade(&conversation));
        conversation
    }

    /// Counts what a conversation opens from now on as this owner's, together with all else that is theirs. Until
    /// somebody says, the threads of a chat count together.
    pub fn note_owner(&self, conversation: &ConversationEgress, owner: EgressOwner) {
        let mut state = self.state();
        conversation.belong_to(self.share_of(&mut state, owner));
    }

    fn share_of(&self, state: &mut EgressState, owner: EgressOwner) -> Arc<OwnerShare> {
        let shares = &mut state.shares;
        if let Some(known) = shares.get(&owner).and_then(Weak::upgrade) {
            return known;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let share = OwnerShare::new(self.proxy.limits());
        shares.insert(owner, Arc::downgrade(&share));
        share
    }

    /// Reads what people have added, if that has changed, and tells every conversation. Cheap when
    /// nothing has: called for each connection.
    pub fn refresh(&self) {
        let Some(book) = &self.book else { return };
        let mut state = self.state();
        let stamp = book.stamp();
        if state.read == Some(stamp) {
            return;
        }
        // The stamp from before reading: a change in between is read again.
        state.read = Some(stamp);
        match book.read() {
            Ok(rules) => {
                state.unreadable = false;
                // By what was read, before the rules are taken from it: a credential comes back
                // together with its host.
                self.lift_losses(&state, &rules);
                state.added = rules
                    .into_iter()
                    .map(|rule| (rule.scope.clone(), rule.as_text()))
                    .collect();
            }
            Err(error) => {
                tracing::error!(%error, "egress rules cannot be understood; closed until they are");
                state.unreadable = true;
                if let BookError::File { .. } = error {
                    // Not the fault of what is written there: the same file may be readable again.
                    state.read = None;
                }
            }
        }
        // Under the same lock: a conversation that comes now is compiled by the new rules, and none
        // in between is missed.
        for (key, known) in &state.known {
            if let Some(conversation) = known.upgrade() {
                conversation.set_rules(self.compile(&state, key));
            }
        }
    }

    /// The credentials of the conversation, each with what was guessed at it before.
    fn counted_credentials(
        &self,
        state: &mut EgressState,
        key: &ConversationKey,
    ) -> Vec<Credential> {
        let EgressState {
            known,
            guesses,
            agents,
            ..
        } = state;
        guesses.retain(|key, counters| {
            known.contains_key(key) || counters.values().any(|counter| !counter.is_untouched())
        });
        let counters = guesses.entry(key.clone()).or_default();
        let agent = agents.get(key).map(String::as_str);
        let granted = self.grants_for(key, agent).map(|(index, grant)| {
            let credential = grant.credential.clone();
            let counter = counters.entry(index).or_insert_with(|| {
                GuessCounter::new(
                    credential.secret_letters(),
                    Arc::clone(&self.guessed[index]),
                )
            });
            credential.counted_by(Arc::clone(counter))
        });
        granted.collect()
    }

    /// Gives back the credentials whose loss is no longer in the book: an operator took it out.
    fn lift_losses(&self, state: &EgressState, rules: &[WrittenRule]) {
        for (key, counters) in &state.guesses {
            for (index, counter) in counters {
                let target = self.written.credentials[*index].credential.target();
                let stands = || loss_rule(key, target).is_some_and(|rule| rules.contains(&rule));
                // One that never got into the book is not missing from it.
                if counter.is_exhausted() && counter.is_written() && !stands() {
                    tracing::info!(conversation = %key, host = %target, "a credential was given back");
                    counter.lift();
                }
            }
        }
    }

    /// Returns what the conversation can reach by the rules of now.
    pub fn reach(&self, key: &ConversationKey) -> ReachSummary {
        self.refresh();
        let rules = self.compile(&self.state(), key);
        ReachSummary {
            mode: rules.mode(),
            allowed: rules.allowed_rules(),
            asks: self.proxy.asks() && rules.mode() == RuleMode::Allowlist,
        }
    }

    /// The hosts that this conversation was refused since this was last asked.
    pub fn take_refused(&self, key: &ConversationKey) -> Vec<RefusedHost> {
        let known = self.state().known.get(key).and_then(Weak::upgrade);
        known.map_or_else(Vec::new, |known| known.take_refused())
    }

    /// Returns the environment of commands in this conversation's sandbox.
    pub fn env(&self, key: &ConversationKey, port: u16) -> BTreeMap<String, String> {
        let trust = match &self.bundle {
            Some(bundle) => CertificateTrust::Bundle(&bundle.path),
            None => CertificateTrust::TheirOwn,
        };
        let mut env = sandbox_env(port, trust);
        // Of an agent's own credentials, the agent alone is told.
        for (_, grant) in self.grants_for(key, None) {
            if let Some(variable) = &grant.variable {
                let placeholder = grant.credential.placeholder().to_owned();
                env.insert(variable.clone(), placeholder);
            }
        }
        env
    }

    /// Has this agent of somebody else's answer in a conversation: from now on its hosts are allowed there
    /// and its credentials put in, and those of another are not. `None` for our own agent.
    ///
    /// What comes back is what the agent finds in its environment.
    pub fn choose_agent(
        &self,
        key: &ConversationKey,
        agent: Option<&str>,
    ) -> BTreeMap<String, String> {
        self.refresh();
        let mut state = self.state();
        let before = match agent {
            Some(agent) => state.agents.insert(key.clone(), agent.to_owned()),
            None => state.agents.remove(key),
        };
        if before.as_deref() != agent
            && let Some(known) = state.known.get(key).and_then(Weak::upgrade)
        {
            // The credentials before the rules: a host is never open to an agent with the keys of
            // the one before it.
            known.set_credentials(self.counted_credentials(&mut state, key));
            known.set_rules(self.compile(&state, key));
            known.count_for(self.counted_agent(agent));
        }
        drop(state);
        let grants = self.grants_for(key, agent);
        let own = grants.filter(|(_, grant)| grant.agent.is_some());
        own.filter_map(|(_, grant)| {
            let variable = grant.variable.clone()?;
            Some((variable, grant.credential.placeholder().to_owned()))
        })
        .collect()
    }

    /// What went to the hosts of the agent that answers in a conversation, since it was chosen there.
    pub fn agent_traffic(&self, key: &ConversationKey) -> AgentTrafficSum {
        let known = self.state().known.get(key).and_then(Weak::upgrade);
        known.map_or_else(AgentTrafficSum::default, |known| known.agent_traffic())
    }

    /// The hosts of an agent, for counting. They were compiled when the gateway started.
    fn counted_agent<'a>(&self, agent: Option<&'a str>) -> Option<(&'a str, CompiledRules)> {
        let name = agent?;
        let rules = CompiledRules::compile(self.written.agents.get(name)?).ok()?;
        Some((name, rules))
    }

    /// The grants of a conversation in which this agent answers.
    fn grants_for<'a>(
        &'a self,
        key: &'a ConversationKey,
        agent: Option<&'a str>,
    ) -> impl Iterator<Item = (usize, &'a CredentialGrant)> {
        let covers = |scope: &Option<ConversationScope>| {
            scope.as_ref().is_none_or(|scope| scope.covers(key))
        };
        let all = self.written.credentials.iter().enumerate();
        all.filter(move |(_, grant)| {
            covers(&grant.scope) && (grant.agent.is_none() || grant.agent.as_deref() == agent)
        })
    }

    /// Compiles the rules of one conversation. Rules that do not compile were refused when they were
    /// written, so an error here is a doubt, and doubt closes.
    fn compile(&self, state: &EgressState, key: &ConversationKey) -> CompiledRules {
        if state.unreadable {
            return CompiledRules::closed();
        }
        let some = self
            .written
            .more
            .iter()
            .map(|(scope, text)| (Some(scope), text));
        let added = state
            .added
            .iter()
            .map(|(scope, text)| (scope.as_ref(), text));
        let agent = state.agents.get(key);
        let own = agent.and_then(|agent| self.written.agents.get(agent));
        let text = some
            .chain(added)
            .chain(own.into_iter().map(|text| (None, text)))
            .filter(|(scope, _)| scope.is_none_or(|scope| scope.covers(key)))
            .fold(self.written.rules.clone(), |all, (_, more)| all.and(more));
        CompiledRules::compile(&text).unwrap_or_else(|error| {
            tracing::error!(%error, conversation = %key, "egress rules do not fit together; closed");
            CompiledRules::closed()
        })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, EgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress")
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
