//! One conversation's side of the proxy: its rules, its credentials, its answers, its account.

use std::sync::{Arc, PoisonError, RwLock};

use hermetic_types::ConversationKey;

use crate::account::Account;
use crate::ask::Grants;
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
    rules: RwLock<Arc<Rules>>,
    credentials: Vec<Credential>,
    pub(crate) grants: Grants,
    account: Arc<Account>,
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
            rules: RwLock::new(Arc::new(rules)),
            credentials,
            grants: Grants::default(),
            account: Account::new(limits.connections, limits.budget),
        })
    }

    pub fn key(&self) -> &ConversationKey {
        &self.key
    }

    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on these rules count, also for the next request on a kept connection.
    pub fn set_rules(&self, rules: Rules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
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
