//! `docker_extra_args`: words of `docker run` that do not weaken the seal.
//!
//! A table says what each flag would do. The harmless ones are applied. One that weakens the seal
//! is refused with its reason, unless the operator named it as a risk he accepts. What stands in no
//! table is refused, because nobody has thought about it.

use bollard::models::ContainerCreateBody;
use thiserror::Error;

use crate::archive::ContainerUserKind;
use crate::user::whose;

mod apply;

/// Flags that were judged, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraFlags(Vec<(DockerFlag, String)>);

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ExtraError {
    #[error("docker_extra_args: {flag} is refused: {why}")]
    Weakens { flag: String, why: &'static str },
    #[error("docker_extra_args: {flag} is refused: {instead}")]
    Elsewhere { flag: String, instead: &'static str },
    #[error("docker_extra_args: {flag} is not known here, so it is refused")]
    Unknown { flag: String },
    #[error("docker_extra_args: {flag} needs a value")]
    NoValue { flag: String },
    #[error("docker_extra_args: {value:?} is no value for {flag}")]
    BadValue { flag: String, value: String },
    #[error("docker_extra_args: {word:?} is no flag")]
    NoFlag { word: String },
}

impl ExtraError {
    /// What a person does about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Weakens { flag, .. } => format!(
                "leave it out; to take the risk, add {flag:?} to terminal.docker_accept_risks"
            ),
            _ => "leave it out".to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DockerFlag {
    AddHost,
    BlkioWeight,
    CapAdd,
    CapDrop,
    CpuShares,
    CpusetCpus,
    CpusetMems,
    Device,
    DeviceRule,
    Dns,
    DnsSearch,
    Domain,
    Env,
    Gpus,
    GroupAdd,
    Hostname,
    Init,
    Ipc,
    Label,
    MemoryReservation,
    Network,
    Pid,
    Privileged,
    SecurityOpt,
    ShmSize,
    StopTimeout,
    Sysctl,
    Tmpfs,
    Ulimit,
    User,
    Userns,
    Uts,
    Workdir,
}

#[derive(Clone, Copy)]
enum FlagJudgement {
    Harmless,
    Weakens(&'static str),
}

const HOST_SPACE: &str = "it shares a namespace with the host or with another container";

/// Every name, what it is, and whether it weakens the seal.
const FLAGS: [(&[&str], DockerFlag, FlagJudgement); 33] = {
    use FlagJudgement::{Harmless, Weakens};
    [
        (&["--add-host"], DockerFlag::AddHost, Harmless),
        (&["--blkio-weight"], DockerFlag::BlkioWeight, Harmless),
        (
            &["--cap-add"],
            DockerFlag::CapAdd,
            Weakens("a capability is a way out"),
        ),
        (&["--cap-drop"], DockerFlag::CapDrop, Harmless),
        (&["--cpu-shares", "-c"], DockerFlag::CpuShares, Harmless),
        (&["--cpuset-cpus"], DockerFlag::CpusetCpus, Harmless),
        (&["--cpuset-mems"], DockerFlag::CpusetMems, Harmless),
        (
            &["--device"],
            DockerFlag::Device,
            Weakens("a device of the host's is reachable from inside"),
        ),
        (
            &["--device-cgroup-rule"],
            DockerFlag::DeviceRule,
            Weakens("devices of the host's are reachable from inside"),
        ),
        (&["--dns"], DockerFlag::Dns, Harmless),
        (&["--dns-search"], DockerFlag::DnsSearch, Harmless),
        (&["--domainname"], DockerFlag::Domain, Harmless),
        (&["--env", "-e"], DockerFlag::Env, Harmless),
        (
            &["--gpus"],
            DockerFlag::Gpus,
            Weakens("the GPU's driver runs in the host's kernel"),
        ),
        (
            &["--group-add"],
            DockerFlag::GroupAdd,
            Weakens("files of that group on the host are readable"),
        ),
        (&["--hostname", "-h"], DockerFlag::Hostname, Harmless),
        (&["--init"], DockerFlag::Init, Harmless),
        (&["--ipc"], DockerFlag::Ipc, Weakens(HOST_SPACE)),
        (&["--label", "-l"], DockerFlag::Label, Harmless),
        (
            &["--memory-reservation"],
            DockerFlag::MemoryReservation,
            Harmless,
        ),
        (
            &["--network", "--net"],
            DockerFlag::Network,
            Weakens("bytes would leave past the proxy"),
        ),
        (&["--pid"], DockerFlag::Pid, Weakens(HOST_SPACE)),
        (
            &["--privileged"],
            DockerFlag::Privileged,
            Weakens("there is no seal left at all"),
        ),
        (
            &["--security-opt"],
            DockerFlag::SecurityOpt,
            Weakens("it takes a layer of the seal away"),
        ),
        (&["--shm-size"], DockerFlag::ShmSize, Harmless),
        (&["--stop-timeout"], DockerFlag::StopTimeout, Harmless),
        (
            &["--sysctl"],
            DockerFlag::Sysctl,
            Weakens("it changes the kernel's own settings"),
        ),
        (&["--tmpfs"], DockerFlag::Tmpfs, Harmless),
        (
            &["--ulimit"],
            DockerFlag::Ulimit,
            Weakens("it can lift a bound"),
        ),
        (
            &["--user", "-u"],
            DockerFlag::User,
            Weakens(
                "root inside is root outside, and terminal.docker_user keeps a container from it",
            ),
        ),
        (&["--userns"], DockerFlag::Userns, Weakens(HOST_SPACE)),
        (&["--uts"], DockerFlag::Uts, Weakens(HOST_SPACE)),
        (&["--workdir", "-w"], DockerFlag::Workdir, Harmless),
    ]
};

/// Flags with a place of their own in the configuration, or that are ours alone.
const ELSEWHERE: [(&[&str], &str); 10] = [
    (
        &["--memory", "-m", "--memory-swap"],
        "it is terminal.container_memory",
    ),
    (
        &["--cpus", "--cpu-quota", "--cpu-period"],
        "it is terminal.container_cpu",
    ),
    (&["--pids-limit"], "it is terminal.container_pids"),
    (&["--storage-opt"], "it is terminal.container_disk"),
    (
        &["--volume", "-v", "--mount", "--volumes-from"],
        "it is terminal.docker_volumes",
    ),
    (&["--env-file"], "it is terminal.docker_env"),
    (&["--runtime"], "it is terminal.docker_runtime"),
    (&["--read-only"], "it is terminal.docker_read_only"),
    (
        &["--publish", "-p", "--publish-all", "-P", "--expose"],
        "a sandbox is not reached by ports",
    ),
    (
        &[
            "--name",
            "--rm",
            "--detach",
            "-d",
            "--interactive",
            "-i",
            "--tty",
            "-t",
            "-it",
            "--entrypoint",
            "--restart",
            "--log-driver",
            "--cgroup-parent",
            "--cgroupns",
        ],
        "how a sandbox lives is hermetic's own",
    ),
];

/// Flags that stand alone.
const SWITCHES: [DockerFlag; 2] = [DockerFlag::Init, DockerFlag::Privileged];

impl ExtraFlags {
    /// `accepted` are flags, as written, whose risk the operator takes.
    pub fn parse(words: &[String], accepted: &[String]) -> Result<Self, ExtraError> {
        let mut words = words.iter();
        let mut flags = Vec::new();
        while let Some(word) = words.next() {
            let (name, given) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let (flag, judgement) = find(name)?;
            let value = match given {
                Some(value) => value,
                None if SWITCHES.contains(&flag) => "true".to_owned(),
                None => words.next().cloned().ok_or_else(|| ExtraError::NoValue {
                    flag: name.to_owned(),
                })?,
            };
            if let FlagJudgement::Weakens(why) = judgement
                && !accepted.iter().any(|risk| risk == name)
                && !is_no_risk(flag, &value)
            {
                return Err(ExtraError::Weakens {
                    flag: name.to_owned(),
                    why,
                });
            }
            if !apply::is_good(flag, &value) {
                return Err(ExtraError::BadValue {
                    flag: name.to_owned(),
                    value,
                });
            }
            flags.push((flag, value));
        }
        Ok(Self(flags))
    }

    pub(crate) fn apply(&self, body: &mut ContainerCreateBody) {
        for (flag, value) in &self.0 {
            apply::apply(*flag, value, body);
        }
    }
}

fn find(name: &str) -> Result<(DockerFlag, FlagJudgement), ExtraError> {
    let flag = name.to_owned();
    if !name.starts_with('-') {
        return Err(ExtraError::NoFlag { word: flag });
    }
    let known = FLAGS.iter().find(|(names, ..)| names.contains(&name));
    if let Some((_, flag, judgement)) = known {
        return Ok((*flag, *judgement));
    }
    let elsewhere = ELSEWHERE.iter().find(|(names, _)| names.contains(&name));
    Err(match elsewhere {
        Some((_, instead)) => ExtraError::Elsewhere { flag, instead },
        None => ExtraError::Unknown { flag },
    })
}

/// Whether the user is not root, as far as the words tell. The engine reads numbers with a sign too.
fn is_somebody(user: &str) -> bool {
    let plain = !user.starts_with(['+', '-']);
    plain && whose(Some(user)) == ContainerUserKind::SomebodyElse
}

/// Values of a dangerous flag that only ask for what holds anyway.
fn is_no_risk(flag: DockerFlag, value: &str) -> bool {
    match flag {
        DockerFlag::SecurityOpt => matches!(value, "no-new-privileges" | "no-new-privileges:true"),
        DockerFlag::Network => value == "none",
        DockerFlag::Ipc => matches!(value, "private" | "none"),
        DockerFlag::Privileged => value == "false",
        DockerFlag::User => is_somebody(value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str], accepted: &[&str]) -> Result<ExtraFlags, ExtraError> {
        let owned = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        ExtraFlags::parse(&owned(words), &owned(accepted))
    }

    #[test]
    fn harmless_flags_are_applied() {
        let extra = parse(
            &[
                "--label",
                "team=blue",
                "-e",
                "A=b=c",
                "--hostname=box",
                "--shm-size",
                "128m",
                "--init",
                "--cap-drop=ALL",
                "--security-opt",
                "no-new-privileges",
                "--network=none",
                "--user=1000:0",
                "-u",
                "agent",
            ],
            &[],
        )
        .unwrap();
        let mut body = ContainerCreateBody::default();
        extra.apply(&mut body);
        assert_eq!(body.hostname.as_deref(), Some("box"));
        assert_eq!(body.env, Some(vec!["A=b=c".to_owned()]));
        assert_eq!(body.labels.unwrap()["team"], "blue");
        assert_eq!(body.host_config.unwrap().shm_size, Some(128 << 20));
    }

    #[test]
    fn what_weakens_the_seal_is_refused_with_its_reason() {
        for words in [
            &["--privileged"][..],
            &["--privileged=true"],
            &["--cap-add", "SYS_ADMIN"],
            &["--cap-add=ALL"],
            &["--network", "host"],
            &["--net=bridge"],
            &["--pid=host"],
            &["--ipc", "host"],
            &["--uts=host"],
            &["--userns=host"],
            &["--device", "/dev/kvm"],
            &["--security-opt", "seccomp=unconfined"],
            &["--security-opt=apparmor=unconfined"],
            &["--security-opt=no-new-privileges:false"],
            &["--sysctl", "net.ipv4.ip_forward=1"],
            &["--group-add", "docker"],
            &["--ulimit", "nofile=1000000"],
            &["--gpus", "all"],
            &["--device-cgroup-rule=a *:* rwm"],
            &["--user", "0"],
            &["--user=root"],
            &["--user=00:1000"],
            &["--user=+0"],
            &["-u", ":5"],
        ] {
            let refused = parse(words, &[]);
            assert!(
                matches!(refused, Err(ExtraError::Weakens { .. })),
                "{words:?}: {refused:?}"
            );
            let name = words[0].split('=').next().unwrap();
            assert!(parse(words, &[name]).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn what_has_another_place_or_none_is_refused() {
        for words in [
            &["-v", "/:/host"][..],
            &["--mount", "type=bind,src=/,dst=/host"],
            &["--memory=100g"],
            &["--pids-limit", "-1"],
            &["--runtime=runc"],
            &["--entrypoint", "sh"],
            &["--restart=always"],
            &["-p", "80:80"],
            &["--cgroup-parent=/"],
            &["--name", "postgres"],
            &["--no-such-flag"],
            &["-itd"],
            &["debian", "sh"],
            &["--label"],
            &["--label", "hermetic.installation=other"],
            &["--shm-size", "lots"],
            &["--env", "PATH"],
            &["--tmpfs", "relative"],
            &["--tmpfs", "/x:suid"],
        ] {
            assert!(
                parse(words, &["--mount", "-v", "--name"]).is_err(),
                "{words:?} was taken"
            );
        }
    }
}
