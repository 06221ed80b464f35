//! From a spec to what Modal is asked to make: every layer of the seal in one place.

use std::time::Duration;

use hermetic_sandbox::{BackendError, SandboxLifeline, SandboxSpec, SystemView};
use hermetic_types::SandboxLimits;
use thiserror::Error;

use crate::label;
use crate::wire::{
    NetworkAccess, NetworkAccessType, Resources, Sandbox, SecretSource, Source, StringMap,
};

/// What a sandbox reaches by itself, besides the way through the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutboundAccess {
    #[default]
    Nothing,
    /// The operator wrote it, and was warned: Modal lets these through, and nobody here sees it.
    Named {
        networks: Vec<String>,
        names: Vec<String>,
    },
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{text:?} is neither a network such as 192.0.2.0/24 nor a name such as *.example.org")]
pub struct OutboundError {
    text: String,
}

/// The folder of ours, and in it one for each start: a restored one has an earlier warden's.
const HOME: &str = "/.hermetic";

/// Without a sign of life from the gateway for so long, a link counts as gone.
pub(crate) const LEASH: Duration = Duration::from_secs(60);
/// How long a tied sandbox waits for its creator.
const MODAL_CREATOR_TIMEOUT: Duration = Duration::from_secs(60);
/// Modal allows no longer life than this.
const LONGEST_LIFE: u64 = 24 * 3600;
/// What Modal gives at least.
const LEAST_MILLI_CPU: u32 = 125;
const LEAST_MEGABYTES: u32 = 128;

impl OutboundAccess {
    pub fn parse(texts: &[String]) -> Result<Self, OutboundError> {
        let (mut networks, mut names) = (Vec::new(), Vec::new());
        for text in texts {
            if is_network(text) {
                networks.push(text.clone());
            } else if is_name(text) {
                names.push(text.clone());
            } else {
                return Err(OutboundError { text: text.clone() });
            }
        }
        Ok(match texts {
            [] => Self::Nothing,
            _ => Self::Named { networks, names },
        })
    }

    fn access(&self) -> NetworkAccess {
        match self {
            Self::Nothing => NetworkAccess {
                network_access_type: NetworkAccessType::Blocked.into(),
                ..NetworkAccess::default()
            },
            Self::Named { networks, names } => NetworkAccess {
                network_access_type: NetworkAccessType::Allowlist.into(),
                allowed_cidrs: networks.clone(),
                allowed_domains: names.clone(),
            },
        }
    }
}

/// The image's name, or why there cannot be such a sandbox.
pub(crate) fn check(spec: &SandboxSpec) -> Result<&str, BackendError> {
    let refused = |what: String, why: &str| BackendError::Refused {
        what,
        why: why.to_owned(),
    };
    if let Some(mount) = spec.mounts.first() {
        return Err(refused(
            format!("showing {} inside", mount.source.display()),
            "the sandbox is at Modal, which does not have that folder",
        ));
    }
    let bad = |(name, value): &(&String, &String)| {
        name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
    };
    if let Some((name, _)) = spec.env.iter().find(bad) {
        return Err(refused(
            format!("the variable {name:?}"),
            "a name holds no '=' and neither side a NUL byte",
        ));
    }
    match &spec.system {
        SystemView::Image(image) => Ok(image),
        SystemView::Host | SystemView::Rootfs(_) => Err(refused(
            "a sandbox of this machine's files".to_owned(),
            "Modal runs images; write terminal.modal_image",
        )),
    }
}

pub(crate) fn definition(
    spec: &SandboxSpec,
    image: String,
    start: &str,
    program: &[u8],
    outbound: &OutboundAccess,
) -> Sandbox {
    Sandbox {
        entrypoint_args: ["sh", "-c", &entry(spec, start, program.len())]
            .map(str::to_owned)
            .to_vec(),
        image_id: image,
        resources: Some(resources(&spec.limits)),
        timeout_secs: seconds(whole_life(spec)),
        idle_timeout_secs: Some(seconds(idle_life(spec))),
        network_access: Some(outbound.access()),
        name: Some(label::name(&spec.id)),
    }
}

