//! Every conversation's way out, kept in one place.
//!
//! The [`Charter`] is what the operator wrote: rules for all, for some, and credentials. A conversation
//! gets its part of it when its sandbox first needs one, and the same part for as long as somebody holds
//! it: a link that breaks and comes back resets no budget and forgets no answer.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hermetic_types::ConversationKey;

use crate::book::{RuleBook, Stamp};
use crate::conversation::Conversation;
use crate::credential::Credential;
use crate::env::{Trust, sandbox_env};
use crate::proxy::Proxy;
use crate::rules::{InvalidRules, Mode, Rules, RulesText};
use crate::scope::Scope;

/// What may leave, as the operator wrote it.
#[derive(Clone, Debug, Default)]
pub struct Charter {
    pub rules: RulesText,
    /// On top, for some.
    pub more: Vec<(Scope, RulesText)>,
    pub credentials: Vec<Issued>,
}

/// A credential, whose it is, and where its placeholder stands.
#[derive(Clone, Debug)]
pub struct Issued {
    pub credential: Credential,
    /// Everybody's where absent.
    pub scope: Option<Scope>,
    /// The variable in which the sandbox finds the placeholder.
    pub variable: Option<String>,
}

/// What a conversation can reach, in words a person or a model understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    pub mode: Mode,
    /// The rules that allow something, as they were written.
    pub allowed: Vec<String>,
    /// Whether a person is asked about the rest.
    pub asks: bool,
}

/// Certificates for sandboxes: what programs there have to believe.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Inside.
    pub path: String,
    pub pem: String,
}

pub struct Gate {
    proxy: Proxy,
    charter: Charter,
    book: Option<RuleBook>,
    bundle: Option<Bundle>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: HashMap<ConversationKey, Weak<Conversation>>,
    read: Option<Stamp>,
    added: Vec<(Option<Scope>, RulesText)>,
    /// The book cannot be understood.
    unreadable: bool,
}

impl Gate {
    /// Fails on rules that cannot be compiled, now rather than at somebody's first connection.
    pub fn new(proxy: Proxy, charter: Charter) -> Result<Self, InvalidRules> {
        Rules::compile(&charter.rules)?;
        for (_, more) in &charter.more {
            Rules::compile(more)?;
        }
        Ok(Self {
            proxy,
            charter,
            book: None,
            bundle: None,
            state: Mutex::default(),
        })
    }

    /// With rules that people may add and take away while we run.
    pub fn reading(mut self, book: RuleBook) -> Self {
        self.book = Some(book);
        self
    }

    /// Sandboxes are told to believe these certificates.
    pub fn trusting(mut self, bundle: Bundle) -> Self {
        self.bundle = Some(bundle);
        self
    }

    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    pub fn bundle(&self) -> Option<&Bundle> {
        self.bundle.as_ref()
    }

    /// This conversation's part. The same one while anybody holds it.
    pub fn conversation(&self, key: &ConversationKey) -> Arc<Conversation> {
        self.refresh();
        let mut state = self.state();
        if let Some(known) = state.known.get(key).and_then(Weak::upgrade) {
            return known;
        }
        state.known.retain(|_, known| known.strong_count() > 0);
        let credentials = self.issued_to(key).map(|i| i.credential.clone()).collect();
        let rules = self.compile(&state, key);
        let limits = self.proxy.limits();
        let conversation = Conversation::new(key.clone(), rules, credentials, limits);
        state
            .known
            .insert(key.clone(), Arc::downgrade(&conversation));
        conversation
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
                state.added = rules
                    .into_iter()
                    .map(|rule| (rule.scope.clone(), rule.as_text()))
                    .collect();
            }
            Err(error) => {
                tracing::error!(%error, "egress rules cannot be understood; closed until they are");
                state.unreadable = true;
            }
        }
        for (key, known) in &state.known {
            if let Some(conversation) = known.upgrade() {
                conversation.set_rules(self.compile(&state, key));
            }
        }
    }

    pub fn reach(&self, key: &ConversationKey) -> Reach {
        self.refresh();
        let rules = self.compile(&self.state(), key);
        Reach {
            mode: rules.mode(),
            allowed: rules.allowed_rules(),
            asks: self.proxy.asks() && rules.mode() == Mode::Allowlist,
        }
    }

    /// What commands of this conversation's sandbox find in their environment.
    pub fn env(&self, key: &ConversationKey, port: u16) -> BTreeMap<String, String> {
        let trust = match &self.bundle {
            Some(bundle) => Trust::Bundle(&bundle.path),
            None => Trust::TheirOwn,
        };
        let mut env = sandbox_env(port, trust);
        for issued in self.issued_to(key) {
            if let Some(variable) = &issued.variable {
                let placeholder = issued.credential.placeholder().to_owned();
                env.insert(variable.clone(), placeholder);
            }
        }
        env
    }

    fn issued_to(&self, key: &ConversationKey) -> impl Iterator<Item = &Issued> {
        let covers = |scope: &Option<Scope>| scope.as_ref().is_none_or(|scope| scope.covers(key));
        let all = self.charter.credentials.iter();
        all.filter(move |issued| covers(&issued.scope))
    }

    /// What cannot be compiled was refused when it was written; doubt closes.
    fn compile(&self, state: &State, key: &ConversationKey) -> Rules {
        if state.unreadable {
            return Rules::closed();
        }
        let some = self
            .charter
            .more
            .iter()
            .map(|(scope, text)| (Some(scope), text));
        let added = state
            .added
            .iter()
            .map(|(scope, text)| (scope.as_ref(), text));
        let text = some
            .chain(added)
            .filter(|(scope, _)| scope.is_none_or(|scope| scope.covers(key)))
            .fold(self.charter.rules.clone(), |all, (_, more)| all.and(more));
        Rules::compile(&text).unwrap_or_else(|error| {
            tracing::error!(%error, conversation = %key, "egress rules do not fit together; closed");
            Rules::closed()
        })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
