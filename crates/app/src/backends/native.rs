//! The native backend, and what must hold before it is opened.

use std::sync::Arc;

use hermetic_config::Config;
use hermetic_native::{EarlyStart, NativeBackend, RequiredLayer};
use hermetic_sandbox::{Backend, risk_of_showing};
use hermetic_types::{InstallationId, SharedClock};

use crate::{AppFailure, egress};

pub(super) fn native(
    config: &Config,
    installation: &InstallationId,
    early: EarlyStart,
    clock: &SharedClock,
) -> Result<Arc<dyn Backend>, AppFailure> {
    let settings = native_config(config, installation, clock)?;
    Ok(Arc::new(NativeBackend::open_starting(settings, early)?))
}

pub(super) fn native_config(
    config: &Config,
    installation: &InstallationId,
    clock: &SharedClock,
) -> Result<hermetic_native::NativeConfig, AppFailure> {
    let require = native_settings(config)?;
    Ok(hermetic_native::NativeConfig {
        state: config.home().state(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        require,
        authority: egress::authority(config, clock)?.map(|ours| ours.certificate().to_owned()),
        total: hermetic_native::TotalLimits {
            memory_bytes: config.terminal().native.total_memory_bytes,
            processes: config.terminal().native.total_processes,
        },
    })
}

/// The layers that must hold, if what is written about native sandboxes can be taken.
pub(crate) fn native_settings(config: &Config) -> Result<Vec<RequiredLayer>, AppFailure> {
    let native = &config.terminal().native;
    for mount in &native.mounts {
        let accepted = native.accept_risks.contains(&mount.source);
        // A link may lead where nobody looked.
        let real = mount.source.canonicalize().ok();
        let risk = [Some(&mount.source), real.as_ref()]
            .into_iter()
            .flatten()
            .find_map(|source| risk_of_showing(source, mount.writable));
        if let Some(why) = risk.filter(|_| !accepted) {
            let source = mount.source.display();
            return Err(AppFailure::new(
                format!("terminal.native_mounts: {source} is not shown inside: {why}"),
                format!(
                    "take it out; to take the risk, add {source} to terminal.native_accept_risks"
                ),
            ));
        }
    }
    native.require.iter().map(|name| demand(name)).collect()
}

fn demand(name: &str) -> Result<RequiredLayer, AppFailure> {
    RequiredLayer::ALL
        .into_iter()
        .find(|demand| demand.name() == name)
        .ok_or_else(|| {
            let known: Vec<_> = RequiredLayer::ALL
                .iter()
                .map(|demand| demand.name())
                .collect();
            AppFailure::new(
                format!("terminal.native_require names no known layer: {name:?}"),
                format!("known: {}", known.join(", ")),
            )
        })
}
