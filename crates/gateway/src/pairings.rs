//! Pairings in the store: one document for each platform.

use futures::future::{BoxFuture, FutureExt};
use hermetic_access::{LedgerVersion, PairingLedger, PairingStore, PairingStoreError, SaveOutcome};
use hermetic_store::{DocumentRows, ReplaceOutcome};
use hermetic_types::Platform;

#[derive(Clone, Debug)]
pub struct StoredPairings {
    documents: DocumentRows,
}

impl StoredPairings {
    pub fn new(documents: DocumentRows) -> Self {
        Self { documents }
    }
}

impl PairingStore for StoredPairings {
    fn load(
        &self,
        platform: Platform,
    ) -> BoxFuture<'_, Result<(PairingLedger, LedgerVersion), PairingStoreError>> {
        async move {
            let found = self.documents.load(&name(platform)).await.map_err(broken)?;
            Ok(match found {
                None => (PairingLedger::default(), LedgerVersion::NONE),
                // What cannot be read lets nobody in, and is not written over.
                Some(found) => (
                    serde_json::from_str(&found.body).map_err(broken)?,
                    LedgerVersion(found.version),
                ),
            })
        }
        .boxed()
    }

    fn save<'a>(
        &'a self,
        platform: Platform,
        ledger: &'a PairingLedger,
        expected: LedgerVersion,
    ) -> BoxFuture<'a, Result<SaveOutcome, PairingStoreError>> {
        async move {
            let body = serde_json::to_string(ledger).map_err(broken)?;
            let replaced = self
                .documents
                .replace(&name(platform), &body, expected.0)
                .await;
            Ok(match replaced.map_err(broken)? {
                ReplaceOutcome::Yes => SaveOutcome::Yes,
                ReplaceOutcome::Outrun => SaveOutcome::Outrun,
            })
        }
        .boxed()
    }
}

fn name(platform: Platform) -> String {
    format!("pairings/{platform}")
}

fn broken(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> PairingStoreError {
    PairingStoreError(error.into())
}
