//! Telegram.

use hermetic_types::Secret;

use super::{Platform, Section};
use crate::problem::Problem;

#[derive(Clone, Debug)]
pub struct Telegram {
    pub platform: Platform,
    pub token: Option<Secret>,
    pub base_url: Option<String>,
    pub proxy: Option<String>,
    pub webhook_url: Option<String>,
    pub webhook_secret: Option<Secret>,
    pub webhook_host: String,
    pub webhook_port: u16,
    pub group_allowed_users: Vec<String>,
    pub group_allowed_chats: Vec<String>,
    pub allowed_chats: Vec<String>,
    pub allowed_topics: Vec<String>,
    pub ignored_threads: Vec<String>,
    pub require_mention: bool,
    pub free_response_chats: Vec<String>,
    pub free_response_topics: Vec<String>,
    pub mention_patterns: Vec<String>,
    pub guest_mode: bool,
    pub exclusive_bot_mentions: bool,
    pub allow_bots: String,
    pub reactions: bool,
}

pub(super) fn telegram(at: &Section<'_>, problems: &mut Vec<Problem>) -> Telegram {
    let token = at.secret("token");
    let platform = at.platform(&[("token", token.is_some())], problems);
    let webhook_url = at.maybe_text("webhook_url");
    let webhook_secret = at.secret("webhook_secret");
    if webhook_url.is_some() && webhook_secret.is_none() {
        problems.push(
            at.wrong(
                "webhook_url",
                "a webhook without a secret takes messages from anybody",
            )
            .help("set TELEGRAM_WEBHOOK_SECRET, or leave the webhook out to poll"),
        );
    }
    Telegram {
        platform,
        token,
        base_url: at.maybe_text("base_url"),
        proxy: at.maybe_text("proxy"),
        webhook_url,
        webhook_secret,
        webhook_host: at.text("webhook_host"),
        webhook_port: at.port("webhook_port"),
        group_allowed_users: at.texts("group_allowed_users"),
        group_allowed_chats: at.texts("group_allowed_chats"),
        allowed_chats: at.texts("allowed_chats"),
        allowed_topics: at.texts("allowed_topics"),
        ignored_threads: at.texts("ignored_threads"),
        require_mention: at.flag("require_mention"),
        free_response_chats: at.texts("free_response_chats"),
        free_response_topics: at.texts("free_response_topics"),
        mention_patterns: at.texts("mention_patterns"),
        guest_mode: at.flag("guest_mode"),
        exclusive_bot_mentions: at.flag("exclusive_bot_mentions"),
        allow_bots: at.text("allow_bots"),
        reactions: at.flag("reactions"),
    }
}