/// The whole environment, besides what the image and Modal itself set.
pub(crate) fn variables(spec: &SandboxSpec) -> Vec<SecretSource> {
    let contents = spec.env.clone().into_iter().collect();
    vec![SecretSource {
        source: Some(Source::Env(StringMap { contents })),
    }]
}

/// What the exec that is the link runs: it waits for the warden to be placed and to listen.
pub(crate) fn connect(start: &str) -> Vec<String> {
    let (warden, socket) = (warden(start), socket(start));
    let leash = LEASH.as_secs();
    let text = format!(
        "n=0; until [ -x {warden} ]; do n=$((n+1)); [ $n -lt 600 ] || exit 69; \
         sleep 0.1 2>/dev/null || sleep 1; done; \
         exec {warden} connect --wait 60 --leash {leash} {socket}"
    );
    vec!["sh".to_owned(), "-c".to_owned(), text]
}

/// The program of the sandbox: takes the warden from its stdin, checks that it is whole, and becomes
/// it. When the warden ends, so does the sandbox.
fn entry(spec: &SandboxSpec, start: &str, size: usize) -> String {
    let (warden, socket) = (warden(start), socket(start));
    let folder = format!("{HOME}/{start}");
    let alone = match spec.lifeline {
        SandboxLifeline::Ledger => spec.lifetime,
        // It ends with its creator's link; this is for one who died before he had one.
        SandboxLifeline::Creator => spec.lifetime.min(MODAL_CREATOR_TIMEOUT),
    };
    let lifetime = alone.as_secs().max(1);
    let tied = match spec.lifeline {
        SandboxLifeline::Creator => " --tied",
        SandboxLifeline::Ledger => "",
    };
    let files = spec.limits.open_files;
    format!(
        "set -e; umask 022; rm -rf {HOME}; mkdir -p {folder} /workspace; chmod 700 {HOME}; \
         head -c {size} > {warden}.part; [ $(wc -c < {warden}.part) -eq {size} ]; \
         chmod 555 {warden}.part; mv {warden}.part {warden}; \
         ulimit -c 0; ulimit -n {files} 2>/dev/null || true; cd /workspace; \
         exec {warden} sealed serve --listen {socket} --lifetime {lifetime}{tied} \
         </dev/null >/dev/null 2>&1"
    )
}

fn warden(start: &str) -> String {
    format!("{HOME}/{start}/warden")
}

fn socket(start: &str) -> String {
    format!("{HOME}/{start}/socket")
}

/// Nobody connected and no warden that would see to it: Modal ends it all the same.
fn idle_life(spec: &SandboxSpec) -> Duration {
    spec.lifetime + 2 * LEASH
}

/// However much it is used. A day of work at the default, and in proportion where less is allowed:
/// whatever else fails, the bill ends there.
fn whole_life(spec: &SandboxSpec) -> Duration {
    let longest = Duration::from_secs(LONGEST_LIFE);
    spec.lifetime
        .saturating_mul(24)
        .clamp(idle_life(spec).min(longest), longest)
}

fn resources(limits: &SandboxLimits) -> Resources {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast saturates, and the figure is a number of CPUs"
    )]
    let milli_cpu = ((limits.cpu * 1000.0) as u32).max(LEAST_MILLI_CPU);
    let megabytes = u32::try_from(limits.memory_bytes >> 20).unwrap_or(u32::MAX);
    let megabytes = megabytes.max(LEAST_MEGABYTES);
    Resources {
        memory_mb: megabytes,
        milli_cpu,
        memory_mb_max: megabytes,
        milli_cpu_max: milli_cpu,
    }
}

fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse().is_ok_and(|bits: u8| bits <= most)
}

fn is_name(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    name.len() <= 253
        && name.contains('.')
        && name.split('.').all(is_label)
        && name.parse::<std::net::IpAddr>().is_err()
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
