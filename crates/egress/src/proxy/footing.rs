//! What a standing connection stands on, watched for as long as it stands.
//!
//! A rule can be taken back, a host denied and a person's word run out while bytes flow. Whoever did that
//! means the bytes too, so the connection is cut.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::Proxy;
use super::admit::{Admitted, By};
use crate::address;
use crate::ask::Word;
use crate::conversation::Conversation;
use crate::rules::{Allowed, Rules, Transport, Verdict};

pub(super) struct Footing {
    proxy: Proxy,
    conversation: Arc<Conversation>,
    admitted: Admitted,
    /// Where it leads.
    address: SocketAddr,
}

/// How often a person's word is asked for again.
const RECHECK: Duration = Duration::from_secs(2);

impl Footing {
    pub(super) fn new(
        proxy: &Proxy,
        conversation: &Arc<Conversation>,
        admitted: &Admitted,
        address: SocketAddr,
    ) -> Self {
        Self {
            proxy: proxy.clone(),
            conversation: Arc::clone(conversation),
            admitted: admitted.clone(),
            address,
        }
    }

    /// Returns when the connection may stand no longer, and says why.
    pub(super) async fn lost(self) -> &'static str {
        let word_lost = Box::pin(self.word_lost());
        tokio::select! {
            Err(reason) = self.rules_against() => reason,
            Err(reason) = word_lost => reason,
        }
    }

    async fn rules_against(&self) -> Result<Infallible, &'static str> {
        let mut rules = self.conversation.watch_rules();
        let mut by = self.admitted.by();
        loop {
            // Before the first change too: it may have come between the admission and now.
            let now = Arc::clone(&rules.borrow_and_update());
            by = match (self.judged_by(&now), by) {
                // What somebody has made a rule goes when the rule goes.
                (Verdict::Allow(allowed), _) if self.fits(&allowed) => By::Rule,
                (Verdict::Unknown(_), By::Person(word)) => By::Person(word),
                (Verdict::Allow(_) | Verdict::Unknown(_), _) => {
                    return Err("the rule was taken back");
                }
                (Verdict::Refuse(_), _) => return Err("a rule has come to forbid it"),
            };
            if rules.changed().await.is_err() {
                return pending().await;
            }
        }
    }

    async fn word_lost(&self) -> Result<Infallible, &'static str> {
        if self.admitted.by() != By::Person(Word::WhileItHolds) {
            return pending().await;
        }
        loop {
            sleep(RECHECK).await;
            let held = self
                .proxy
                .has_their_word(&self.conversation, &self.admitted);
            if !held.await && !self.has_a_rule() {
                return Err("what a person allowed has ended");
            }
        }
    }

    fn has_a_rule(&self) -> bool {
        let verdict = self.judged_by(&self.conversation.rules());
        matches!(verdict, Verdict::Allow(allowed) if self.fits(&allowed))
    }

    fn judged_by(&self, rules: &Rules) -> Verdict {
        rules.decide(self.admitted.target(), self.admitted.via())
    }

    /// Another rule for the same host may mean another place, or TLS where this tunnel carries anything.
    fn fits(&self, allowed: &Allowed) -> bool {
        let narrowed =
            self.admitted.transport() == Transport::Tcp && allowed.transport() != Transport::Tcp;
        !narrowed && address::permit(self.address.ip(), allowed.ranges()).is_ok()
    }
}

#[cfg(test)]
mod tests;
