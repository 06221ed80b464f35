//! How much of the disk each of several sandboxes has.

use std::collections::HashMap;

use hermetic_sandbox::host::held::{self, OnDevice};
use hermetic_sandbox::host::process_tree;
use hermetic_types::SandboxId;

use super::disk;
use super::folder::SandboxFolder;
use super::native::NativeHost;

/// Those whose files are on a disk. One that cannot be counted has all it may have.
pub(super) fn disk_use(host: &NativeHost, folders: &[SandboxFolder]) -> HashMap<SandboxId, u64> {
    let quotas = host.project_quotas().ok();
    let uses = folders.iter().filter_map(|folder| {
        let record = folder.record().filter(|record| record.made.on_disk)?;
        let kept = record.made.project.zip(quotas.as_ref());
        if let Some(Ok(used)) = kept.map(|(project, quotas)| quotas.used(project)) {
            return Some((folder.id.clone(), used.bytes));
        }
        let files = folder.trees();
        let counted = disk::count(&files).ok().map(|named| {
            let unnamed = record.life.as_ref().zip(disk::device(&files[0]).ok());
            let unnamed = unnamed.map_or(0, |(life, number)| {
                let device = OnDevice {
                    number,
                    overlaid: false,
                };
                held::look(&process_tree(life.pid), device).unnamed.bytes
            });
            named.bytes + unnamed
        });
        // A tree that its owner locked against counting must not look like an empty one.
        let bytes = counted.unwrap_or(record.spec.limits.disk_bytes);
        Some((folder.id.clone(), bytes))
    });
    uses.collect()
}
