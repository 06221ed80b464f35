//! What each judged flag changes in the container that is asked for.

use bollard::models::{
    ContainerCreateBody, DeviceMapping, DeviceRequest, HostConfig, ResourcesUlimits,
};

use super::Flag;
use crate::label;

/// Options of a tmpfs that give nothing away.
const TMPFS: [&str; 8] = [
    "rw", "ro", "exec", "noexec", "nosuid", "nodev", "size", "mode",
];

/// Whether the value can be applied at all.
pub(super) fn is_good(flag: Flag, value: &str) -> bool {
    match flag {
        Flag::Label => !value.is_empty() && !value.starts_with(label::PREFIX),
        Flag::Env => value
            .split_once('=')
            .is_some_and(|(name, _)| !name.is_empty()),
        Flag::ShmSize | Flag::MemoryReservation => bytes(value).is_some(),
        Flag::BlkioWeight => value.parse::<u16>().is_ok(),
        Flag::CpuShares | Flag::StopTimeout => value.parse::<u32>().is_ok(),
        Flag::Tmpfs => is_good_tmpfs(value),
        Flag::Workdir => value.starts_with('/'),
        Flag::Sysctl => value.contains('='),
        Flag::Ulimit => ulimit(value).is_some(),
        Flag::Gpus => value == "all" || value.parse::<u16>().is_ok(),
        Flag::Init | Flag::Privileged => matches!(value, "true" | "false"),
        _ => !value.is_empty(),
    }
}

pub(super) fn apply(flag: Flag, value: &str, body: &mut ContainerCreateBody) {
    let text = || value.to_owned();
    match flag {
        Flag::Domain => body.domainname = Some(text()),
        Flag::Env => body.env.get_or_insert_default().push(text()),
        Flag::Hostname => body.hostname = Some(text()),
        Flag::Label => {
            let (name, value) = value.split_once('=').unwrap_or((value, ""));
            let labels = body.labels.get_or_insert_default();
            labels.insert(name.to_owned(), value.to_owned());
        }
        Flag::StopTimeout => body.stop_timeout = value.parse().ok(),
        Flag::User => body.user = Some(text()),
        Flag::Workdir => body.working_dir = Some(text()),
        // The warden is the first process and reaps; all capabilities are dropped as it is.
        Flag::Init | Flag::CapDrop => {}
        _ => apply_to_host(flag, value, body.host_config.get_or_insert_default()),
    }
}

fn apply_to_host(flag: Flag, value: &str, host: &mut HostConfig) {
    let text = || value.to_owned();
    let push = |list: &mut Option<Vec<String>>| list.get_or_insert_default().push(value.to_owned());
    match flag {
        Flag::AddHost => push(&mut host.extra_hosts),
        Flag::BlkioWeight => host.blkio_weight = value.parse().ok(),
        Flag::CapAdd => push(&mut host.cap_add),
        Flag::CpuShares => host.cpu_shares = value.parse().ok(),
        Flag::CpusetCpus => host.cpuset_cpus = Some(text()),
        Flag::CpusetMems => host.cpuset_mems = Some(text()),
        Flag::Device => host.devices.get_or_insert_default().push(device(value)),
        Flag::DeviceRule => push(&mut host.device_cgroup_rules),
        Flag::Dns => host.dns = Some(vec![text()]),
        Flag::DnsSearch => host.dns_search = Some(vec![text()]),
        Flag::Gpus => host.device_requests = Some(vec![gpus(value)]),
        Flag::GroupAdd => push(&mut host.group_add),
        Flag::Ipc => host.ipc_mode = Some(text()),
        Flag::MemoryReservation => host.memory_reservation = bytes(value),
        Flag::Network => {
            host.network_mode = Some(text());
            // The resolvers of that network, not the one that answers nothing.
            if value != "none" {
                (host.dns, host.dns_search) = (None, None);
            }
        }
        Flag::Pid => host.pid_mode = Some(text()),
        Flag::Privileged => host.privileged = Some(value == "true"),
        Flag::SecurityOpt => push(&mut host.security_opt),
        Flag::ShmSize => host.shm_size = bytes(value),
        Flag::Sysctl => {
            let (name, value) = value.split_once('=').unwrap_or((value, ""));
            let sysctls = host.sysctls.get_or_insert_default();
            sysctls.insert(name.to_owned(), value.to_owned());
        }
        Flag::Tmpfs => {
            let (path, options) = value.split_once(':').unwrap_or((value, ""));
            let mounts = host.tmpfs.get_or_insert_default();
            mounts.insert(path.to_owned(), options.to_owned());
        }
        Flag::Ulimit => host.ulimits.get_or_insert_default().extend(ulimit(value)),
        Flag::Userns => host.userns_mode = Some(text()),
        Flag::Uts => host.uts_mode = Some(text()),
        Flag::CapDrop
        | Flag::Domain
        | Flag::Env
        | Flag::Hostname
        | Flag::Init
        | Flag::Label
        | Flag::StopTimeout
        | Flag::User
        | Flag::Workdir => {}
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
