//! The disk limit, kept by looking, where the engine's storage keeps none.
//!
//! A look stays good for as long as the room that is left takes to fill, so that a large limit
//! costs a look a minute and a small one a few in a second.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bollard::query_parameters::KillContainerOptions;
use hermetic_types::SandboxId;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::container::{Container, Look};
use crate::docker::Host;
use crate::hidden;

/// Why a sandbox was ended by its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    DiskLimit,
}

/// As fast as a disk is ever filled, per second.
const FILL_RATE: u64 = 1 << 30;
const OFTENEST: Duration = Duration::from_millis(100);
const RAREST: Duration = Duration::from_secs(60);
/// Reasons that are remembered; older ones are of no use to anybody.
const MOST_REASONS: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct Watch(Mutex<Round>);

#[derive(Debug, Default)]
struct Round {
    watched: HashSet<SandboxId>,
    ended: HashMap<SandboxId, Ended>,
}

impl Watch {
    pub(crate) fn why_ended(&self, id: &SandboxId) -> Option<Ended> {
        self.round().ended.get(id).copied()
    }

    pub(crate) fn forget(&self, id: &SandboxId) {
        self.round().watched.remove(id);
    }

    fn note(&self, id: &SandboxId, ended: Ended) {
        let mut round = self.round();
        if round.ended.len() >= MOST_REASONS {
            round.ended.clear();
        }
        round.ended.insert(id.clone(), ended);
    }

    fn watches(&self, id: &SandboxId) -> bool {
        self.round().watched.contains(id)
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    /// Looks after it until it ends or nobody wants that any more.
    pub(crate) fn watch_over(self: &Arc<Self>, id: &SandboxId, limit: u64) {
        if self.watch.round().watched.insert(id.clone()) {
            tokio::spawn(look_after(Arc::downgrade(self), id.clone(), limit));
        }
    }

    /// How much it has written. An error of the engine's is no reason to end anything.
    async fn weigh(&self, id: &SandboxId) -> Weighed {
        match self.find(id, Look::Weigh).await {
            Ok(Some(found)) if found.is_running => {
                let named = found.layer_bytes.unwrap_or_default();
                let (pid, key) = (found.pid, found.key.clone());
                let unnamed = spawn_blocking(move || hidden::bytes(pid, &key)).await;
                let unnamed = unnamed.ok().flatten().unwrap_or_default();
                Weighed::Bytes(found, named.saturating_add(unnamed))
            }
            Ok(_) => Weighed::Gone,
            Err(_) => Weighed::Unknown,
        }
    }

    async fn end(&self, found: &Container, ended: Ended) {
        let id = &found.owned.id;
        tracing::warn!(sandbox = %id, ?ended, "stopped at its limit");
        self.watch.note(id, ended);
        let Ok(docker) = self.engine.docker().await else {
            return;
        };
        let killed = docker
            .kill_container(&found.key, None::<KillContainerOptions>)
            .await;
        if let Err(error) = killed {
            tracing::warn!(sandbox = %id, %error, "it could not be stopped");
        }
    }
}

enum Weighed {
    Bytes(Container, u64),
    Unknown,
    Gone,
}

async fn look_after(host: Weak<Host>, id: SandboxId, limit: u64) {
    let mut good_for = good_for(limit);
    loop {
        sleep(good_for).await;
        let Some(host) = host.upgrade().filter(|host| host.watch.watches(&id)) else {
            return;
        };
        good_for = match host.weigh(&id).await {
            Weighed::Bytes(found, bytes) if bytes > limit => {
                host.end(&found, Ended::DiskLimit).await;
                // Looked at once more: a kill that failed is tried again.
                OFTENEST
            }
            Weighed::Bytes(_, bytes) => self::good_for(limit - bytes),
            Weighed::Unknown => RAREST / 10,
            Weighed::Gone => return host.watch.forget(&id),
        };
    }
}

fn good_for(room: u64) -> Duration {
    Duration::from_millis(room.saturating_mul(1000) / FILL_RATE).clamp(OFTENEST, RAREST)
}
