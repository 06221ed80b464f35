//! What each judged flag changes in the container that is asked for.

use bollard::models::{
    ContainerCreateBody, DeviceMapping, DeviceRequest, HostConfig, ResourcesUlimits,
};

use super::DockerFlag;
use crate::label;

/// Options of a tmpfs that give nothing away.
const TMPFS: [&str; 8] = [
    "rw", "ro", "exec", "noexec", "nosuid", "nodev", "size", "mode",
];

/// Whether the value can be applied at all.
pub(super) fn is_good(flag: DockerFlag, value: &str) -> bool {
    match flag {
        DockerFlag::Label => !value.is_empty() && !value.starts_with(label::PREFIX),
        DockerFlag::Env => value
            .split_once('=')
            .is_some_and(|(name, _)| !name.is_empty()),
        DockerFlag::ShmSize | DockerFlag::MemoryReservation => bytes(value).is_some(),
        DockerFlag::BlkioWeight => value.parse::<u16>().is_ok(),
        DockerFlag::CpuShares | DockerFlag::StopTimeout => value.parse::<u32>().is_ok(),
        DockerFlag::Tmpfs => is_good_tmpfs(value),
        DockerFlag::Workdir => value.starts_with('/'),
        DockerFlag::Sysctl => value.contains('='),
        DockerFlag::Ulimit => ulimit(value).is_some(),
        DockerFlag::Gpus => value == "all" || value.parse::<u16>().is_ok(),
        DockerFlag::Init | DockerFlag::Privileged => matches!(value, "true" | "false"),
        _ => !value.is_empty(),
    }
}

pub(super) fn apply(flag: DockerFlag, value: &str, body: &mut ContainerCreateBody) {
    let text = || value.to_owned();
    match flag {
        DockerFlag::Domain => body.domainname = Some(text()),
        DockerFlag::Env => body.env.get_or_insert_default().push(text()),
        DockerFlag::Hostname => body.hostname = Some(text()),
        DockerFlag::Label => {
            let (name, value) = value.split_once('=').unwrap_or((value, ""));
            let labels = body.labels.get_or_insert_default();
            labels.insert(name.to_owned(), value.to_owned());
        }
        DockerFlag::StopTimeout => body.stop_timeout = value.parse().ok(),
        DockerFlag::User => body.user = Some(text()),
        DockerFlag::Workdir => body.working_dir = Some(text()),
        // The warden is the first process and reaps; all capabilities are dropped as it is.
        DockerFlag::Init | DockerFlag::CapDrop => {}
        _ => apply_to_host(flag, value, body.host_config.get_or_insert_default()),
    }
}

fn apply_to_host(flag: DockerFlag, value: &str, host: &mut HostConfig) {
    let text = || value.to_owned();
    let push = |list: &mut Option<Vec<String>>| list.get_or_insert_default().push(value.to_owned());
    match flag {
        DockerFlag::AddHost => push(&mut host.extra_hosts),
        DockerFlag::BlkioWeight => host.blkio_weight = value.parse().ok(),
        DockerFlag::CapAdd => push(&mut host.cap_add),
        DockerFlag::CpuShares => host.cpu_shares = value.parse().ok(),
        DockerFlag::CpusetCpus => host.cpuset_cpus = Some(text()),
        DockerFlag::CpusetMems => host.cpuset_mems = Some(text()),
        DockerFlag::Device => host.devices.get_or_insert_default().push(device(value)),
        DockerFlag::DeviceRule => push(&mut host.device_cgroup_rules),
        DockerFlag::Dns => host.dns = Some(vec![text()]),
        DockerFlag::DnsSearch => host.dns_search = Some(vec![text()]),
        DockerFlag::Gpus => host.device_requests = Some(vec![gpus(value)]),
        DockerFlag::GroupAdd => push(&mut host.group_add),
        DockerFlag::Ipc => host.ipc_mode = Some(text()),
        DockerFlag::MemoryReservation => host.memory_reservation = bytes(value),
        DockerFlag::Network => {
            host.network_mode = Some(text());
            // The resolvers of that network, not the one that answers nothing.
            if value != "none" {
                (host.dns, host.dns_search) = (None, None);
            }
        }
        DockerFlag::Pid => host.pid_mode = Some(text()),
        DockerFlag::Privileged => host.privileged = Some(value == "true"),
        DockerFlag::SecurityOpt => push(&mut host.security_opt),
        DockerFlag::ShmSize => host.shm_size = bytes(value),
        DockerFlag::Sysctl => {
            let (name, value) = value.split_once('=').unwrap_or((value, ""));
            let sysctls = host.sysctls.get_or_insert_default();
            sysctls.insert(name.to_owned(), value.to_owned());
        }
        DockerFlag::Tmpfs => {
            let (path, options) = value.split_once(':').unwrap_or((value, ""));
            let mounts = host.tmpfs.get_or_insert_default();
            mounts.insert(path.to_owned(), options.to_owned());
        }
        DockerFlag::Ulimit => host.ulimits.get_or_insert_default().extend(ulimit(value)),
        DockerFlag::Userns => host.userns_mode = Some(text()),
        DockerFlag::Uts => host.uts_mode = Some(text()),
        DockerFlag::CapDrop
        | DockerFlag::Domain
        | DockerFlag::Env
        | DockerFlag::Hostname
        | DockerFlag::Init
        | DockerFlag::Label
        | DockerFlag::StopTimeout
        | DockerFlag::User
        | DockerFlag::Workdir => {}
    }
}

fn device(value: &str) -> DeviceMapping {
    let mut parts = value.split(':');
    let outside = parts.next().map(str::to_owned);
    let inside = parts.next().map(str::to_owned);
    DeviceMapping {
        path_in_container: inside.or_else(|| outside.clone()),
        path_on_host: outside,
        cgroup_permissions: Some(parts.next().unwrap_or("rwm").to_owned()),
    }
}

fn gpus(value: &str) -> DeviceRequest {
    DeviceRequest {
        count: Some(value.parse().unwrap_or(-1)),
        capabilities: Some(vec![vec!["gpu".to_owned()]]),
        ..DeviceRequest::default()
    }
}

/// `name=soft[:hard]`.
fn ulimit(value: &str) -> Option<ResourcesUlimits> {
    let (name, bounds) = value.split_once('=')?;
    let (soft, hard) = bounds.split_once(':').unwrap_or((bounds, bounds));
    Some(ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(soft.parse().ok()?),
        hard: Some(hard.parse().ok()?),
    })
}

fn is_good_tmpfs(value: &str) -> bool {
    let (path, options) = value.split_once(':').unwrap_or((value, ""));
    let known = |option: &str| TMPFS.contains(&option.split('=').next().unwrap_or_default());
    path.starts_with('/')
        && options
            .split(',')
            .all(|option| option.is_empty() || known(option))
}

/// `64m`, as docker writes sizes.
fn bytes(value: &str) -> Option<i64> {
    let value = value.to_ascii_lowercase();
    let value = value.strip_suffix('b').unwrap_or(&value);
    let (digits, unit) = match value.chars().last()? {
        'k' => (&value[..value.len() - 1], 1 << 10),
        'm' => (&value[..value.len() - 1], 1 << 20),
        'g' => (&value[..value.len() - 1], 1 << 30),
        _ => (value, 1_i64),
    };
    let count: i64 = digits.parse().ok()?;
    (count > 0).then(|| count.checked_mul(unit)).flatten()
}
