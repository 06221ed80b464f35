//! Engines without root: which one is, and which limits that leaves.

use std::fs;
use std::os::unix::fs::MetadataExt;

use bollard::models::SystemInfo;
use hermetic_sandbox::{LayerState, SealLayer};

use crate::address::EngineAddress;

/// Whether an engine runs without root, and what of its limits that leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EngineRights {
    pub(crate) is_rootless: bool,
    /// Whether it drops limits that it says it keeps, or has no cgroups at all.
    pub(crate) leaves_limits_out: bool,
}

/// What an operator writes among the accepted risks to go without limits.
pub(crate) const WITHOUT_LIMITS: &str = "limits";

/// Where Podman without root keeps its containers, in whoever's home.
const ROOTLESS_STORAGE: &str = ".local/share/containers/storage";

impl EngineRights {
    pub(crate) fn of(info: &SystemInfo, address: &EngineAddress) -> Self {
        Self::told(info, socket_owner(address))
    }

    /// Docker says that it runs without root. Podman does not say so in words of Docker's; whose engine it is
    /// shows in the owner of its socket, and where it keeps its containers. With cgroups of version 1 it says
    /// that it keeps limits and leaves them out without a word, and Docker has no driver of cgroups then.
    fn told(info: &SystemInfo, socket_owner: Option<u32>) -> Self {
        let folder = info.docker_root_dir.as_deref().unwrap_or_default();
        let is_rootless = says_rootless(info)
            || socket_owner.is_some_and(|owner| owner != 0)
            || folder.ends_with(ROOTLESS_STORAGE);
        let is = |value: Option<String>, wanted: &str| value.as_deref() == Some(wanted);
        let first = is(info.cgroup_version.map(|version| version.to_string()), "1");
        let none = is(info.cgroup_driver.map(|driver| driver.to_string()), "none");
        Self {
            is_rootless,
            leaves_limits_out: is_rootless && (first || none),
        }
    }

    /// A container without a bound on processes and memory can take the machine from everybody, so none is made
    /// unless the operator `goes_without`; the other two only slow it down.
    pub(crate) fn layers(self, info: &SystemInfo, goes_without: bool) -> Vec<SealLayer> {
        let needed = |layer: SealLayer| {
            match layer.state {
            LayerState::Missing if !goes_without => SealLayer {
                state: LayerState::Required,
                remedy: layer.remedy.map(|remedy| {
                    format!("{remedy}; to go without, {WITHOUT_LIMITS:?} in terminal.docker_accept_risks")
                }),
                ..layer
            },
            _ => layer,
        }
        };
        vec![
            needed(self.limit("process limit", info.pids_limit)),
            needed(self.limit(SealLayer::MEMORY_LIMIT, info.memory_limit)),
            self.limit("swap limit", info.swap_limit),
            self.limit("cpu limit", info.cpu_cfs_quota),
        ]
    }

    /// Those without which a container can take the machine from everybody.
    pub(crate) fn dropped(self, info: &SystemInfo) -> Vec<&'static str> {
        let claimed = [
            ("processes", info.pids_limit),
            ("memory", info.memory_limit),
        ];
        let dropped = claimed
            .into_iter()
            .filter(|(_, kept)| self.leaves_limits_out || *kept == Some(false));
        dropped.map(|(name, _)| name).collect()
    }

    fn limit(self, name: &'static str, claimed: Option<bool>) -> SealLayer {
        let (detail, remedy) = match (self.leaves_limits_out, claimed, self.is_rootless) {
            (true, _, _) => (
                "not kept: an engine without root has no cgroups of its own here",
                NO_CGROUPS,
            ),
            (false, Some(false), true) => (
                "not kept: the controller is not handed down to the engine's user",
                "`[Service]` with `Delegate=cpu cpuset io memory pids` in \
                 /etc/systemd/system/user@.service.d/delegate.conf, then log in anew",
            ),
            (false, Some(false), false) => (
                "the engine's host cannot keep it",
                "switch the cgroup controller on, on the engine's host",
            ),
            // Podman does not say; it refuses a container whose limit it cannot keep.
            (false, Some(true) | None, _) => {
                return SealLayer::active(name, "kept by the engine's cgroups");
            }
        };
        SealLayer {
            name,
            state: LayerState::Missing,
            detail: detail.to_owned(),
            remedy: Some(remedy.to_owned()),
        }
    }
}

