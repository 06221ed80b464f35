//! The signed webhook, from the configuration.

use std::sync::Arc;

use hermetic_config::Config;
use hermetic_webhook::{WebhookAdapter, WebhookConfig};

use super::{AdapterSurroundings, ChatAccount, ListenAddress};
use crate::AppFailure;

/// Its one account, where it is used.
pub(super) fn accounts(
    config: &Config,
    around: &AdapterSurroundings<'_>,
) -> Result<Vec<ChatAccount>, AppFailure> {
    let settings = &config.platforms().webhook;
    let secret = settings.secret.clone();
    let Some(secret) = secret.filter(|_| settings.platform.enabled) else {
        return Ok(Vec::new());
    };
    let webhook = WebhookAdapter::new(WebhookConfig::new(secret, around.clock()))
        .map_err(|error| AppFailure::caused(&error, "look at WEBHOOK_SECRET"))?;
    Ok(vec![ChatAccount {
        chat: Arc::new(webhook),
        listen: Some(ListenAddress {
            host: settings.host.clone(),
            port: settings.port,
            setting: "platforms.webhook.port",
        }),
    }])
}
