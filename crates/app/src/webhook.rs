//! The signed webhook, from the configuration.

use std::sync::Arc;

use hermetic_config::Config;
use hermetic_webhook::{Webhook, WebhookConfig};
use tokio::net::TcpListener;
use tracing::info;

use crate::Failure;

/// The platform and the port it is heard on; `None` where it is not used.
pub(crate) async fn webhook(
    config: &Config,
) -> Result<Option<(Arc<Webhook>, TcpListener)>, Failure> {
    let Some(webhook) = new(config)? else {
        return Ok(None);
    };
    let settings = &config.platforms().webhook;
    let (host, port) = (settings.host.as_str(), settings.port);
    let listener = TcpListener::bind((host, port)).await.map_err(|error| {
        Failure::new(
            format!("cannot listen on {host}:{port} for the webhook: {error}"),
            "end whoever has that port, or write another platforms.webhook.port",
        )
    })?;
    if let Ok(webhook) = listener.local_addr() {
        info!(%webhook, "signed messages are taken");
    }
    Ok(Some((Arc::new(webhook), listener)))
}

/// As it is configured, before anything is listened to.
pub(super) fn new(config: &Config) -> Result<Option<Webhook>, Failure> {
    let settings = &config.platforms().webhook;
    let secret = settings
        .secret
        .clone()
        .filter(|_| settings.platform.enabled);
    secret
        .map(|secret| {
            Webhook::new(WebhookConfig::new(secret))
                .map_err(|error| Failure::caused(&error, "look at WEBHOOK_SECRET"))
        })
        .transpose()
}
