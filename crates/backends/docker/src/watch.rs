//! The limits on disk and files, kept by looking, where the engine's storage keeps none.
//!
//! A look stays good for as long as the room that is left takes to fill, so that a large limit
//! costs a look a minute and a small one a few in a second.

use std::collections::HashMap;
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
/// Counting a layer is work for the engine; it rests so long in between, however little room there is.
const OFTENEST: Duration = Duration::from_millis(100);
/// Also where there is room for hours: the rates above are assumptions.
const RAREST: Duration = Duration::from_secs(60);
/// Reasons that are remembered; older ones are of no use to anybody.
const MOST_REASONS: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct LimitWatch(Mutex<LimitRound>);

#[derive(Debug, Default)]
struct LimitRound {
    /// By which of the watches that were begun.
    watched: HashMap<SandboxId, u64>,
    begun: u64,
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

    /// A new watch, in place of an earlier one. Nothing where one goes on that is good enough.
    fn begin(&self, id: &SandboxId, start: WatchStart) -> Option<u64> {
        let mut round = self.round();
        if start == WatchStart::Found && round.watched.contains_key(id) {
            return None;
        }
        round.begun += 1;
        let watch = round.begun;
        round.watched.insert(id.clone(), watch);
        Some(watch)
    }

    fn goes_on(&self, id: &SandboxId, watch: u64) -> bool {
        self.round().watched.get(id) == Some(&watch)
    }

    /// This watch and no later one: the container may have been started again since it was seen to be gone.
    fn end(&self, id: &SandboxId, watch: u64) {
        let mut round = self.round();
        if round.watched.get(id) == Some(&watch) {
            round.watched.remove(id);
        }
    }

    fn round(&self) -> MutexGuard<'_, LimitRound> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a container came to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchStart {
    /// It was started just now: a watch over an earlier life of it ends.
    Started,
    /// It runs, and may be watched already.
    Found,
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
    pub(crate) fn watch_over(
        self: &Arc<Self>,
        id: &SandboxId,
        bounds: &LayerBounds,
        start: WatchStart,
    ) {
        // Once for each sandbox: a second task would ask the engine twice as often and know no
        // more.
        let Some(watch) = self.watch.begin(id, start) else {
            return;
        };
        let watched = WatchedLife {
            host: Arc::downgrade(self),
            id: id.clone(),
            watch,
        };
        if let Some(limit) = bounds.bytes {
            tokio::spawn(look_after(watched.clone(), limit));
        }
        if let Some(limit) = bounds.files.filter(|_| self.sees_layers()) {
            tokio::spawn(count_files(watched, limit));
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
pub(crate) async fn look_for_hidden(
    found: &OwnedContainer,
    hidden: &mut HiddenUsage,
    named: u64,
) -> u64 {
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

/// One life of a container, and the watch over it.
#[derive(Clone)]
struct WatchedLife {
    host: Weak<DockerState>,
    id: SandboxId,
    watch: u64,
}

impl WatchedLife {
    /// Nothing when the backend is gone, or nobody wants this watch any more.
    fn wanted(&self) -> Option<Arc<DockerState>> {
        let host = self.host.upgrade()?;
        host.watch.goes_on(&self.id, self.watch).then_some(host)
    }
}

async fn look_after(life: WatchedLife, limit: u64) {
    let id = &life.id;
    let mut good_for = lasts(limit, FILL_RATE);
    let mut hidden = HiddenUsage::default();
    loop {
        sleep(good_for).await;
        // Weak, and asked each time: the task ends with its backend, or when nobody wants it any
        // more.
        let Some(host) = life.wanted() else {
            return;
        };
        good_for = match host.weigh(id, &mut hidden).await {
            LayerWeight::Bytes(found, bytes) if bytes > limit => {
                host.end(&found, LimitEnd::DiskLimit).await;
                // Looked at once more: a kill that failed is tried again.
                OFTENEST
            }
            LayerWeight::Bytes(_, bytes) => lasts(limit - bytes, FILL_RATE),
            LayerWeight::Unknown => RAREST / 10,
            LayerWeight::Gone => return host.watch.end(id, life.watch),
        };
    }
}

async fn count_files(life: WatchedLife, limit: u64) {
    let id = &life.id;
    let mut good_for = lasts(limit, FILE_RATE);
    let mut files = None;
    loop {
        sleep(good_for).await;
        let Some(host) = life.wanted() else {
            return;
        };
        let mut known = match files.take() {
            Some(known) => known,
            None => match host.find(id, InspectDepth::Quick).await {
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
            && let Ok(Some(found)) = host.find(id, InspectDepth::Quick).await
            && found.is_running
        {
            host.end(&found, LimitEnd::FileLimit).await;
        }
    }
}

fn lasts(room: u64, rate: u64) -> Duration {
    Duration::from_millis(room.saturating_mul(1000) / rate).clamp(OFTENEST, RAREST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watch_over_an_earlier_life_does_not_end_that_over_the_next() {
        let (watch, id) = (LimitWatch::default(), SandboxId::random());
        let first = watch.begin(&id, WatchStart::Started).unwrap();
        assert_eq!(watch.begin(&id, WatchStart::Found), None);
        // Seen to be gone, and back before that was noted.
        let second = watch.begin(&id, WatchStart::Started).unwrap();
        assert!(!watch.goes_on(&id, first));
        watch.end(&id, first);
        assert!(watch.goes_on(&id, second));
        // The same where it was stopped by us in between.
        watch.forget(&id);
        let third = watch.begin(&id, WatchStart::Found).unwrap();
        watch.end(&id, second);
        assert!(watch.goes_on(&id, third) && !watch.goes_on(&id, second));
        watch.end(&id, third);
        assert!(!watch.goes_on(&id, third));
    }
}
