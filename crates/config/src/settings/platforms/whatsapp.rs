//! WhatsApp, by a bridge or by its cloud.

use std::collections::BTreeMap;

use hermetic_types::{AccountName, Secret};

use super::super::pick::field;
use super::{PlatformConfig, PlatformSection};
use crate::problem::ConfigProblem;
use crate::value::SettingValue;

/// The account behind a bridge is called so.
const BRIDGE: &str = "bridge";

/// By a bridge on this machine.
#[derive(Clone, Debug)]
pub struct WhatsApp {
    pub platform: PlatformConfig,
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
pub struct WhatsAppCloudPlatform {
    pub platform: PlatformConfig,
    /// Every number by its name; the platform's own is called `default`.
    pub numbers: BTreeMap<AccountName, WhatsAppNumber>,
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

/// One business number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhatsAppNumber {
    pub phone_number_id: String,
    pub access_token: Secret,
}

pub(super) fn whatsapp(at: &PlatformSection<'_>, problems: &mut Vec<ConfigProblem>) -> WhatsApp {
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

pub(super) fn whatsapp_cloud(
    at: &PlatformSection<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> WhatsAppCloudPlatform {
    let (phone_number_id, access_token) =
        (at.maybe_text("phone_number_id"), at.secret("access_token"));
    let needed = [
        ("phone_number_id", phone_number_id.is_some()),
        ("access_token", access_token.is_some()),
    ];
    let platform = at.platform(&needed, problems);
    let numbers = numbers(at, phone_number_id, access_token, problems);
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
    WhatsAppCloudPlatform {
        platform,
        numbers,
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

/// More numbers belong to the app of the first: Meta posts what comes to all of them to one address.
fn numbers(
    at: &PlatformSection<'_>,
    phone_number_id: Option<String>,
    access_token: Option<Secret>,
    problems: &mut Vec<ConfigProblem>,
) -> BTreeMap<AccountName, WhatsAppNumber> {
    let mut numbers = BTreeMap::new();
    let (Some(phone_number_id), Some(access_token)) = (phone_number_id, access_token) else {
        return numbers;
    };
    let own = WhatsAppNumber {
        phone_number_id,
        access_token: access_token.clone(),
    };
    numbers.insert(AccountName::default(), own);
    for (name, record) in at.pick.table(&at.path("accounts")) {
        let Some(phone_number_id) = field(record, "phone_number_id") else {
            continue;
        };
        let token = match record.get("access_token") {
            Some(SettingValue::Secret(token)) => token.clone(),
            _ => access_token.clone(),
        };
        let is_there = |other: &WhatsAppNumber| other.phone_number_id == phone_number_id;
        match name.parse::<AccountName>() {
            Ok(name)
                if name.as_str() == BRIDGE
                    || numbers.contains_key(&name)
                    || numbers.values().any(is_there) =>
            {
                problems.push(
                    at.wrong(
                        "accounts",
                        format!("the number {} is there twice", name.as_str()),
                    )
                    .help(
                        "`phone_number_id` beside `accounts` is the number called default, and a \
                         bridge is called bridge",
                    ),
                );
            }
            Ok(name) => {
                let number = WhatsAppNumber {
                    phone_number_id,
                    access_token: token,
                };
                numbers.insert(name, number);
            }
            Err(error) => problems.push(at.wrong("accounts", error.to_string())),
        }
    }
    numbers
}
