//! Daytona, from the configuration.

use std::sync::Arc;
use std::time::Duration;

use hermetic_config::{Config, Origin};
use hermetic_daytona::{Daytona, DiskWish, Patience};
use hermetic_sandbox::Backend;
use hermetic_types::{InstallationId, Secret};

use super::Caller;
use crate::Failure;

/// Who only looks does not wait for a service that is away.
const GLANCE: Duration = Duration::from_secs(5);

pub(super) fn daytona(
    config: &Config,
    installation: &InstallationId,
    caller: Caller,
) -> Result<Arc<dyn Backend>, Failure> {
    let settings = &config.terminal().daytona;
    let key = key(config)?;
    let written = config.origin("terminal.container_disk");
    let mut patience = Patience::default();
    if matches!(caller, Caller::Onlooker) {
        patience.requests = GLANCE;
    }
    let daytona = Daytona::open(hermetic_daytona::Config {
        key,
        url: settings.api_url.clone(),
        organisation: settings.organization.clone(),
        target: settings.target.clone(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        disk: match written.is_some_and(Origin::is_written) {
            true => DiskWish::Written,
            false => DiskWish::Default,
        },
        patience,
    })?;
    Ok(Arc::new(daytona))
}

pub(super) fn key(config: &Config) -> Result<Secret, Failure> {
    config.terminal().daytona.api_key.clone().ok_or_else(|| {
        Failure::new(
            "there is no key for Daytona",
            "write DAYTONA_API_KEY into .env; Daytona's dashboard makes keys",
        )
    })
}
