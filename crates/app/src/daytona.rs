//! Daytona, from the configuration.

use std::sync::Arc;
use std::time::Duration;

use hermetic_config::{Config, SettingOrigin};
use hermetic_daytona::{DaytonaBackend, DaytonaTimeouts, DiskWish};
use hermetic_sandbox::Backend;
use hermetic_types::{InstallationId, Secret};

use super::BackendCaller;
use crate::AppFailure;

/// Who only looks does not wait for a service that is away.
const GLANCE: Duration = Duration::from_secs(5);

pub(super) fn daytona(
    config: &Config,
    installation: &InstallationId,
    caller: BackendCaller,
) -> Result<Arc<dyn Backend>, AppFailure> {
    let settings = &config.terminal().daytona;
    let key = key(config)?;
    let written = config.origin("terminal.container_disk");
    let mut patience = DaytonaTimeouts::default();
    if matches!(caller, BackendCaller::Onlooker) {
        patience.requests = GLANCE;
    }
    let daytona = DaytonaBackend::open(hermetic_daytona::DaytonaConfig {
        key,
        url: settings.api_url.clone(),
        organisation: settings.organization.clone(),
        target: settings.target.clone(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        disk: match written.is_some_and(SettingOrigin::is_written) {
            true => DiskWish::Written,
            false => DiskWish::Default,
        },
        patience,
    })?;
    Ok(Arc::new(daytona))
}

pub(super) fn key(config: &Config) -> Result<Secret, AppFailure> {
    config.terminal().daytona.api_key.clone().ok_or_else(|| {
        AppFailure::new(
            "there is no key for Daytona",
            "write DAYTONA_API_KEY into .env; Daytona's dashboard makes keys",
        )
    })
}
