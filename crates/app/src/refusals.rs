//! What `gateway run` refuses, told from the configuration alone.
//!
//! Nothing is opened here: no port, no backend, no file of ours. `gateway run` asks the same before
//! it opens anything, so that `config check` and it cannot disagree.

use std::collections::BTreeSet;

use hermetic_config::{Config, ResolvedBackend};
use hermetic_types::{BackendKind, SystemClock};

use super::{
    StorePlace, agents, approvals, daytona, docker, egress, modal, model, platforms, shared_work,
};
use crate::AppFailure;

/// Everything that keeps a gateway of this configuration from starting, on whatever machine.
pub fn refusals(config: &Config, resolved: &ResolvedBackend) -> Vec<AppFailure> {
    let backends = BTreeSet::from_iter(resolved.platforms.values().copied());
    let backends = backends
        .into_iter()
        .filter(|kind| *kind != resolved.backend);
    let backends = backends.chain([resolved.backend]);
    let clock = SystemClock::shared();
    let parts = [
        approvals::reviewer(config, &clock).err(),
        super::schedules(config).err(),
    ];
    backends
        .filter_map(|kind| backend(config, kind).err())
        .chain(model::refusals(config, &clock))
        .chain(parts.into_iter().flatten())
        .chain(platforms::refusals(config))
        .chain(egress::check(config).err())
        .chain(agents::refusals(config))
        .chain(StorePlace::of(config).err())
        .chain(shared_work::refusals(config, resolved))
        .collect()
}

/// What an operator should know although the gateway starts.
pub fn notices(config: &Config) -> Vec<String> {
    let configured = config.platforms();
    let mut notices: Vec<String> = configured
        .enabled()
        .filter(|platform| !platforms::speaks(platform))
        .map(|platform| {
            format!(
                "{name} is configured, but this build does not speak {name}: nobody is answered there",
                name = platform.name
            )
        })
        .collect();
    let mut enabled = configured.enabled();
    if !enabled.any(platforms::speaks) {
        notices.push(
            "no chat platform is configured; set TELEGRAM_BOT_TOKEN in .env for Telegram"
                .to_owned(),
        );
    }
    if config.model().name.is_none() {
        notices.push(
            "no model is configured, so messages are not answered; /sh works. Write model.default"
                .to_owned(),
        );
    }
    notices.extend(agents::notices(config));
    if configured.allow_all_users {
        notices.push("GATEWAY_ALLOW_ALL_USERS is set: everybody may write".to_owned());
    }
    notices
}

fn backend(config: &Config, kind: BackendKind) -> Result<(), AppFailure> {
    match kind {
        BackendKind::Native => super::backends::native_settings(config).map(drop),
        BackendKind::Docker => docker::check(config),
        BackendKind::Modal => modal::check(config),
        BackendKind::Daytona => daytona::key(config).map(drop),
        #[cfg(feature = "kubernetes")]
        BackendKind::Kubernetes => super::kubernetes::check(config),
        #[cfg(not(feature = "kubernetes"))]
        BackendKind::Kubernetes => Err(super::without_kubernetes()),
        // Where the host is missing, the choice of the backend was refused already.
        BackendKind::Ssh | BackendKind::Singularity | BackendKind::Local => Ok(()),
    }
}
