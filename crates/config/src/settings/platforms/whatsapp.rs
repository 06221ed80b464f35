//! WhatsApp, by a bridge or by its cloud.

use hermetic_types::Secret;

use super::{Platform, Section};
use crate::problem::Problem;

/// By a bridge on this machine.
#[derive(Clone, Debug)]
pub struct WhatsApp {
    pub platform: Platform,
    pub group_allowed_users: Vec<String>,
    pub dm_policy: String,
    pub group_policy: String,
    pub mode: String,
    pub reply_prefix: Option<String>,
    pub require_mention: bool,
    pub mention_patterns: Vec<String>,
    pub free_response_chats: Vec<String>,
    pub bridge_port: u16,
    pub bridge_url: Option<String>,
}

#[derive(Clone, Debug)]
pub struct WhatsAppCloud {
    pub platform: Platform,
    pub phone_number_id: Option<String>,
    pub access_token: Option<Secret>,
    pub app_secret: Option<Secret>,
    pub verify_token: Option<Secret>,
    pub webhook_host: String,
    pub webhook_port: u16,
    pub webhook_path: String,
    pub api_version: String,
    pub base_url: Option<String>,
    pub template: Option<String>,
    pub template_language: String,
    pub require_mention: bool,
    pub mention_patterns: Vec<String>,
    pub free_response_chats: Vec<String>,
}

pub(super) fn whatsapp(at: &Section<'_>, problems: &mut Vec<Problem>) -> WhatsApp {
    let mut platform = at.platform(&[], problems);
    // It has no credential of its own, so only a written `enabled` switches it on.
    platform.enabled = at.pick.maybe_flag(&at.path("enabled")) == Some(true);
    let everybody = platform.allow_all_users || at.pick.flag("GATEWAY_ALLOW_ALL_USERS");
    for policy in ["dm_policy", "group_policy"] {
        if at.text(policy) == "open" && !everybody {
            problems.push(
                at.wrong(
                    policy,
                    "`open` lets everybody write, and nothing else says so",
                )
                .help("set WHATSAPP_ALLOW_ALL_USERS=true as well, or choose pairing"),
            );
        }
    }
    WhatsApp {
        platform,
        group_allowed_users: at.texts("group_allowed_users"),
        dm_policy: at.text("dm_policy"),
        group_policy: at.text("group_policy"),
        mode: at.text("mode"),
        reply_prefix: at.maybe_text("reply_prefix"),
        require_mention: at.flag("require_mention"),
        mention_patterns: at.texts("mention_patterns"),
        free_response_chats: at.texts("free_response_chats"),
        bridge_port: at.port("bridge_port"),
        bridge_url: at.maybe_text("bridge_url"),
    }
}

pub(super) fn whatsapp_cloud(at: &Section<'_>, problems: &mut Vec<Problem>) -> WhatsAppCloud {
    let (phone_number_id, access_token) =
        (at.maybe_text("phone_number_id"), at.secret("access_token"));
    let needed = [
        ("phone_number_id", phone_number_id.is_some()),
        ("access_token", access_token.is_some()),
    ];
    let platform = at.platform(&needed, problems);
    let app_secret = at.secret("app_secret");
    if platform.enabled && app_secret.is_none() {
        problems.push(
            at.wrong(
                "app_secret",
                "whatsapp_cloud has no app_secret to tell its messages from forged ones",
            )
            .help("set WHATSAPP_CLOUD_APP_SECRET, or switch it off"),
        );
    }
    WhatsAppCloud {
        platform,
        phone_number_id,
        access_token,
        app_secret,
        verify_token: at.secret("verify_token"),
        webhook_host: at.text("webhook_host"),
        webhook_port: at.port("webhook_port"),
        webhook_path: at.text("webhook_path"),
        api_version: at.text("api_version"),
        base_url: at.maybe_text("base_url"),
        template: at.maybe_text("template"),
        template_language: at.text("template_language"),
        require_mention: at.flag("require_mention"),
        mention_patterns: at.texts("mention_patterns"),
        free_response_chats: at.texts("free_response_chats"),
    }
}
