//! What containers use at this moment, by the engine's own count.
//!
//! Which processes run inside the engine is not asked: Docker's starts a `ps` on its machine for that, and
//! Podman's one inside, where what is called `ps` is the sandbox's choice. On an engine of this machine the
//! kernel tells it.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use bollard::models::{ContainerMemoryStats, ContainerStatsResponse};
use bollard::query_parameters::StatsOptionsBuilder;
use futures::{StreamExt, stream};
use hermetic_sandbox::host::{describe_processes, process_tree};
use hermetic_sandbox::{LiveUse, SandboxProcess};
use hermetic_types::SandboxId;

use crate::container::InspectDepth;
use crate::docker::DockerState;
use crate::label;

/// Containers that are asked about at once: an engine answers each from a few small files.
const ASKED_AT_ONCE: usize = 8;

/// Those that the engine answers for. One that does not run has no figures.
pub(crate) async fn live_use(host: &DockerState, ids: &[SandboxId]) -> HashMap<SandboxId, LiveUse> {
    let Ok(docker) = host.engine.brisk().await else {
        return HashMap::new();
    };
    // At once, without waiting a second to compare two looks: we compare them ourselves.
    let options = StatsOptionsBuilder::new()
        .stream(false)
        .one_shot(true)
        .build();
    let asked = ids.iter().cloned().map(move |id| {
        let (docker, options) = (docker.clone(), options.clone());
        async move {
            let name = label::name(&id);
            let mut told = Box::pin(docker.stats(&name, Some(options)));
            let told = told.next().await?.ok()?;
            Some((id, from_stats(&told)?))
        }
    });
    let told = stream::iter(asked).buffer_unordered(ASKED_AT_ONCE);
    told.filter_map(std::future::ready).collect().await
}

/// What runs in a container of an engine on this machine, as this machine's kernel tells it. `None` where the
/// engine is elsewhere, or counts processes in another namespace than ours.
pub(crate) async fn processes(
    host: &DockerState,
    id: &SandboxId,
    most: usize,
) -> Option<Vec<SandboxProcess>> {
    if !host.config.address.is_near() {
        return None;
    }
    let found = host.find(id, InspectDepth::Quick).await.ok()??;
    let first = i32::try_from(found.pid).ok().filter(|pid| *pid > 0)?;
    let looked = tokio::task::spawn_blocking(move || {
        is_of_container(first, &found.key).then(|| describe_processes(&process_tree(first), most))
    });
    looked.await.ok().flatten()
}

/// The number may be one of another process by now, or of a machine that only shares a socket with this one:
/// the groups of a container's first process carry the container's own id.
fn is_of_container(pid: i32, key: &str) -> bool {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"));
    groups.is_ok_and(|groups| !key.is_empty() && groups.contains(key))
}

/// Nothing where the container does not run: such an answer has no figure but zeros.
fn from_stats(told: &ContainerStatsResponse) -> Option<LiveUse> {
    let pids = told.pids_stats.as_ref().and_then(|pids| pids.current);
    let memory = told.memory_stats.as_ref().and_then(memory_bytes);
    let cpu = told
        .cpu_stats
        .as_ref()
        .and_then(|cpu| cpu.cpu_usage.as_ref());
    let cpu = cpu.and_then(|cpu| cpu.total_usage);
    if memory.is_none() && pids.is_none() {
        return None;
    }
    Some(LiveUse {
        cpu_time: cpu.map(Duration::from_nanos),
        memory_bytes: memory,
        pids,
    })
}

/// Less the files that nobody has used lately, as the engine's own client shows it.
fn memory_bytes(told: &ContainerMemoryStats) -> Option<u64> {
    let used = told.usage?;
    let kinds = told.stats.as_ref();
    let inactive = kinds.and_then(|kinds| {
        let names = ["total_inactive_file", "inactive_file"];
        names.iter().find_map(|name| kinds.get(*name).copied())
    });
    Some(used.saturating_sub(inactive.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<LiveUse> {
        from_stats(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn both_versions_of_groups_are_understood() {
        let version_2 = told(
            r#"{"pids_stats": {"current": 3, "limit": 512},
                "cpu_stats": {"cpu_usage": {"total_usage": 1500000000}},
                "memory_stats": {"usage": 9000, "stats": {"inactive_file": 4000}}}"#,
        );
        let expected = LiveUse {
            cpu_time: Some(Duration::from_millis(1500)),
            memory_bytes: Some(5000),
            pids: Some(3),
        };
        assert_eq!(version_2, Some(expected));
        let version_1 = told(
            r#"{"pids_stats": {"current": 3},
                "cpu_stats": {"cpu_usage": {"total_usage": 1500000000}},
                "memory_stats": {"usage": 9000,
                    "stats": {"inactive_file": 1, "total_inactive_file": 4000}}}"#,
        );
        assert_eq!(version_1, Some(expected));
    }

    #[test]
    fn one_that_does_not_run_has_no_figures() {
        let stopped = told(
            r#"{"pids_stats": {}, "memory_stats": {},
                "cpu_stats": {"cpu_usage": {"total_usage": 0}}}"#,
        );
        assert_eq!(stopped, None);
    }
}
