//! One conversation's side of the proxy: its rules, its credentials, its answers, its account.

use std::sync::Arc;

use hermetic_types::ConversationKey;
use tokio::sync::{Semaphore, watch};

use crate::account::Account;
use crate::ask::Questions;
use crate::credential::Credential;
use crate::limits::Limits;
use crate::rules::{Authority, Rules};

/// Whose connections these are.
///
/// The proxy learns this from the stream a connection came by, never from the connection itself.
/// Credentials live here and nowhere else, so a conversation can only ever be given its own.
#[derive(Debug)]
pub struct Conversation {
    key: ConversationKey,
    rules: watch::Sender<Arc<Rules>>,
    credentials: Vec<Credential>,
    pub(crate) questions: Questions,
    account: Arc<Account>,
    pub(crate) lookups: Arc<Semaphore>,
}

impl Conversation {
    pub fn new(
        key: ConversationKey,
        rules: Rules,
        credentials: Vec<Credential>,
        limits: &Limits,
    ) -> Arc<Self> {
        Arc::new(Self {
            key,
            rules: watch::Sender::new(Arc::new(rules)),
            credentials,
            questions: Questions::default(),
            account: Account::new(limits.connections, limits.budget),
            lookups: Arc::new(Semaphore::new(limits.lookups)),
        })
    }

    pub fn key(&self) -> &ConversationKey {
        &self.key
    }

    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.borrow())
    }

    /// From now on these rules count, also for connections that stand: those they do not allow are cut.
    pub fn set_rules(&self, rules: Rules) {
        self.rules.send_replace(Arc::new(rules));
    }

    pub(crate) fn watch_rules(&self) -> watch::Receiver<Arc<Rules>> {
        self.rules.subscribe()
    }

    pub fn account(&self) -> &Arc<Account> {
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
