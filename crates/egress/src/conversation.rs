//! One conversation's side of the proxy: its rules, its credentials, its answers, its account.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_types::ConversationKey;
use tokio::sync::{Semaphore, watch};

use crate::account::TrafficAccount;
use crate::ask::OpenQuestions;
use crate::credential::Credential;
use crate::limits::EgressLimits;
use crate::rules::{Authority, CompiledRules};

/// One conversation's rules, credentials and account.
///
/// The proxy learns whose connection it serves from the stream it came by, never from the connection itself.
/// Credentials live here and nowhere else, so a conversation can only ever be given its own.
#[derive(Debug)]
pub struct ConversationEgress {
    key: ConversationKey,
    rules: watch::Sender<Arc<CompiledRules>>,
    credentials: Vec<Credential>,
    pub(crate) questions: OpenQuestions,
    account: Arc<TrafficAccount>,
    pub(crate) lookups: Arc<Semaphore>,
    refused: Mutex<Vec<RefusedHost>>,
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
        Arc::new(Self {
            key,
            rules: watch::Sender::new(Arc::new(rules)),
            credentials,
            questions: OpenQuestions::default(),
            account: TrafficAccount::new(limits.connections, limits.budget),
            lookups: Arc::new(Semaphore::new(limits.lookups)),
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

    /// Remembers a host for whoever is told of it.
    pub(crate) fn note_refused(&self, host: RefusedHost) {
        let mut refused = self.refused();
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

    pub(crate) fn watch_rules(&self) -> watch::Receiver<Arc<CompiledRules>> {
        self.rules.subscribe()
    }

    pub fn account(&self) -> &Arc<TrafficAccount> {
        &self.account
    }

    pub(crate) fn credentials_for(&self, target: &Authority) -> Vec<Credential> {
        self.credentials
            .iter()
            .filter(|credential| credential.is_for(target))
            .cloned()
            .collect()
    }
}
