//! WhatsApp, from the configuration: a business number, a bridge, or both.

use std::collections::BTreeSet;
use std::sync::Arc;

use hermetic_config::{
    Config, WhatsApp as BridgeSettings, WhatsAppCloudPlatform as CloudSettings, WhatsAppNumber,
};
use hermetic_types::{AccountId, AccountName, ChatId, Platform, Secret, UserId};
use hermetic_whatsapp::{
    BridgeConfig, CloudConfig, CloudConfigError, MessageTemplate, PhoneNumber, WhatsAppBridge,
    WhatsAppCloud, WhatsAppHearing, person_named,
};

use super::{AdapterSurroundings, ChatAccount, ListenAddress, PlatformSetup, SetupValue};
use crate::AppFailure;
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
            instead: &[],
        },
        SetupValue {
            variable: "WHATSAPP_CLOUD_ACCESS_TOKEN",
            what: "a system user's token with whatsapp_business_messaging and \
                   whatsapp_business_management",
            is_secret: true,
            instead: &[],
        },
        SetupValue {
            variable: "WHATSAPP_CLOUD_APP_SECRET",
            what: "the app secret, from the app's basic settings",
            is_secret: true,
            instead: &[],
        },
        SetupValue {
            variable: "WHATSAPP_CLOUD_VERIFY_TOKEN",
            what: "any long text; you give Meta the same when you register the webhook",
            is_secret: true,
            instead: &[],
        },
    ],
    fixed: &[],
    allowlist: "WHATSAPP_CLOUD_ALLOWED_USERS",
    person: "phone numbers with their country code, such as +491701234567",
};

/// Every way to WhatsApp that is in use.
pub(super) fn accounts(
    config: &Config,
    around: &AdapterSurroundings<'_>,
) -> Result<Vec<ChatAccount>, AppFailure> {
    let (cloud, bridge) = (
        &config.platforms().whatsapp_cloud,
        &config.platforms().whatsapp,
    );
    let both = cloud.platform.enabled && bridge.platform.enabled;
    if both && cloud.platform.terminal_backend != bridge.platform.terminal_backend {
        // People are the same on both ways, and so is where their commands run.
        return Err(AppFailure::new(
            "whatsapp and whatsapp_cloud have different backends",
            "write the same terminal_backend in both, or use one of them",
        ));
    }
    let mut accounts = Vec::new();
    if cloud.platform.enabled {
        accounts.extend(open_numbers(config, cloud, around)?);
    }
    if bridge.platform.enabled {
        accounts.push(open_bridge(config, bridge, around)?);
    }
    Ok(accounts)
}

/// Meta posts what comes to any number of an app to one address, which the first of them answers.
fn open_numbers(
    config: &Config,
    settings: &CloudSettings,
    around: &AdapterSurroundings<'_>,
) -> Result<Vec<ChatAccount>, AppFailure> {
    let numbers = settings.numbers.iter();
    let numbers: Vec<_> = numbers
        .map(|(name, number)| open_number(config, settings, name, number, around))
        .collect::<Result<_, _>>()?;
    if let Some((first, others)) = numbers.split_first() {
        first.answers_for(others);
    }
    // Something with a certificate stands in front.
    let listen = ListenAddress {
        host: settings.webhook_host.clone(),
        port: settings.webhook_port,
        setting: "WHATSAPP_CLOUD_WEBHOOK_PORT",
    };
    let accounts = numbers.into_iter().map(|number| ChatAccount {
        chat: number,
        listen: Some(listen.clone()),
    });
    Ok(accounts.collect())
}

fn open_number(
    config: &Config,
    settings: &CloudSettings,
    name: &AccountName,
    number: &WhatsAppNumber,
    around: &AdapterSurroundings<'_>,
) -> Result<Arc<WhatsAppCloud>, AppFailure> {
    let account = AccountId::new(Platform::Whatsapp, name.clone());
    let remedy = "look at the variables that begin with WHATSAPP_CLOUD_, and at base_url and proxy";
    let refused =
        |error: CloudConfigError| AppFailure::caused(&error, remedy).during(account.clone());
    let app_secret = settings.app_secret.clone().unwrap_or(Secret::new(""));
    let token = number.access_token.clone();
    let mut wanted = CloudConfig::new(&number.phone_number_id, token, app_secret, around.clock());
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
    wanted.state = around.state(&account);
    Ok(Arc::new(WhatsAppCloud::new(wanted).map_err(refused)?))
}

fn open_bridge(
    config: &Config,
    settings: &BridgeSettings,
    around: &AdapterSurroundings<'_>,
) -> Result<ChatAccount, AppFailure> {
    let account = bridge_account();
    let local = || format!("http://127.0.0.1:{}", settings.bridge_port);
    let url = settings.bridge_url.clone().unwrap_or_else(local);
    let home = config.home().root();
    let mut wanted = BridgeConfig::new(&url, around.clock());
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
    wanted.state = around.state(&account);
    let bridge = WhatsAppBridge::new(wanted).map_err(|error| {
        AppFailure::caused(&error, "look at WHATSAPP_BRIDGE_URL").during(account.clone())
    })?;
    Ok(ChatAccount {
        chat: Arc::new(bridge),
        listen: None,
    })
}

fn hearing(require_mention: bool, free: &[String], names: &[String]) -> WhatsAppHearing {
    let free = free.iter().filter_map(|id| ChatId::new(id.clone()).ok());
    WhatsAppHearing {
        require_mention,
        free_response_chats: free.collect(),
        names: names.iter().map(|name| name.to_lowercase()).collect(),
        ..WhatsAppHearing::default()
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
