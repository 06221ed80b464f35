//! What `gateway run` refuses, told from the configuration alone.
//!
//! Nothing is opened here: no port, no backend, no file of ours. `gateway run` asks the same before
//! it opens anything, so that `config check` and it cannot disagree.

use std::collections::BTreeSet;

use hermetic_config::{Config, Resolved};
use hermetic_types::{BackendKind, Platform};

use super::{approvals, daytona, docker, egress, modal, model, telegram, webhook};
use crate::Failure;

/// Platforms this version speaks to.
const SPOKEN: [Platform; 2] = [Platform::Telegram, Platform::Webhook];

/// Everything that keeps a gateway of this configuration from starting, on whatever machine.
pub fn refusals(config: &Config, resolved: &Resolved) -> Vec<Failure> {
    let backends = BTreeSet::from_iter(resolved.platforms.values().copied());
    let backends = backends
        .into_iter()
        .filter(|kind| *kind != resolved.backend);
    let backends = backends.chain([resolved.backend]);
    let parts = [
        model::model(config).err(),
        approvals::reviewer(config).err(),
        telegram::new(config).err(),
        webhook::new(config).err(),
        egress::check(config).err(),
    ];
    backends
        .filter_map(|kind| backend(config, kind).err())
        .chain(parts.into_iter().flatten())
        .collect()
}

/// What an operator should know although the gateway starts.
pub fn notices(config: &Config) -> Vec<String> {
    let platforms = config.platforms();
    let spoken = |name: &str| SPOKEN.iter().any(|platform| platform.name() == name);
    let mut notices: Vec<String> = platforms
        .enabled()
        .filter(|platform| !spoken(platform.name))
        .map(|platform| {
            format!(
                "{} is configured, but this version does not speak to it: nobody is answered there",
                platform.name
            )
        })
        .collect();
    if !platforms.enabled().any(|platform| spoken(platform.name)) {
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
    if platforms.allow_all_users {
        notices.push("GATEWAY_ALLOW_ALL_USERS is set: everybody may write".to_owned());
    }
    notices
}

fn backend(config: &Config, kind: BackendKind) -> Result<(), Failure> {
    match kind {
        BackendKind::Native => super::native_settings(config).map(drop),
        BackendKind::Docker => docker::check(config),
        BackendKind::Modal => modal::check(config),
        BackendKind::Daytona => daytona::key(config).map(drop),
        // Where the host is missing, the choice of the backend was refused already.
        BackendKind::Ssh | BackendKind::Singularity | BackendKind::Local => Ok(()),
    }
}
