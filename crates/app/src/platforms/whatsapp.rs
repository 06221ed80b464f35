//! WhatsApp, from the configuration: a business number, a bridge, or both.

use std::collections::BTreeSet;
use std::sync::Arc;

use hermetic_config::{Config, WhatsApp as BridgeSettings, WhatsAppCloud as CloudSettings};
use hermetic_types::{AccountId, ChatId, Platform, Secret, UserId};
use hermetic_whatsapp::{
    BridgeConfig, CloudConfig, CloudConfigError, Hearing, MessageTemplate, PhoneNumber,
    WhatsAppBridge, WhatsAppCloud, person_named,
};

use super::{AdapterStates, ChatAccount, ListenAddress, PlatformSetup, SetupValue};
use crate::Failure;
use crate::access::whatsapp::{bridge_account, listed};

/// How a first business number is set up.
pub(super) const SETUP: PlatformSetup = PlatformSetup {
    platform: Platform::Whatsapp,
    title: "WhatsApp (Cloud API)",
    guide: "docs/guides/whatsapp.md",
    values: &[
        SetupValue {
            variable: "WHATSAPP_CLOUD_PHONE_NUMBER_ID",
            what: "the number's id, which the app's WhatsApp page shows beside the number",
            is_secret: false,
        },
        SetupValue {
            variable: "WHATSAPP_CLOUD_ACCESS_TOKEN",
            what: "a system user's token with whatsapp_business_messaging and \
                   whatsapp_business_management",
            is_secret: true,
        },
        SetupValue {
            variable: "WHATSAPP_CLOUD_APP_SECRET",
            what: "the app secret, from the app's basic settings",
            is_secret: true,
        },
        SetupValue {
            variable: "WHATSAPP_CLOUD_VERIFY_TOKEN",
            what: "any long text; you give Meta the same when you register the webhook",
            is_secret: true,
        },
    ],
    fixed: &[],
    allowlist: "WHATSAPP_CLOUD_ALLOWED_USERS",
    person: "phone numbers with their country code, such as +491701234567",
};

/// Every way to WhatsApp that is in use.
pub(super) fn accounts(
    config: &Config,
    states: &AdapterStates<'_>,
) -> Result<Vec<ChatAccount>, Failure> {
    let (cloud, bridge) = (
        &config.platforms().whatsapp_cloud,
        &config.platforms().whatsapp,
    );
    let both = cloud.platform.enabled && bridge.platform.enabled;
    if both && cloud.platform.terminal_backend != bridge.platform.terminal_backend {
        // People are the same on both ways, and so is where their commands run.
        return Err(Failure::new(
            "whatsapp and whatsapp_cloud have different backends",
            "write the same terminal_backend in both, or use one of them",
        ));
    }
    let mut accounts = Vec::new();
    if cloud.platform.enabled {
        accounts.push(open_cloud(config, cloud, states)?);
    }
    if bridge.platform.enabled {
        accounts.push(open_bridge(config, bridge, states)?);
    }
    Ok(accounts)
}

fn open_cloud(
    config: &Config,
    settings: &CloudSettings,
    states: &AdapterStates<'_>,
) -> Result<ChatAccount, Failure> {
    let account = AccountId::from(Platform::Whatsapp);
    let remedy = "look at the variables that begin with WHATSAPP_CLOUD_, and at base_url and proxy";
    let refused = |error: CloudConfigError| Failure::caused(&error, remedy).during(account.clone());
    let secret = |secret: &Option<Secret>| secret.clone().unwrap_or(Secret::new(""));
    let number = settings.phone_number_id.as_deref().unwrap_or_default();
    let mut wanted = CloudConfig::new(
        number,
        secret(&settings.access_token),
        secret(&settings.app_secret),
    );
    wanted.account = account.clone();
    wanted.verify_token = settings.verify_token.clone();
    wanted.webhook_path = settings.webhook_path.clone();
    wanted.version = settings.api_version.parse().map_err(refused)?;
    if let Some(base) = &settings.base_url {
        wanted.base_url = base.clone();
    }
    wanted.proxy = config.gateway().proxy.clone();
    wanted.listed_numbers = listed_numbers(config);
    wanted.template = settings.template.as_ref().map(|name| MessageTemplate {
        name: name.clone(),
        language: settings.template_language.clone(),
    });
    wanted.hearing = hearing(
        settings.require_mention,
        &settings.free_response_chats,
        &settings.mention_patterns,
    );
    wanted.state = states(&account);
    let cloud = WhatsAppCloud::new(wanted).map_err(refused)?;
    Ok(ChatAccount {
        chat: Arc::new(cloud),
        // Something with a certificate stands in front.
        listen: Some(ListenAddress {
            host: settings.webhook_host.clone(),
            port: settings.webhook_port,
            setting: "WHATSAPP_CLOUD_WEBHOOK_PORT",
        }),
    })
}

fn open_bridge(
    config: &Config,
    settings: &BridgeSettings,
    states: &AdapterStates<'_>,
) -> Result<ChatAccount, Failure> {
    let account = bridge_account();
    let local = || format!("http://127.0.0.1:{}", settings.bridge_port);
    let url = settings.bridge_url.clone().unwrap_or_else(local);
    let home = config.home().root();
    let mut wanted = BridgeConfig::new(&url);
    wanted.account = account.clone();
    // Where Hermes has it put them, in its newer and its older layout.
    wanted.media_folders = ["cache", "image_cache", "document_cache", "audio_cache"]
        .map(|folder| home.join(folder))
        .to_vec();
    wanted.outgoing_folder = home.join("cache").join("whatsapp-outgoing");
    wanted.hearing = hearing(
        settings.require_mention,
        &settings.free_response_chats,
        &settings.mention_patterns,
    );
    wanted.hearing.private_disabled = settings.dm_policy == "disabled";
    wanted.hearing.groups_disabled = settings.group_policy == "disabled";
    wanted.state = states(&account);
    let bridge = WhatsAppBridge::new(wanted).map_err(|error| {
        Failure::caused(&error, "look at WHATSAPP_BRIDGE_URL").during(account.clone())
    })?;
    Ok(ChatAccount {
        chat: Arc::new(bridge),
        listen: None,
    })
}

fn hearing(require_mention: bool, free: &[String], names: &[String]) -> Hearing {
    let free = free.iter().filter_map(|id| ChatId::new(id.clone()).ok());
    Hearing {
        require_mention,
        free_response_chats: free.collect(),
        names: names.iter().map(|name| name.to_lowercase()).collect(),
        ..Hearing::default()
    }
}

/// Every number in a list that somebody could be on: they are known by it when they show it.
fn listed_numbers(config: &Config) -> BTreeSet<PhoneNumber> {
    let lists = listed(config);
    let people = lists.iter().filter_map(|entry| person_named(entry));
    let numbers = people.filter_map(|person| PhoneNumber::read(person.as_str()));
    numbers.collect()
}

/// Whom an entry of a list names.
pub(crate) fn person(entry: &str) -> Option<UserId> {
    person_named(entry)
}
