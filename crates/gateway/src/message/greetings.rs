//! Telling people that they were let in.
//!
//! A code is approved by another process, at the machine's command line. That process writes down whom it let in
//! and where they asked; we look there, hand the greeting to the delivery ledger and only then strike it off. A
//! crash in between greets twice, and nobody is left waiting.

use std::collections::BTreeSet;
use std::time::Duration;

use hermetic_access::{PairedRole, PairedUser, PairingError, PairingPlace};
use hermetic_chat::ReplyRule;
use hermetic_redact::Redacted;
use hermetic_store::StoreError;
use hermetic_types::Platform;
use thiserror::Error;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{Gateway, GatewayStage, wording};

/// How often it is looked whether somebody was let in: they wait for it with the chat open.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The same where each look is a question over a network.
const LOOK_FAR_EVERY: Duration = Duration::from_secs(6);

/// The platforms whose trouble was told.
#[derive(Debug, Default)]
struct ToldTroubles(BTreeSet<Platform>);

#[derive(Debug, Error)]
enum GreetError {
    #[error(transparent)]
    Pairing(#[from] PairingError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Gateway {
    pub(crate) async fn greet_the_paired(&self, until: CancellationToken) {
        let platforms: BTreeSet<Platform> = self
            .chats
            .iter()
            .map(|chat| chat.account().platform())
            .collect();
        // What an earlier run left is taken over first: a row of ours would be taken for one of those.
        let mut stage = self.stage.subscribe();
        let serving = stage.wait_for(|stage| *stage != GatewayStage::Starting);
        if until.run_until_cancelled(serving).await.is_none() {
            return;
        }
        let every = match self.store.is_shared() {
            true => LOOK_FAR_EVERY,
            false => LOOK_EVERY,
        };
        // Until the store works again, the same complaint is made once: for each platform, because others
        // may work meanwhile.
        let mut complaints = ToldTroubles::default();
        loop {
            for platform in &platforms {
                match self.greet_on(*platform).await {
                    Ok(()) => complaints.settle(*platform),
                    Err(error) if complaints.is_new(*platform) => {
                        tracing::warn!(%platform, %error, "who was let in could not be told");
                    }
                    Err(error) => tracing::debug!(%platform, %error, "still nobody is greeted"),
                }
            }
            if until.run_until_cancelled(sleep(every)).await.is_none() {
                return;
            }
        }
    }

    async fn greet_on(&self, platform: Platform) -> Result<(), GreetError> {
        let pairing = self.access.pairing();
        for paired in pairing.untold(platform).await? {
            // Of gateways that serve side by side, whoever listens to the account greets.
            let is_others = |place: &PairingPlace| {
                let sharing = self.sharing.as_ref();
                sharing.is_some_and(|sharing| !sharing.listens_to(&place.account))
            };
            if paired.untold.as_ref().is_some_and(is_others) {
                continue;
            }
            if let Some(place) = &paired.untold {
                self.greet(&paired, place).await?;
            }
            pairing.note_told(platform, &paired.user).await?;
        }
        Ok(())
    }

    async fn greet(&self, paired: &PairedUser, at: &PairingPlace) -> Result<(), GreetError> {
        let account = &at.account;
        // An account that is gone greets nobody, and one that only answers has nothing to answer.
        let speaks = self.outbox.chat(account).is_some()
            && self.outbox.replies(account) != ReplyRule::OneForEach;
        if !speaks {
            tracing::info!(%account, user = %paired.user, "let in, and cannot be told there");
            return Ok(());
        }
        let notice = Redacted::constant(match paired.role {
            PairedRole::User => wording::PAIRED,
            PairedRole::Operator => wording::PAIRED_AS_OPERATOR,
        });
        let _ = self
            .outbox
            .notify(account, at.place.clone(), &notice)
            .await?;
        Ok(())
    }
}

impl ToldTroubles {
    fn is_new(&mut self, platform: Platform) -> bool {
        self.0.insert(platform)
    }

    fn settle(&mut self, platform: Platform) {
        self.0.remove(&platform);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_of_one_platform_is_told_once_while_others_work() {
        let mut complaints = ToldTroubles::default();
        assert!(complaints.is_new(Platform::Telegram));
        complaints.settle(Platform::Discord);
        assert!(!complaints.is_new(Platform::Telegram));
        complaints.settle(Platform::Telegram);
        assert!(complaints.is_new(Platform::Telegram));
    }
}
