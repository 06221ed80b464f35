//! Ends a standing connection when what allowed it ends.
//!
//! A rule can be taken back, a host denied and a person's grant run out while bytes flow. Whoever did that
//! means the bytes too, so the connection is cut.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::Proxy;
use super::admit::{AdmittedBy, AdmittedTarget, ReachedPeer};
use crate::ask::GrantLifetime;
use crate::conversation::ConversationEgress;
use crate::rules::{AllowedAccess, AllowedTransport, CompiledRules, RuleVerdict};

/// Watches whether a standing connection is still allowed.
pub(super) struct RevocationWatch {
    proxy: Proxy,
    conversation: Arc<ConversationEgress>,
    admitted: AdmittedTarget,
    /// Whom the connection leads to.
    peer: ReachedPeer,
}

/// How often it is checked whether a person's grant still holds: soon enough for someone who takes it
/// back, and rarely enough for thousands of connections.
const RECHECK: Duration = Duration::from_secs(2);

impl RevocationWatch {
    pub(super) fn new(
        proxy: &Proxy,
        conversation: &Arc<ConversationEgress>,
        admitted: &AdmittedTarget,
        peer: &ReachedPeer,
    ) -> Self {
        Self {
            proxy: proxy.clone(),
            conversation: Arc::clone(conversation),
            admitted: admitted.clone(),
            peer: peer.clone(),
        }
    }

    /// Returns when the connection may stand no longer, and says why.
    pub(super) async fn ended(self) -> &'static str {
        let grant_ended = Box::pin(self.grant_ended());
        tokio::select! {
            Err(reason) = self.rule_withdrawn() => reason,
            Err(reason) = grant_ended => reason,
            Err(reason) = self.credential_lost() => reason,
        }
    }

    async fn rule_withdrawn(&self) -> Result<Infallible, &'static str> {
        let mut rules = self.conversation.watch_rules();
        let mut by = self.admitted.by();
        loop {
            // Before the first change too: it may have come between the admission and now.
            let now = Arc::clone(&rules.borrow_and_update());
            by = match (self.judged_by(&now), by) {
                // What somebody has made a rule goes when the rule goes.
                (RuleVerdict::Allow(allowed), _) if self.fits(&allowed) => AdmittedBy::Rule,
                (RuleVerdict::Unknown(_), AdmittedBy::Person(lifetime)) => {
                    AdmittedBy::Person(lifetime)
                }
                (RuleVerdict::Allow(_) | RuleVerdict::Unknown(_), _) => {
                    return Err("the rule was taken back");
                }
                (RuleVerdict::Refuse(_), _) => return Err("a rule has come to forbid it"),
            };
            if rules.changed().await.is_err() {
                return pending().await;
            }
        }
    }

    async fn grant_ended(&self) -> Result<Infallible, &'static str> {
        if self.admitted.by() != AdmittedBy::Person(GrantLifetime::WhileItHolds) {
            return pending().await;
        }
        loop {
            sleep(RECHECK).await;
            let held = self.proxy.grant_holds(&self.conversation, &self.admitted);
            // Somebody may have made a rule of it meanwhile, which stands by itself.
            if !held.await && !self.has_a_rule() {
                return Err("what a person allowed has ended");
            }
        }
    }

    async fn credential_lost(&self) -> Result<Infallible, &'static str> {
        let (conversation, target) = (&self.conversation, self.admitted.target());
        conversation.loses(target).await;
        // What is said to the next request is said of this one too.
        let _ = self.proxy.check_guesses(conversation, target);
        Err("its sandbox guessed at the credential")
    }

    fn has_a_rule(&self) -> bool {
        let verdict = self.judged_by(&self.conversation.rules());
        matches!(verdict, RuleVerdict::Allow(allowed) if self.fits(&allowed))
    }

    fn judged_by(&self, rules: &CompiledRules) -> RuleVerdict {
        rules.decide(self.admitted.target(), self.admitted.via())
    }

    /// Another rule for the same host may mean another address, or TLS where this tunnel carries anything.
    fn fits(&self, allowed: &AllowedAccess) -> bool {
        let narrowed = self.admitted.transport() == AllowedTransport::Tcp
            && allowed.transport() != AllowedTransport::Tcp;
        !narrowed && self.peer.fits(allowed.ranges())
    }
}

#[cfg(test)]
mod tests;
