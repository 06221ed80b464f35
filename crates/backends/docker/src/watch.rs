//! The limits on disk and files, kept by looking, where the engine's storage keeps none.
//!
//! A look stays good for as long as the room that is left takes to fill, so that a large limit
//! costs a look a minute and a small one a few in a second.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bollard::query_parameters::KillContainerOptions;
use hermetic_types::{SandboxId, SandboxLimits};
use rustix::process::getuid;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::container::{InspectDepth, OwnedContainer};
use crate::docker::DockerState;
use crate::files::LayerFiles;
use crate::hidden::{self, HiddenUsage};

/// Why a sandbox was ended by its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitEnd {
    DiskLimit,
    FileLimit,
}

/// What is kept by looking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerBounds {
    pub(crate) bytes: Option<u64>,
    pub(crate) files: Option<u64>,
}

/// As fast as a disk is ever filled, per second.
const FILL_RATE: u64 = 1 << 30;
/// As fast as files are ever made.
const FILE_RATE: u64 = 200_000;
const OFTENEST: Duration = Duration::from_millis(100);
const RAREST: Duration = Duration::from_secs(60);
/// Reasons that are remembered; older ones are of no use to anybody.
const MOST_REASONS: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct LimitWatch(Mutex<LimitRound>);

#[derive(Debug, Default)]
struct LimitRound {
    watched: HashSet<SandboxId>,
    ended: HashMap<SandboxId, LimitEnd>,
}

impl LimitWatch {
    pub(crate) fn why_ended(&self, id: &SandboxId) -> Option<LimitEnd> {
        self.round().ended.get(id).copied()
    }

    pub(crate) fn forget(&self, id: &SandboxId) {
        self.round().watched.remove(id);
    }

    fn note(&self, id: &SandboxId, ended: LimitEnd) {
        let mut round = self.round();
        if round.ended.len() >= MOST_REASONS {
            round.ended.clear();
        }
        round.ended.insert(id.clone(), ended);
    }

    fn watches(&self, id: &SandboxId) -> bool {
        self.round().watched.contains(id)
    }

    fn round(&self) -> MutexGuard<'_, LimitRound> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LayerBounds {
    pub(crate) fn of(limits: &SandboxLimits) -> Self {
        Self {
            bytes: Some(limits.disk_bytes),
            files: Some(limits.inodes),
        }
    }
}

impl DockerState {
    /// Looks after it until it ends or nobody wants that any more.
    pub(crate) fn watch_over(self: &Arc<Self>, id: &SandboxId, bounds: &LayerBounds) {
        // Once for each sandbox: a second task would ask the engine twice as often and know no
        // more.
        if !self.watch.round().watched.insert(id.clone()) {
            return;
        }
        if let Some(limit) = bounds.bytes {
            tokio::spawn(look_after(Arc::downgrade(self), id.clone(), limit));
        }
        if let Some(limit) = bounds.files.filter(|_| self.sees_layers()) {
            tokio::spawn(count_files(Arc::downgrade(self), id.clone(), limit));
        }
    }

    /// Whether the engine's files are on this machine and ours to look at.
    pub(crate) fn sees_layers(&self) -> bool {
        self.config.address.is_near() && getuid().is_root()
    }

    /// How much it has written. An error of the engine's is no reason to end anything.
    async fn weigh(&self, id: &SandboxId, hidden: &mut HiddenUsage) -> LayerWeight {
        match self.find(id, InspectDepth::Weigh).await {
            Ok(Some(found)) if found.is_running => {
                let named = found.layer_bytes.unwrap_or_default();
                let unnamed = if self.sees_layers() {
                    look_for_hidden(&found, hidden, named).await
                } else {
                    0
                };
                LayerWeight::Bytes(Box::new(found), named.saturating_add(unnamed))
            }
            Ok(_) => LayerWeight::Gone,
            Err(_) => LayerWeight::Unknown,
        }
    }

    async fn end(&self, found: &OwnedContainer, ended: LimitEnd) {
        let id = &found.owned.id;
        let limit = match ended {
            LimitEnd::DiskLimit => "disk",
            LimitEnd::FileLimit => "files",
        };
        tracing::warn!(sandbox = %id, limit, "stopped at its limit");
        // Before the kill: whoever sees it end asks why at once.
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

enum LayerWeight {
    Bytes(Box<OwnedContainer>, u64),
    Unknown,
    Gone,
}

/// Looking takes system calls and a wait for what only passes.
async fn look_for_hidden(found: &OwnedContainer, hidden: &mut HiddenUsage, named: u64) -> u64 {
    let (pid, key, layer) = (found.pid, found.key.clone(), found.layer.clone());
    // Taken along and brought back: the work happens on another thread, and what it learns is
    // needed for the next look.
    let mut looker = mem::take(hidden);
    let looked = spawn_blocking(move || {
        let bytes = looker.bytes(pid, &key, layer.as_deref(), named);
        (looker, bytes)
    });
    let (looker, bytes) = looked.await.unwrap_or_default();
    *hidden = looker;
    bytes
}

async fn look_after(host: Weak<DockerState>, id: SandboxId, limit: u64) {
    let mut good_for = lasts(limit, FILL_RATE);
    let mut hidden = HiddenUsage::default();
    loop {
        sleep(good_for).await;
        // Weak, and asked each time: the task ends with its backend, or when nobody wants it any
        // more.
        let Some(host) = host.upgrade().filter(|host| host.watch.watches(&id)) else {
            return;
        };
        good_for = match host.weigh(&id, &mut hidden).await {
            LayerWeight::Bytes(found, bytes) if bytes > limit => {
                host.end(&found, LimitEnd::DiskLimit).await;
                // Looked at once more: a kill that failed is tried again.
                OFTENEST
            }
            LayerWeight::Bytes(_, bytes) => lasts(limit - bytes, FILL_RATE),
            LayerWeight::Unknown => RAREST / 10,
            LayerWeight::Gone => return host.watch.forget(&id),
        };
    }
}

async fn count_files(host: Weak<DockerState>, id: SandboxId, limit: u64) {
    let mut good_for = lasts(limit, FILE_RATE);
    let mut files = None;
    loop {
        sleep(good_for).await;
        let Some(host) = host.upgrade().filter(|host| host.watch.watches(&id)) else {
            return;
        };
        let mut known = match files.take() {
            Some(known) => known,
            None => match host.find(&id, InspectDepth::Quick).await {
                Ok(Some(found)) if hidden::is_its_first(found.pid, &found.key) => {
                    match found.layer {
                        Some(layer) => LayerFiles::of(layer),
                        // A storage driver that does not say.
                        None => return,
                    }
                }
                Ok(_) => return,
                Err(_) => continue,
            },
        };
        let counted = spawn_blocking(move || {
            let room = known.room(limit);
            (known, room)
        });
        let Ok((known, room)) = counted.await else {
            return;
        };
        files = Some(known);
        good_for = lasts(room, FILE_RATE);
        if room == 0
            // Looked up again: counting may have taken seconds, in which another life may have
            // begun.
            && let Ok(Some(found)) = host.find(&id, InspectDepth::Quick).await
            && found.is_running
        {
            host.end(&found, LimitEnd::FileLimit).await;
        }
    }
}

fn lasts(room: u64, rate: u64) -> Duration {
    Duration::from_millis(room.saturating_mul(1000) / rate).clamp(OFTENEST, RAREST)
}
