//! The signed webhook, from the configuration.

use std::sync::Arc;

use hermetic_config::Config;
use hermetic_webhook::{Webhook, WebhookConfig};

use super::{AdapterStates, ChatAccount, ListenAddress};
use crate::Failure;

/// Its one account, where it is used.
pub(super) fn accounts(
    config: &Config,
    _: &AdapterStates<'_>,
) -> Result<Vec<ChatAccount>, Failure> {
    let settings = &config.platforms().webhook;
    let secret = settings.secret.clone();
    let Some(secret) = secret.filter(|_| settings.platform.enabled) else {
        return Ok(Vec::new());
    };
    let webhook = Webhook::new(WebhookConfig::new(secret))
        .map_err(|error| Failure::caused(&error, "look at WEBHOOK_SECRET"))?;
    Ok(vec![ChatAccount {
        chat: Arc::new(webhook),
        listen: Some(ListenAddress {
            host: settings.host.clone(),
            port: settings.port,
            setting: "platforms.webhook.port",
        }),
    }])
}
