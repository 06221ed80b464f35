//! Pairing: a stranger gets a code in private, and an operator who hears it lets them in.

use std::sync::Arc;

use hermetic_types::{Platform, Sender, Timestamp, UserId};
use serde::Serialize;
use thiserror::Error;

use crate::ledger::{
    ApproveError, PairedRole, PairedUser, PairingLedger, PairingPlace, PairingRequested,
    PendingPairing,
};
use crate::{PairingCode, PairingStore, PairingStoreError, SaveOutcome};

/// Every attempt that is outrun means somebody else got through, so few are needed.
const SAVE_ATTEMPTS: usize = 64;

#[derive(Clone, Debug)]
pub struct PairingService {
    store: Arc<dyn PairingStore>,
}

/// What a stranger who asked is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairingOffer {
    Code(PairingCode),
    /// They have been given one already.
    TooSoon,
}

/// Who is in and who waits, for `hermetic pairing list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PairingStatus {
    pub approved: Vec<PairedUser>,
    pub pending: Vec<PendingPairing>,
}

#[derive(Debug, Error)]
pub enum PairingError {
    #[error(transparent)]
    Approve(#[from] ApproveError),
    #[error("no random numbers from the system")]
    Random(#[source] getrandom::Error),
    #[error("the pairing store changed {SAVE_ATTEMPTS} times under our hands")]
    Outrun,
    #[error(transparent)]
    Store(#[from] PairingStoreError),
}

impl PairingService {
    pub fn new(store: Arc<dyn PairingStore>) -> Self {
        Self { store }
    }

    /// What a code made of this person; nothing where none did.
    pub async fn role_of(
        &self,
        platform: Platform,
        user: &UserId,
    ) -> Result<Option<PairedRole>, PairingError> {
        let (ledger, _) = self.store.load(platform).await?;
        Ok(ledger.role_of(user))
    }

    /// Tells whether nobody was ever let in by a code, on any platform.
    pub async fn is_new(&self) -> Result<bool, PairingError> {
        for platform in Platform::ALL {
            let (ledger, _) = self.store.load(platform).await?;
            if !ledger.is_new() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Those who are in and were not told yet.
    pub async fn untold(&self, platform: Platform) -> Result<Vec<PairedUser>, PairingError> {
        let (ledger, _) = self.store.load(platform).await?;
        Ok(ledger.untold())
    }

    /// Notes that this person's greeting is on its way.
    pub async fn note_told(&self, platform: Platform, user: &UserId) -> Result<(), PairingError> {
        self.change(platform, |ledger| ledger.note_told(user)).await
    }

    /// A code for this stranger, at most one in ten minutes.
    pub async fn request(
        &self,
        sender: &Sender,
        place: &PairingPlace,
        now: Timestamp,
    ) -> Result<PairingOffer, PairingError> {
        let platform = place.account.platform();
        // Most of a flood ends here, without a write.
        let (ledger, _) = self.store.load(platform).await?;
        if ledger.is_too_soon(&sender.id, now) {
            return Ok(PairingOffer::TooSoon);
        }
        let code = PairingCode::random().map_err(PairingError::Random)?;
        // Outside of the change below, which may be tried several times: each try has to store the
        // same code that is shown.
        let hash = code.hash().map_err(PairingError::Random)?;
        let requested = self
            .change(platform, |ledger| {
                let asked = (hash.clone(), place.clone());
                ledger.request(&sender.id, &sender.display, asked, now)
            })
            .await?;
        Ok(match requested {
            PairingRequested::Noted => PairingOffer::Code(code),
            PairingRequested::TooSoon => PairingOffer::TooSoon,
        })
    }

    /// Lets the holder of the code in, as a user or as an operator. `typed` is what the operator typed.
    pub async fn approve(
        &self,
        platform: Platform,
        typed: &str,
        role: PairedRole,
        now: Timestamp,
    ) -> Result<PairedUser, PairingError> {
        let code = PairingCode::typed(typed);
        // A wrong code comes back as a value of the change, so that its failure is saved: otherwise
        // nobody would ever be locked out.
        let approved = self
            .change(platform, |ledger| ledger.approve(code.as_ref(), role, now))
            .await?;
        Ok(approved?)
    }

    /// Lets in people whom the operator let in elsewhere, and says who of them is new.
    pub async fn adopt(
        &self,
        platform: Platform,
        people: &[PairedUser],
    ) -> Result<Vec<PairedUser>, PairingError> {
        self.change(platform, |ledger| ledger.adopt(people)).await
    }

    /// Whom [`Self::adopt`] would let in.
    pub async fn would_adopt(
        &self,
        platform: Platform,
        people: &[PairedUser],
    ) -> Result<Vec<PairedUser>, PairingError> {
        let (mut ledger, _) = self.store.load(platform).await?;
        Ok(ledger.adopt(people))
    }

    /// Whether there was anybody to put out.
    pub async fn revoke(&self, platform: Platform, user: &UserId) -> Result<bool, PairingError> {
        self.change(platform, |ledger| ledger.revoke(user)).await
    }

    /// How many codes became void.
    pub async fn clear_pending(&self, platform: Platform) -> Result<usize, PairingError> {
        self.change(platform, PairingLedger::clear_pending).await
    }

    pub async fn standing(
        &self,
        platform: Platform,
        now: Timestamp,
    ) -> Result<PairingStatus, PairingError> {
        let (ledger, _) = self.store.load(platform).await?;
        Ok(PairingStatus {
            approved: ledger.approved(),
            pending: ledger.pending(now),
        })
    }

    async fn change<R>(
        &self,
        platform: Platform,
        mut change: impl FnMut(&mut PairingLedger) -> R,
    ) -> Result<R, PairingError> {
        for _ in 0..SAVE_ATTEMPTS {
            let (before, version) = self.store.load(platform).await?;
            let mut after = before.clone();
            let result = change(&mut after);
            // Nothing to save, which keeps a flood of repeated requests away from the disk.
            if after == before {
                return Ok(result);
            }
            if self.store.save(platform, &after, version).await? == SaveOutcome::Yes {
                return Ok(result);
            }
        }
        Err(PairingError::Outrun)
    }
}
