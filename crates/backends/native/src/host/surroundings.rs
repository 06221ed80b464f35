//! What kind of machine this is, as far as that decides which sandboxes can be made on it.
//!
//! A step that the kernel refuses says only "not permitted". Who forbade it stands elsewhere: in a switch below
//! `/proc/sys`, in a container's marks, in the kernel's name. All of it is read below one root, so that a test
//! can bring a machine of its own.

use std::fmt;
use std::fs;
use std::path::Path;

/// The facts about a machine that decide what is forbidden on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MachineSurroundings {
    /// As the kernel calls itself.
    pub(super) release: String,
    pub(super) container: Option<ContainerKind>,
    pub(super) is_wsl: bool,
    /// Whether a system call filter of somebody else is in force.
    is_filtered: bool,
    /// `user.max_user_namespaces=0`.
    has_no_namespaces: bool,
    /// `kernel.unprivileged_userns_clone=0`.
    is_clone_off: bool,
    /// `kernel.apparmor_restrict_unprivileged_userns=1`.
    is_restricted: bool,
    /// The security modules that are switched on; nothing where the list cannot be read.
    modules: Option<Vec<String>>,
    /// The program that a profile would be for.
    program: String,
}

/// What we are shut up in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerKind {
    Docker,
    Podman,
    Kubernetes,
    /// LXC by itself, or under Proxmox, Incus or LXD.
    Lxc,
}

impl MachineSurroundings {
    pub(super) fn of_this_machine() -> Self {
        let program = std::env::current_exe().unwrap_or_else(|_| "/usr/bin/hermetic".into());
        Self::below(Path::new("/"), &program)
    }

