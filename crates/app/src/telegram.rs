//! Telegram, from the configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use hermetic_chat::Chat;
use hermetic_config::Config;
use hermetic_telegram::{Hearing, Intake, Telegram, TelegramConfig};
use tokio::net::TcpListener;
use tracing::info;

use crate::Failure;

/// A port and what is answered there.
type Door = (TcpListener, axum::Router);

/// With the port on which Telegram is heard, if it posts to us; `None` where it is not used.
pub(crate) async fn telegram(
    config: &Config,
) -> Result<Option<(Arc<dyn Chat>, Option<Door>)>, Failure> {
    let Some(telegram) = new(config)? else {
        return Ok(None);
    };
    let settings = &config.platforms().telegram;
    let posted = settings
        .webhook_url
        .as_deref()
        .filter(|_| settings.webhook_secret.is_some());
    let door = match posted {
        Some(url) => Some((listen(config).await?, mounted(&telegram, url))),
        None => None,
    };
    Ok(Some((telegram, door)))
}

/// As it is configured, before anything is listened to.
pub(super) fn new(config: &Config) -> Result<Option<Arc<Telegram>>, Failure> {
    let settings = &config.platforms().telegram;
    let token = settings.token.clone().filter(|_| settings.platform.enabled);
    let Some(token) = token else { return Ok(None) };
    let mut wanted = TelegramConfig::new(token);
    if let Some(base) = &settings.base_url {
        wanted.api_base = base.trim_end_matches('/').to_owned();
    }
    let proxy = settings.proxy.as_ref();
    wanted.proxy = proxy.or(config.gateway().proxy.as_ref()).cloned();
    wanted.hearing = Hearing {
        require_mention: settings.require_mention,
        free_response_chats: ids(&settings.free_response_chats),
        allowed_chats: ids(&settings.allowed_chats),
        allowed_topics: ids(&settings.allowed_topics),
        ignored_threads: ids(&settings.ignored_threads),
        bots: matches!(settings.allow_bots.as_str(), "all" | "true" | "mentions"),
    };
    let posted = settings
        .webhook_url
        .clone()
        .zip(settings.webhook_secret.clone());
    if let Some((url, secret)) = posted {
        wanted.intake = Intake::Webhook { url, secret };
    }
    let telegram = Telegram::new(wanted).map_err(|error| {
        Failure::caused(
            &error,
            "look at TELEGRAM_BOT_TOKEN, TELEGRAM_WEBHOOK_SECRET, base_url and proxy of telegram",
        )
    })?;
    Ok(Some(Arc::new(telegram)))
}

async fn listen(config: &Config) -> Result<TcpListener, Failure> {
    let settings = &config.platforms().telegram;
    let (host, port) = (settings.webhook_host.as_str(), settings.webhook_port);
    let listener = TcpListener::bind((host, port)).await.map_err(|error| {
        Failure::new(
            format!("cannot listen on {host}:{port} for Telegram: {error}"),
            "end whoever has that port, or write another TELEGRAM_WEBHOOK_PORT",
        )
    })?;
    if let Ok(telegram_webhook) = listener.local_addr() {
        info!(%telegram_webhook, "Telegram is heard here; something with a certificate stands in front");
    }
    Ok(listener)
}

/// Answered at the path of the address that Telegram is told, and at no other.
fn mounted(telegram: &Arc<Telegram>, url: &str) -> axum::Router {
    let after_host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = after_host.split_once('/').map_or("", |(_, path)| path);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    match path.trim_matches('/') {
        "" => telegram.router(),
        path => {
            // A brace alone would be read as a pattern.
            let literal = path.replace('{', "{{").replace('}', "}}");
            axum::Router::new().nest(&format!("/{literal}"), telegram.router())
        }
    }
}

fn ids<T: TryFrom<String> + Ord>(listed: &[String]) -> BTreeSet<T> {
    listed
        .iter()
        .filter_map(|text| T::try_from(text.clone()).ok())
        .collect()
}
