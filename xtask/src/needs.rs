//! What the tests need from the machine, as a table.

use std::fmt;
use std::str::FromStr;

use crate::arguments::TestOptions;
use crate::failure::ChoreFailure;
use crate::members::WorkspaceMember;
use crate::{apt, machine, say};

/// One thing of the machine's that tests use.
pub(crate) struct MachineNeed {
    pub(crate) part: NeedGroup,
    /// The Debian package that has it.
    pub(crate) package: &'static str,
    /// It is there when this program is.
    pub(crate) program: &'static str,
    pub(crate) wanted_by: &'static str,
    pub(crate) weight: PackageWeight,
}

/// What is wanted together. `Base` always is; the others when a crate's manifest or the command
/// line asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NeedGroup {
    Base,
    Docker,
    Podman,
    Ssh,
    Singularity,
    Squid,
    Node,
    Python,
    Synapse,
    Browser,
    Prometheus,
    Kubectl,
    Postgres,
    Vm,
    VmArm64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackageWeight {
    Light,
    /// Over a hundred megabytes: said before it is fetched.
    Heavy,
}

/// In the order of installing. A row is looked at again just before its turn, because an earlier
/// one may have brought it.
const NEEDS: [MachineNeed; 31] = {
    use NeedGroup::{
        Base, Browser, Docker, Kubectl, Node, Podman, Postgres, Prometheus, Python, Singularity,
        Squid, Ssh, Synapse, Vm, VmArm64,
    };
    use PackageWeight::{Heavy, Light};
    const fn need(
        part: NeedGroup,
        package: &'static str,
        program: &'static str,
        weight: PackageWeight,
        wanted_by: &'static str,
    ) -> MachineNeed {
        MachineNeed {
            part,
            package,
            program,
            wanted_by,
            weight,
        }
    }
    [
        need(Base, "gcc", "cc", Light, "crates that carry C: SQLite, TLS"),
        need(Base, "git", "git", Light, "normal work inside a sandbox"),
        need(
            Base,
            "python3",
            "python3",
            Light,
            "normal work inside a sandbox",
        ),
        need(Base, "curl", "curl", Light, "requests inside a sandbox"),
        need(
            Base,
            "bubblewrap",
            "bwrap",
            Light,
            "benches that compare with it",
        ),
        need(
            Base,
            "util-linux",
            "setpriv",
            Light,
            "tests as a plain user",
        ),
        need(Ssh, "openssh-server", "sshd", Light, "the ssh backend"),
        need(
            Squid,
            "squid",
            "squid",
            Light,
            "the allowlist written for Squid",
        ),
        need(Docker, "docker.io", "dockerd", Heavy, "the docker backend"),
        // Newer releases ship the client apart from the engine.
        need(Docker, "docker-cli", "docker", Light, "the docker backend"),
        need(Podman, "podman", "podman", Heavy, "the docker backend"),
        need(Podman, "uidmap", "newuidmap", Light, "engines without root"),
        // Docker's daemon as a plain user.
        need(
            Podman,
            "rootlesskit",
            "rootlesskit",
            Light,
            "engines without root",
        ),
        need(Docker, "mmdebstrap", "mmdebstrap", Light, "the test image"),
        need(
            Singularity,
            "mmdebstrap",
            "mmdebstrap",
            Light,
            "the test image",
        ),
        // For Apptainer, which has no package here: see `apptainer.rs`.
        need(
            Singularity,
            "patchelf",
            "patchelf",
            Light,
            "the singularity backend",
        ),
        need(
            Singularity,
            "squashfs-tools",
            "mksquashfs",
            Light,
            "images as one file, for the singularity backend",
        ),
        need(
            Node,
            "npm",
            "npm",
            Heavy,
            "chat platforms played by npm packages",
        ),
        need(
            Python,
            "python3-pip",
            "pip3",
            Light,
            "clients of chat platforms from PyPI",
        ),
        need(
            Synapse,
            "python3-pip",
            "pip3",
            Light,
            "a Matrix homeserver from PyPI",
        ),
        need(
            Browser,
            "chromium",
            "chromium",
            Heavy,
            "the dashboard in a browser",
        ),
        need(
            Kubectl,
            "kubernetes-client",
            "kubectl",
            Light,
            "the cluster that the kubernetes backend is tested against",
        ),
        need(
            Prometheus,
            "prometheus",
            "promtool",
            Heavy,
            "metrics, alert rules and queries, read by others",
        ),
        // Debian keeps `postgres` itself out of the path.
        need(
            Postgres,
            "postgresql",
            "pg_ctlcluster",
            Heavy,
            "the store on PostgreSQL",
        ),
        need(
            Vm,
            "qemu-system-x86",
            "qemu-system-x86_64",
            Heavy,
            "machines in emulation",
        ),
        need(Vm, "mmdebstrap", "mmdebstrap", Light, "a machine's disk"),
        need(Vm, "e2fsprogs", "mkfs.ext4", Light, "a machine's disk"),
        need(Vm, "openssh-client", "ssh", Light, "commands in a machine"),
        need(
            VmArm64,
            "qemu-system-arm",
            "qemu-system-aarch64",
            Heavy,
            "machines of the other kind in emulation",
        ),
        // What sets up another kind's packages: see `machine::runs`.
        need(
            VmArm64,
            "qemu-user-static",
            "qemu-aarch64-static",
            Heavy,
            "the disk of a machine of the other kind",
        ),
        need(
            VmArm64,
            "arch-test",
            "arch-test",
            Light,
            "the disk of a machine of the other kind",
        ),
    ]
};

