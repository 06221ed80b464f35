//! `docker_extra_args`: words of `docker run` that do not weaken the seal.
//!
//! A table says what each flag would do. The harmless ones are applied. One that weakens the seal
//! is refused with its reason, unless the operator named it as a risk he accepts. What stands in no
//! table is refused, because nobody has thought about it.

use bollard::models::ContainerCreateBody;
use thiserror::Error;

mod apply;

/// Flags that were judged, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra(Vec<(Flag, String)>);

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
enum Flag {
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
enum Judgement {
    Harmless,
    Weakens(&'static str),
}

const HOST_SPACE: &str = "it shares a namespace with the host or with another container";

/// Every name, what it is, and whether it weakens the seal.
const FLAGS: [(&[&str], Flag, Judgement); 33] = {
    use Judgement::{Harmless, Weakens};
    [
        (&["--add-host"], Flag::AddHost, Harmless),
        (&["--blkio-weight"], Flag::BlkioWeight, Harmless),
        (
            &["--cap-add"],
            Flag::CapAdd,
            Weakens("a capability is a way out"),
        ),
        (&["--cap-drop"], Flag::CapDrop, Harmless),
        (&["--cpu-shares", "-c"], Flag::CpuShares, Harmless),
        (&["--cpuset-cpus"], Flag::CpusetCpus, Harmless),
        (&["--cpuset-mems"], Flag::CpusetMems, Harmless),
        (
            &["--device"],
            Flag::Device,
            Weakens("a device of the host's is reachable from inside"),
        ),
        (
            &["--device-cgroup-rule"],
            Flag::DeviceRule,
            Weakens("devices of the host's are reachable from inside"),
        ),
        (&["--dns"], Flag::Dns, Harmless),
        (&["--dns-search"], Flag::DnsSearch, Harmless),
        (&["--domainname"], Flag::Domain, Harmless),
        (&["--env", "-e"], Flag::Env, Harmless),
        (
            &["--gpus"],
            Flag::Gpus,
            Weakens("the GPU's driver runs in the host's kernel"),
        ),
        (
            &["--group-add"],
            Flag::GroupAdd,
            Weakens("files of that group on the host are readable"),
        ),
        (&["--hostname", "-h"], Flag::Hostname, Harmless),
        (&["--init"], Flag::Init, Harmless),
        (&["--ipc"], Flag::Ipc, Weakens(HOST_SPACE)),
        (&["--label", "-l"], Flag::Label, Harmless),
        (&["--memory-reservation"], Flag::MemoryReservation, Harmless),
        (
            &["--network", "--net"],
            Flag::Network,
            Weakens("bytes would leave past the proxy"),
        ),
        (&["--pid"], Flag::Pid, Weakens(HOST_SPACE)),
        (
            &["--privileged"],
            Flag::Privileged,
            Weakens("there is no seal left at all"),
        ),
        (
            &["--security-opt"],
            Flag::SecurityOpt,
            Weakens("it takes a layer of the seal away"),
        ),
        (&["--shm-size"], Flag::ShmSize, Harmless),
        (&["--stop-timeout"], Flag::StopTimeout, Harmless),
        (
            &["--sysctl"],
            Flag::Sysctl,
            Weakens("it changes the kernel's own settings"),
        ),
        (&["--tmpfs"], Flag::Tmpfs, Harmless),
        (&["--ulimit"], Flag::Ulimit, Weakens("it can lift a bound")),
        (&["--user", "-u"], Flag::User, Harmless),
        (&["--userns"], Flag::Userns, Weakens(HOST_SPACE)),
        (&["--uts"], Flag::Uts, Weakens(HOST_SPACE)),
        (&["--workdir", "-w"], Flag::Workdir, Harmless),
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
const SWITCHES: [Flag; 2] = [Flag::Init, Flag::Privileged];

impl Extra {
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
            if let Judgement::Weakens(why) = judgement
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

fn find(name: &str) -> Result<(Flag, Judgement), ExtraError> {
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

/// Values of a dangerous flag that only ask for what holds anyway.
fn is_no_risk(flag: Flag, value: &str) -> bool {
    match flag {
        Flag::SecurityOpt => matches!(value, "no-new-privileges" | "no-new-privileges:true"),
        Flag::Network => value == "none",
        Flag::Ipc => matches!(value, "private" | "none"),
        Flag::Privileged => value == "false",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str], accepted: &[&str]) -> Result<Extra, ExtraError> {
        let owned = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        Extra::parse(&owned(words), &owned(accepted))
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
