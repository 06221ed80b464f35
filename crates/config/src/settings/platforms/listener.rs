//! What listens for others: the webhook and the API server.

use hermetic_types::Secret;

use super::{PlatformConfig, PlatformSection};
use crate::problem::ConfigProblem;

/// Something that listens and needs a secret.
#[derive(Clone, Debug)]
pub struct WebhookPlatform {
    pub platform: PlatformConfig,
    pub host: String,
    pub port: u16,
    pub secret: Option<Secret>,
}

pub(super) fn listener(
    at: &PlatformSection<'_>,
    secret_key: &'static str,
    problems: &mut Vec<ConfigProblem>,
) -> WebhookPlatform {
    let secret = at.secret(secret_key);
    let mut platform = at.platform(&[(secret_key, secret.is_some())], problems);
    // A secret alone must not open a port.
    platform.enabled &= at.pick.maybe_flag(&at.path("enabled")) == Some(true);
    WebhookPlatform {
        platform,
        host: at.text("host"),
        port: at.port("port"),
        secret,
    }
}