/// What was wanted and is not to be had, with the reason.
pub(crate) struct LackingNeed {
    pub(crate) part: NeedGroup,
    pub(crate) text: String,
}

/// The parts this run wants: asked for by a manifest or by `--with`, minus `--without`.
pub(crate) fn wanted(
    members: &[WorkspaceMember],
    options: &TestOptions,
) -> Result<Vec<NeedGroup>, ChoreFailure> {
    let mut parts = vec![NeedGroup::Base];
    for member in members {
        for name in &member.needs {
            let part = name.parse()?;
            say::note(&format!("{} asks for {part}", member.name));
            parts.push(part);
        }
    }
    parts.extend(&options.with);
    parts.dedup();
    parts.retain(|part| !options.without.contains(part));
    Ok(parts)
}

/// Installs what is missing, where we may. Whatever cannot be had is returned, not fatal: the
/// tests that want it skip aloud.
pub(crate) fn provide(parts: &[NeedGroup], may_install: bool) -> Vec<LackingNeed> {
    let mut lacking = Vec::new();
    let mut apt = apt::AptPackages::default();
    for need in NEEDS.iter().filter(|need| parts.contains(&need.part)) {
        if machine::find(need.program).is_some() {
            continue;
        }
        let heavy = match need.weight {
            PackageWeight::Light => "",
            PackageWeight::Heavy => ", a large one",
        };
        say::note(&format!(
            "{} is missing (package {}{heavy}; for {})",
            need.program, need.package, need.wanted_by
        ));
        let outcome = if may_install {
            apt.install(need.package).map_err(|why| why.to_string())
        } else if machine::is_root() {
            Err("--no-install was given".to_owned())
        } else {
            Err(format!(
                "only root can install: sudo apt-get install {}",
                need.package
            ))
        };
        if machine::find(need.program).is_none() {
            let why = outcome
                .err()
                .unwrap_or_else(|| "the package lacks it".to_owned());
            lacking.push(LackingNeed {
                part: need.part,
                text: format!("{} (for {}): {why}", need.program, need.wanted_by),
            });
        }
    }
    lacking
}

impl NeedGroup {
    const NAMED: [(Self, &'static str); 15] = [
        (Self::Base, "base"),
        (Self::Docker, "docker"),
        (Self::Podman, "podman"),
        (Self::Ssh, "ssh"),
        (Self::Singularity, "singularity"),
        (Self::Squid, "squid"),
        (Self::Node, "node"),
        (Self::Python, "python"),
        (Self::Synapse, "synapse"),
        (Self::Browser, "browser"),
        (Self::Prometheus, "prometheus"),
        (Self::Kubectl, "kubectl"),
        (Self::Postgres, "postgres"),
        (Self::Vm, "vm"),
        (Self::VmArm64, "vm-arm64"),
    ];
}

impl FromStr for NeedGroup {
    type Err = ChoreFailure;

    fn from_str(text: &str) -> Result<Self, ChoreFailure> {
        let names = Self::NAMED.map(|(_, name)| name);
        Self::NAMED
            .into_iter()
            .find_map(|(part, name)| (name == text).then_some(part))
            .ok_or_else(|| {
                ChoreFailure::Usage(format!("no part {text:?}; known: {}", names.join(", ")))
            })
    }
}

impl fmt::Display for NeedGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMED.into_iter().find(|(part, _)| part == self);
        f.write_str(named.map_or("?", |(_, name)| name))
    }
}