    /// The same, read below `root`.
    pub(super) fn below(root: &Path, program: &Path) -> Self {
        let read = |name: &str| {
            let text = fs::read_to_string(root.join(name)).ok()?;
            Some(text.trim().to_owned())
        };
        let is = |name: &str, value: &str| read(name).as_deref() == Some(value);
        let is_there = |names: &[&str]| names.iter().any(|name| root.join(name).exists());
        let release = read("proc/sys/kernel/osrelease").unwrap_or_default();
        let lower = release.to_ascii_lowercase();
        let container = if root
            // Kubernetes first: its pods run in containers that bear the other marks as well.
            .join("var/run/secrets/kubernetes.io/serviceaccount")
            .exists()
        {
            Some(ContainerKind::Kubernetes)
        } else if root.join("run/.containerenv").exists() {
            Some(ContainerKind::Podman)
        } else if root.join(".dockerenv").exists() {
            Some(ContainerKind::Docker)
        } else if is("run/systemd/container", "lxc")
            || is_there(&["dev/incus/sock", "dev/lxd/sock"])
        {
            Some(ContainerKind::Lxc)
        } else {
            None
        };
        let status = read("proc/self/status").unwrap_or_default();
        let is_filtered = status
            .lines()
            .filter_map(|line| line.strip_prefix("Seccomp:"))
            .any(|value| value.trim() == "2");
        let modules = read("sys/kernel/security/lsm")
            .map(|list| list.split(',').map(|name| name.trim().to_owned()).collect());
        Self {
            is_wsl: lower.contains("microsoft") || lower.contains("wsl2"),
            release,
            container,
            is_filtered,
            has_no_namespaces: is("proc/sys/user/max_user_namespaces", "0"),
            is_clone_off: is("proc/sys/kernel/unprivileged_userns_clone", "0"),
            is_restricted: is("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
            modules,
            program: program.display().to_string(),
        }
    }

    /// Who forbids namespaces here, and the one thing that mends it.
    pub(super) fn namespaces_remedy(&self) -> String {
        let switch = match (self.has_no_namespaces, self.is_clone_off) {
            (true, _) => Some(kept("user.max_user_namespaces", "15000")),
            (_, true) => Some(kept("kernel.unprivileged_userns_clone", "1")),
            _ => None,
        };
        match (self.container, switch) {
            // Nobody inside can set it, and no option of the container goes around it.
            (Some(container), Some(switch)) => {
                return format!(
                    "on the host of this container: {switch}; then {}",
                    container.remedy()
                );
            }
            (Some(container), None) => return container.remedy(),
            (None, Some(switch)) => return switch,
            (None, None) => {}
        }
        if let Some(remedy) = self.profile_remedy() {
            return remedy;
        }
        if self.is_filtered {
            return "something that started this process filters its system calls (a service's SystemCallFilter= or \
                    RestrictNamespaces=, or a sandbox around it): start hermetic outside of it"
                .to_owned();
        }
        "allow unprivileged user namespaces, or raise the user.max_*_namespaces limits".to_owned()
    }

    /// Ubuntu since 23.10 lets a plain user make a namespace and then takes its powers away.
    pub(super) fn profile_remedy(&self) -> Option<String> {
        self.is_restricted.then(|| {
            format!(
                "Ubuntu restricts user namespaces to programs with a profile (\
                 kernel.apparmor_restrict_unprivileged_userns=1): write `abi <abi/4.0>, profile hermetic {} \
                 flags=(unconfined) {{ userns, }}` into /etc/apparmor.d/hermetic, then `apparmor_parser -r \
                 /etc/apparmor.d/hermetic`",
                self.program
            )
        })
    }

    /// Why there is no Landlock, and what brings it.
    pub(super) fn landlock_remedy(&self) -> String {
        let list = match &self.modules {
            Some(modules) if modules.iter().any(|name| name == "landlock") => {
                return match self.container {
                    Some(container) => container.remedy(),
                    None => "it is switched on, and something that started this process refuses its system calls: \
                             start hermetic outside of it"
                        .to_owned(),
                };
            }
            Some(modules) => modules.join(","),
            None => "capability,yama,apparmor".to_owned(),
        };
        if self.is_wsl {
            return format!(
                "`[wsl2]` and `kernelCommandLine = lsm=landlock,{list}` in %UserProfile%\\.wslconfig, then `wsl \
                 --shutdown`"
            );
        }
        if let Some((major, minor)) = super::kernel::version(&self.release)
            && (major, minor) < LANDLOCK_SINCE
        {
            let (major, minor) = LANDLOCK_SINCE;
            return format!("a kernel since {major}.{minor}; this is {}", self.release);
        }
        format!(
            "`lsm=landlock,{list}` behind GRUB_CMDLINE_LINUX in /etc/default/grub (where the kernel was built with \
             it), then `update-grub` and a reboot"
        )
    }

    /// What WSL lacks for limits that the kernel keeps.
    pub(super) fn groups_remedy(&self) -> Option<String> {
        self.is_wsl.then(|| {
            "`[boot]` and `systemd=true` in /etc/wsl.conf, then `wsl --shutdown`; where cgroup version 1 is still \
             mounted, also `[wsl2]` and `kernelCommandLine = cgroup_no_v1=all` in %UserProfile%\\.wslconfig"
                .to_owned()
        })
    }
}

/// The first kernel with Landlock.
const LANDLOCK_SINCE: (u32, u32) = (5, 13);

/// A switch that is set now and at every start.
fn kept(switch: &str, value: &str) -> String {
    format!(
        "echo {switch}={value} | sudo tee /etc/sysctl.d/60-hermetic.conf && sudo sysctl -w {switch}={value}"
    )
}

impl ContainerKind {
    /// What lets a sandbox be made inside this one.
    pub(super) fn remedy(self) -> String {
        match self {
            Self::Docker => {
                "start this container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
                 --security-opt systempaths=unconfined, as the files of `hermetic compose` do"
            }
            Self::Podman => {
                "start this container with --security-opt seccomp=unconfined --security-opt unmask=ALL"
            }
            Self::Kubernetes => {
                "in the pod's securityContext: seccompProfile: {type: Unconfined}, appArmorProfile: {type: \
                 Unconfined} and procMount: Unmasked with hostUsers: false"
            }
            Self::Lxc => {
                "allow nesting in this container: `features: nesting=1` in Proxmox, `incus config set NAME \
                 security.nesting=true` (or `lxc config set`), `lxc.include = /usr/share/lxc/config/nesting.conf` \
                 elsewhere, then start it anew"
            }
        }
        .to_owned()
    }
}

impl fmt::Display for ContainerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Docker => "a Docker container",
            Self::Podman => "a Podman container",
            Self::Kubernetes => "a pod of Kubernetes",
            Self::Lxc => "a container of LXC",
        })
    }
}

impl fmt::Display for MachineSurroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linux {}", self.release)?;
        if self.is_wsl {
            f.write_str(", in WSL 2")?;
        }
        if let Some(container) = self.container {
            write!(f, ", in {container}")?;
        }
        if self.is_filtered {
            f.write_str(", under a system call filter")?;
        }
        if self.is_restricted {
            f.write_str(", user namespaces restricted by AppArmor")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "surroundings_tests.rs"]
mod tests;
