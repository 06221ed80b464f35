//! Where pairings are remembered.
//!
//! All rules live in [`PairingLedger`]'s methods, as plain functions; a store only keeps one ledger for
//! each platform and replaces it if nobody else did meanwhile. That comparison is what decides a
//! race between two approvals, in one process or in several.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::Mutex;

use futures::future::{BoxFuture, FutureExt};
use hermetic_types::Platform;
use thiserror::Error;

use crate::PairingLedger;

/// Keeps one [`PairingLedger`] (it serialises) for each platform.
///
/// What an implementer promises:
/// - `load` of a platform never saved is an empty ledger at [`LedgerVersion::NONE`];
/// - `save` writes if and only if the stored version is still `expected`, atomically, and it is on
///   disk when it returns [`SaveOutcome::Yes`];
/// - nobody but the operator's account can read it.
pub trait PairingStore: Send + Sync + fmt::Debug {
    fn load(
        &self,
        platform: Platform,
    ) -> BoxFuture<'_, Result<(PairingLedger, LedgerVersion), PairingStoreError>>;

    fn save<'a>(
        &'a self,
        platform: Platform,
        ledger: &'a PairingLedger,
        expected: LedgerVersion,
    ) -> BoxFuture<'a, Result<SaveOutcome, PairingStoreError>>;
}

/// Counts up by one with each save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerVersion(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SaveOutcome {
    Yes,
    /// Somebody else was faster: load again.
    Outrun,
}

#[derive(Debug, Error)]
#[error("the pairing store does not answer")]
pub struct PairingStoreError(#[source] pub Box<dyn Error + Send + Sync>);

impl LedgerVersion {
    pub const NONE: Self = Self(0);

    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Pairings for as long as the process lives.
#[derive(Debug, Default)]
pub struct MemoryPairings {
    ledgers: Mutex<HashMap<Platform, (PairingLedger, LedgerVersion)>>,
}

impl MemoryPairings {
    fn with<R>(
        &self,
        look: impl FnOnce(&mut HashMap<Platform, (PairingLedger, LedgerVersion)>) -> R,
    ) -> R {
        look(
            &mut self
                .ledgers
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner()),
        )
    }
}

impl PairingStore for MemoryPairings {
    fn load(
        &self,
        platform: Platform,
    ) -> BoxFuture<'_, Result<(PairingLedger, LedgerVersion), PairingStoreError>> {
        let found = self.with(|ledgers| ledgers.get(&platform).cloned());
        async move { Ok(found.unwrap_or((PairingLedger::default(), LedgerVersion::NONE))) }.boxed()
    }

    fn save<'a>(
        &'a self,
        platform: Platform,
        ledger: &'a PairingLedger,
        expected: LedgerVersion,
    ) -> BoxFuture<'a, Result<SaveOutcome, PairingStoreError>> {
        async move {
            Ok(self.with(|ledgers| {
                let current = ledgers
                    .get(&platform)
                    .map_or(LedgerVersion::NONE, |(_, at)| *at);
                if current != expected {
                    return SaveOutcome::Outrun;
                }
                ledgers.insert(platform, (ledger.clone(), expected.next()));
                SaveOutcome::Yes
            }))
        }
        .boxed()
    }
}
