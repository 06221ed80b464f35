//! Where the gateway speaks by itself, from the configuration.

use std::collections::BTreeMap;

use hermetic_config::{Config, PlatformConfig};
use hermetic_gateway::HomeChannel;
use hermetic_types::{AccountId, ChatId, ChatKind, ChatPlace, Platform};
use tracing::warn;

use crate::access::named_on;
use crate::access::whatsapp::bridge_account;

/// Hermes writes groups of Signal so.
const SIGNAL_GROUP: &str = "group:";
/// What the bridge to WhatsApp calls chats with one person and with several.
const BRIDGED_PERSON: &str = "@s.whatsapp.net";
const BRIDGED_GROUP: &str = "@g.us";

/// The home channel of each platform. Of WhatsApp's two sections the one in use counts, and of both the
/// business number's, which is the platform's own account.
pub(crate) fn home_channels(config: &Config) -> BTreeMap<Platform, HomeChannel> {
    let sections = config.platforms().all().into_iter();
    let mut written: Vec<_> = sections
        .filter_map(|section| Some((section, section.kind()?, section.home_channel.as_ref()?)))
        .collect();
    // What comes later stands in place of what came before.
    written.sort_by_key(|(section, ..)| section.enabled);
    let mut homes = BTreeMap::new();
    for (section, platform, written) in written {
        match home_channel(section, platform, written.trim()) {
            Some(home) => {
                homes.insert(platform, home);
            }
            None => warn!(
                platform = section.name,
                written, "the home channel is no chat there; jobs cannot be sent to it"
            ),
        }
    }
    homes
}

fn home_channel(section: &PlatformConfig, platform: Platform, chat: &str) -> Option<HomeChannel> {
    let is_bridge = section.name == "whatsapp";
    let (chat, kind) = match platform {
        Platform::Telegram if chat.starts_with('-') => (chat.to_owned(), ChatKind::Group),
        Platform::Telegram => (chat.to_owned(), ChatKind::Dm),
        Platform::Signal => signal(chat),
        Platform::Whatsapp if is_bridge => bridged(chat)?,
        Platform::Whatsapp => match named_on(platform, chat) {
            Some(person) => (person.to_string(), ChatKind::Dm),
            None => (chat.to_owned(), ChatKind::Group),
        },
        // A private chat of Slack's, or somebody's own id.
        Platform::Slack if chat.starts_with(['D', 'U', 'W']) => (chat.to_owned(), ChatKind::Dm),
        // Only where it is matters to whoever sends.
        _ => (chat.to_owned(), ChatKind::Group),
    };
    let account = match is_bridge {
        true => bridge_account(),
        false => AccountId::from(platform),
    };
    let place = ChatPlace {
        chat: ChatId::new(chat).ok()?,
        kind,
        thread: None,
    };
    Some(HomeChannel { account, place })
}

/// People have numbers and ids with dashes, groups what base64 makes of 32 bytes.
fn signal(chat: &str) -> (String, ChatKind) {
    if let Some(group) = chat.strip_prefix(SIGNAL_GROUP) {
        return (group.to_owned(), ChatKind::Group);
    }
    let is_number = chat.starts_with('+') && chat[1..].bytes().all(|b| b.is_ascii_digit());
    let is_id = chat.len() == 36 && chat.bytes().filter(|b| *b == b'-').count() == 4;
    let kind = if is_number || is_id {
        ChatKind::Dm
    } else {
        ChatKind::Group
    };
    (chat.to_owned(), kind)
}

fn bridged(chat: &str) -> Option<(String, ChatKind)> {
    if chat.ends_with(BRIDGED_GROUP) {
        return Some((chat.to_owned(), ChatKind::Group));
    }
    let person = named_on(Platform::Whatsapp, chat)?.to_string();
    let address = match person.bytes().all(|b| b.is_ascii_digit()) {
        true => format!("{person}{BRIDGED_PERSON}"),
        // An id of a business number means nothing to a bridge.
        false if !person.contains('@') => return None,
        false => person,
    };
    Some((address, ChatKind::Dm))
}

