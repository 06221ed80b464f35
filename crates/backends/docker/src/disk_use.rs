//! How much of the disk each of several containers has, by the engine's count of its layer.
//!
//! Only of an engine on this machine: what lies elsewhere takes no room from anybody here.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use futures::{StreamExt, stream};
use hermetic_types::SandboxId;

use crate::container::InspectDepth;
use crate::docker::DockerState;
use crate::hidden::HiddenUsage;
use crate::watch::look_for_hidden;

/// Layers that are added up at once: each is a walk over all files of a container.
const COUNTED_AT_ONCE: usize = 4;

/// Those that the engine can add up, with what has no name any more where that can be seen.
pub(crate) async fn disk_use(host: &DockerState, ids: &[SandboxId]) -> HashMap<SandboxId, u64> {
    if !host.config.address.is_near() {
        return HashMap::new();
    }
    let counted = ids.iter().cloned().map(|id| async move {
        let found = host.find(&id, InspectDepth::Weigh).await.ok()??;
        let named = found.layer_bytes?;
        let unnamed = match found.is_running && host.sees_layers() {
            // For the first time each time: growth that nobody explains is the business of its own watch.
            true => look_for_hidden(&found, &mut HiddenUsage::default(), named).await,
            false => 0,
        };
        Some((id, named.saturating_add(unnamed)))
    });
    let counted = stream::iter(counted).buffer_unordered(COUNTED_AT_ONCE);
    counted.filter_map(std::future::ready).collect().await
}

/// Whether what containers write takes room from the file system of this folder.
pub(crate) async fn shares_disk(host: &DockerState, folder: &Path) -> bool {
    if !host.config.address.is_near() {
        return false;
    }
    let Ok(facts) = host.engine.facts().await else {
        return false;
    };
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    let theirs = facts.folder.as_deref().and_then(device);
    theirs.is_some() && theirs == device(folder)
}
