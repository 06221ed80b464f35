//! Whose files take room from the disk that is watched.

use std::collections::HashMap;
use std::path::Path;

use futures::future::BoxFuture;
use hermetic_store::{LedgerState, RowOwner, StoreError};
use hermetic_types::{BackendKind, ConversationKey, SandboxId, Timestamp};
use thiserror::Error;

use crate::Sandboxes;

/// One sandbox whose files may lie on the disk that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskTenant {
    pub id: SandboxId,
    pub conversation: ConversationKey,
    pub backend: BackendKind,
    /// Only what runs writes, and is stopped for it.
    pub is_running: bool,
}

/// The error of somebody who cannot tell now which sandboxes there are.
#[derive(Debug, Error)]
#[error("the ledger cannot be read")]
pub struct UnknownTenants(#[from] StoreError);

/// All sandboxes that one process answers for.
///
/// What an implementer promises: `stop` first of all ends the writing, also where there is no room to write down
/// that it did.
pub trait DiskTenants: Send + Sync {
    fn tenants(&self) -> BoxFuture<'_, Result<Vec<DiskTenant>, UnknownTenants>>;

    /// What each has on the file system of this folder, of those that can be counted.
    fn disk_use<'a>(
        &'a self,
        tenants: &'a [DiskTenant],
        folder: &'a Path,
    ) -> BoxFuture<'a, HashMap<SandboxId, u64>>;

    fn stop<'a>(&'a self, tenant: &'a DiskTenant) -> BoxFuture<'a, ()>;

    fn now(&self) -> Timestamp;
}

impl DiskTenants for Sandboxes {
    fn tenants(&self) -> BoxFuture<'_, Result<Vec<DiskTenant>, UnknownTenants>> {
        Box::pin(async move {
            let entries = self.ledger.entries(RowOwner::ThisGateway).await?;
            let tenants = entries.into_iter().map(|entry| DiskTenant {
                id: entry.id,
                conversation: entry.conversation,
                backend: entry.backend,
                is_running: entry.state == LedgerState::Running,
            });
            Ok(tenants.collect())
        })
    }

    fn disk_use<'a>(
        &'a self,
        tenants: &'a [DiskTenant],
        folder: &'a Path,
    ) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        Box::pin(async move {
            let mut by_backend: HashMap<BackendKind, Vec<SandboxId>> = HashMap::new();
            for tenant in tenants {
                let ids = by_backend.entry(tenant.backend).or_default();
                ids.push(tenant.id.clone());
            }
            let mut uses = HashMap::new();
            for (kind, ids) in by_backend {
                if let Ok(backend) = self.backend(kind) {
                    uses.extend(backend.disk_use_on(&ids, folder).await);
                }
            }
            uses
        })
    }

    fn stop<'a>(&'a self, tenant: &'a DiskTenant) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // First of all it writes no more: the ledger may have no room to say so.
            if let Ok(backend) = self.backend(tenant.backend)
                && let Err(error) = backend.stop(&tenant.id).await
            {
                tracing::warn!(sandbox = %tenant.id, %error, "a sandbox that fills the disk was not stopped");
            }
            if let Err(error) = self.end_tenancy(&tenant.conversation).await {
                tracing::warn!(sandbox = %tenant.id, %error, "a stopped sandbox stays in the ledger");
            }
        })
    }

    fn now(&self) -> Timestamp {
        Self::now(self)
    }
}