#[cfg(test)]
mod tests {
    use hermetic_config::{ConfigInputs, HomeFolder, load};

    use super::*;

    fn homes(variables: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let config = load(&ConfigInputs {
            home: HomeFolder::at(folder.path()),
            managed: folder.path().join("managed.yaml"),
            variables: variables.collect(),
            unreadable: Vec::new(),
        });
        let config = config.unwrap_or_else(|problems| panic!("{problems}"));
        let homes = home_channels(&config).into_values();
        homes
            .map(|home| {
                let place = home.place;
                format!("{} {:?} {}", home.account, place.kind, place.chat)
            })
            .collect()
    }

    #[test]
    fn a_person_is_a_private_chat_and_a_group_is_none() {
        let group = "9Tq0wVpGn2yO0kUb7b9u6cJfQ0lB3yqfI3E8V7r4b1Y=";
        let in_hermes = format!("group:{group}");
        let id = "7f3c0c1e-2c4e-4f0e-9e6b-0a1b2c3d4e5f";
        for (variable, written, expected) in [
            ("TELEGRAM_HOME_CHANNEL", "7", "telegram Dm 7"),
            ("TELEGRAM_HOME_CHANNEL", "-1007", "telegram Group -1007"),
            ("DISCORD_HOME_CHANNEL", "51", "discord Group 51"),
            ("SLACK_HOME_CHANNEL", "C0GENERAL", "slack Group C0GENERAL"),
            ("SLACK_HOME_CHANNEL", "D0ALICE", "slack Dm D0ALICE"),
            (
                "SIGNAL_HOME_CHANNEL",
                "+4915112345678",
                "signal Dm +4915112345678",
            ),
            ("SIGNAL_HOME_CHANNEL", id, &format!("signal Dm {id}")),
            (
                "SIGNAL_HOME_CHANNEL",
                group,
                &format!("signal Group {group}"),
            ),
            (
                "SIGNAL_HOME_CHANNEL",
                &in_hermes,
                &format!("signal Group {group}"),
            ),
            ("MATRIX_HOME_CHANNEL", "!a:b", "matrix Group !a:b"),
            ("MATRIX_HOME_ROOM", "!a:b", "matrix Group !a:b"),
        ] {
            assert_eq!(homes(&[(variable, written)]), [expected], "{variable}");
        }
    }

    #[test]
    #[cfg(feature = "whatsapp")]
    fn whatsapp_has_a_home_by_either_way() {
        for (variable, written, expected) in [
            (
                "WHATSAPP_CLOUD_HOME_CHANNEL",
                "+49 170 1234567",
                "whatsapp Dm 491701234567",
            ),
            (
                "WHATSAPP_CLOUD_HOME_CHANNEL",
                "US.13491",
                "whatsapp Dm US.13491",
            ),
            (
                "WHATSAPP_CLOUD_HOME_CHANNEL",
                "Y2FwaV9ncm91cA",
                "whatsapp Group Y2FwaV9ncm91cA",
            ),
            (
                "WHATSAPP_HOME_CHANNEL",
                "491701234567",
                "whatsapp/bridge Dm 491701234567@s.whatsapp.net",
            ),
            (
                "WHATSAPP_HOME_CHANNEL",
                "12036@g.us",
                "whatsapp/bridge Group 12036@g.us",
            ),
        ] {
            assert_eq!(homes(&[(variable, written)]), [expected], "{variable}");
        }
        assert_eq!(homes(&[("WHATSAPP_HOME_CHANNEL", "Alice")]), [""; 0]);
        let both = [
            ("WHATSAPP_HOME_CHANNEL", "491701234567"),
            ("WHATSAPP_CLOUD_HOME_CHANNEL", "491701234567"),
        ];
        assert_eq!(homes(&both), ["whatsapp Dm 491701234567"]);
        let bridge = [&both[..], &[("WHATSAPP_ENABLED", "true")]].concat();
        assert_eq!(
            homes(&bridge),
            ["whatsapp/bridge Dm 491701234567@s.whatsapp.net"],
            "the one that is in use"
        );
    }
}
