//! Modal, from the configuration.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use hermetic_config::Config;
use hermetic_modal::{ControlAddress, ModalBackend, ModalCredentials, OutboundAccess};
use hermetic_sandbox::Backend;
use hermetic_types::{BackendKind, InstallationId, SharedClock};
use tracing::{info, warn};

use super::BackendCaller;
use crate::AppFailure;

/// As Hermes names it, in the same place.
const SNAPSHOTS: &str = "modal_snapshots.json";

pub(super) fn modal(
    config: &Config,
    installation: &InstallationId,
    caller: BackendCaller,
    clock: &SharedClock,
) -> Result<Arc<dyn Backend>, AppFailure> {
    check(config)?;
    let settings = &config.terminal().modal;
    let home = env::var_os("HOME").map(PathBuf::from);
    let credentials = ModalCredentials::find(&|name| said(config, name), home.as_deref())
        .map_err(|error| AppFailure::caused(&error, error.remedy()))?;
    let address = address(&credentials)?;
    Ok(Arc::new(ModalBackend::new(hermetic_modal::ModalConfig {
        address,
        credentials,
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        app: settings.app.clone(),
        image: super::sandbox_plan::image(config, BackendKind::Modal, caller).unwrap_or_default(),
        snapshots: config.home().root().join(SNAPSHOTS),
        outbound: outbound(config, caller)?,
        clock: Arc::clone(clock),
    })))
}

/// Whether what is written about Modal can be understood. Its credentials are the machine's.
pub(super) fn check(config: &Config) -> Result<(), AppFailure> {
    let settings = &config.terminal().modal;
    outbound(config, BackendCaller::Onlooker)?;
    if settings.managed {
        return Err(AppFailure::new(
            "Modal by way of a vendor's gateway (terminal.modal_mode: managed) is not there",
            "write terminal.modal_mode: direct, with a token of your own",
        ));
    }
    Ok(())
}

fn address(credentials: &ModalCredentials) -> Result<ControlAddress, AppFailure> {
    match &credentials.server_url {
        None => Ok(ControlAddress::default()),
        Some(url) => ControlAddress::parse(url).map_err(|error| {
            AppFailure::caused(
                &error,
                "mend MODAL_SERVER_URL, or server_url in ~/.modal.toml",
            )
        }),
    }
}

/// A variable of Modal's own client, as the configuration settled it.
fn said(config: &Config, name: &str) -> Option<String> {
    let settings = &config.terminal().modal;
    match name {
        "MODAL_TOKEN_ID" => settings.token_id.as_ref().map(|id| id.expose().to_owned()),
        "MODAL_TOKEN_SECRET" => {
            let secret = settings.token_secret.as_ref();
            secret.map(|secret| secret.expose().to_owned())
        }
        "MODAL_SERVER_URL" => settings.server_url.clone(),
        "MODAL_ENVIRONMENT" => settings.environment.clone(),
        "MODAL_PROFILE" => settings.profile.clone(),
        "MODAL_CONFIG_PATH" => {
            let path = settings.config_path.as_ref();
            path.map(|path| path.display().to_string())
        }
        _ => None,
    }
}

const KEY: &str = "terminal.modal_outbound";

/// A way past the proxy is for a person at a keyboard who wrote it himself.
fn outbound(config: &Config, caller: BackendCaller) -> Result<OutboundAccess, AppFailure> {
    let wrong =
        |error: hermetic_modal::OutboundError| AppFailure::caused(&error, format!("mend {KEY}"));
    let outbound = OutboundAccess::parse(&config.terminal().modal.outbound).map_err(wrong)?;
    if outbound == OutboundAccess::Nothing {
        return Ok(outbound);
    }
    Ok(match caller {
        BackendCaller::CommandLine(_) => {
            let origin = config
                .origin(KEY)
                .map(ToString::to_string)
                .unwrap_or_default();
            warn!("⚠ the seal is broken: {KEY} is written ({origin}), so Modal lets that through");
            outbound
        }
        BackendCaller::Chats => {
            info!("{KEY} holds for the command line; chats go out by gateway.egress or not at all");
            OutboundAccess::Nothing
        }
        BackendCaller::Onlooker => OutboundAccess::Nothing,
    })
}
