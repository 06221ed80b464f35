//! Telegram, from the configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use hermetic_chat::Chat;
use hermetic_chat::telegram::{Hearing, Telegram, TelegramConfig};
use hermetic_config::Config;

use crate::failure::Failure;

/// `None` where Telegram is not used.
pub(crate) fn telegram(config: &Config) -> Result<Option<Arc<dyn Chat>>, Failure> {
    let settings = &config.platforms().telegram;
    let token = settings.token.clone().filter(|_| settings.platform.enabled);
    let Some(token) = token else { return Ok(None) };
    if settings.webhook_url.is_some() {
        return Err(Failure::new(
            "Telegram by webhook is not there yet in this version",
            "leave TELEGRAM_WEBHOOK_URL out; updates are then polled",
        ));
    }
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
    let telegram = Telegram::new(wanted).map_err(|error| {
        Failure::caused(
            &error,
            "look at TELEGRAM_BOT_TOKEN, base_url and proxy of telegram",
        )
    })?;
    Ok(Some(Arc::new(telegram)))
}

fn ids<T: TryFrom<String> + Ord>(listed: &[String]) -> BTreeSet<T> {
    listed
        .iter()
        .filter_map(|text| T::try_from(text.clone()).ok())
        .collect()
}