/// What brings limits to an engine without root.
pub(crate) const NO_CGROUPS: &str = "cgroup version 2 (systemd.unified_cgroup_hierarchy=1 on the kernel's command \
     line) and `[Service]` with `Delegate=cpu cpuset io memory pids` in \
     /etc/systemd/system/user@.service.d/delegate.conf";

fn says_rootless(info: &SystemInfo) -> bool {
    let mut options = info.security_options.iter().flatten();
    options.any(|option| option.starts_with("name=rootless"))
}

/// The user who owns the engine's socket, where it is a socket of this machine.
fn socket_owner(address: &EngineAddress) -> Option<u32> {
    Some(fs::metadata(address.socket()?).ok()?.uid())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rights(info: serde_json::Value, owner: Option<u32>) -> EngineRights {
        EngineRights::told(&serde_json::from_value(info).unwrap(), owner)
    }

    #[test]
    fn an_engine_without_root_is_known_and_says_which_limits_do_not_hold() {
        let docker = json!({"SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"],
            "CgroupDriver": "none", "CgroupVersion": "1", "MemoryLimit": true});
        let found = rights(docker, Some(1000));
        assert!(found.is_rootless && found.leaves_limits_out);
        let layer = found.limit("memory limit", Some(true));
        assert_eq!(layer.state, LayerState::Missing);
        assert!(layer.remedy.unwrap().contains("delegate.conf"));

        // Podman does not say so, and claims what it does not keep.
        let podman = json!({"CgroupDriver": "cgroupfs", "CgroupVersion": "1", "MemoryLimit": true});
        assert!(rights(podman.clone(), Some(1000)).leaves_limits_out);
        assert!(!rights(podman, Some(0)).leaves_limits_out);
        // Far away nobody sees whose its socket is.
        let far = json!({"CgroupVersion": "1",
            "DockerRootDir": "/home/ada/.local/share/containers/storage"});
        assert!(rights(far, None).leaves_limits_out);

        let delegated = json!({"SecurityOptions": ["name=rootless"], "CgroupDriver": "systemd",
            "CgroupVersion": "2"});
        let found = rights(delegated, Some(1000));
        assert!(found.is_rootless && !found.leaves_limits_out);
        assert_eq!(
            found.limit("memory limit", Some(true)).state,
            LayerState::Active
        );
        let cpu = found.limit("cpu limit", Some(false));
        assert!(cpu.detail.contains("not handed down"), "{}", cpu.detail);
        let root = rights(
            json!({"CgroupDriver": "systemd", "CgroupVersion": "2"}),
            Some(0),
        );
        assert!(!root.is_rootless);
    }

    #[test]
    fn without_a_bound_on_processes_or_memory_nothing_may_run_unless_it_is_accepted() {
        let none = json!({"CgroupDriver": "none", "CgroupVersion": "1"});
        let info: SystemInfo = serde_json::from_value(none).unwrap();
        let states = |goes_without| {
            let layers = EngineRights::told(&info, Some(1000)).layers(&info, goes_without);
            layers
                .iter()
                .map(|layer| (layer.name, layer.state))
                .collect::<Vec<_>>()
        };
        let (required, missing) = (LayerState::Required, LayerState::Missing);
        let told = [
            ("process limit", required),
            ("memory limit", required),
            ("swap limit", missing),
            ("cpu limit", missing),
        ];
        assert_eq!(states(false), told);
        assert!(states(true).iter().all(|(_, state)| *state == missing));

        let rootless = EngineRights::told(&info, Some(1000));
        assert_eq!(rootless.dropped(&info), ["processes", "memory"]);
        let host: SystemInfo =
            serde_json::from_value(json!({"PidsLimit": true, "MemoryLimit": false})).unwrap();
        assert_eq!(
            EngineRights::told(&host, Some(0)).dropped(&host),
            ["memory"]
        );
        let whole: SystemInfo =
            serde_json::from_value(json!({"CgroupVersion": "2", "PidsLimit": true})).unwrap();
        assert_eq!(
            EngineRights::told(&whole, Some(1000)).dropped(&whole),
            [""; 0]
        );
    }
}
