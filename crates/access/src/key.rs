//! The key of a conversation.
//!
//! `agent:<profile>:<account>:dm:<chat>[:<thread>]` in private, and in groups
//! `agent:<profile>:<account>:<kind>:<chat>[:<thread>[:<user>]]`, where a platform's own account is
//! written as the platform. A sandbox hangs on this key, so
//! two conversations must never share one. Hence two deliberate differences from the keys Hermes
//! makes: whatever is not plainly harmless in an id is escaped, and a user without a thread leaves
//! the thread's place empty (`…:-100::42`), because topic 42 and user 42 are not the same.

use std::fmt::Write;

use hermetic_types::{AccountId, ChatKind, ChatPlace, ConversationKey, JobId, UserId};

use crate::AccessSettings;

pub(crate) fn conversation(
    settings: &AccessSettings,
    account: &AccountId,
    place: &ChatPlace,
    user: &UserId,
) -> ConversationKey {
    let mut key = String::from("agent:");
    escape(&settings.profile, &mut key);
    write!(key, ":{account}:{}", place.kind.name()).expect("writing to a String does not fail");
    key.push(':');
    escape(place.chat.as_str(), &mut key);

    let own = speaks_alone(settings, place);
    if place.thread.is_some() || own {
        key.push(':');
    }
    if let Some(thread) = &place.thread {
        escape(thread.as_str(), &mut key);
    }
    if own {
        key.push(':');
        escape(user.as_str(), &mut key);
    }
    ConversationKey::new(key)
}

/// The key of a scheduled job's own conversation, and with it of its sandbox.
pub(crate) fn job(settings: &AccessSettings, account: &AccountId, job: &JobId) -> ConversationKey {
    let mut profile = String::new();
    escape(&settings.profile, &mut profile);
    ConversationKey::of_job(&profile, account, job)
}

/// Whether each member of a group has a conversation of their own.
fn speaks_alone(settings: &AccessSettings, place: &ChatPlace) -> bool {
    place.kind != ChatKind::Dm
        && settings.group_sessions_per_user
        && (place.thread.is_none() || settings.thread_sessions_per_user)
}

fn escape(id: &str, key: &mut String) {
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.@+".contains(&byte) {
            key.push(char::from(byte));
        } else {
            write!(key, "%{byte:02X}").expect("writing to a String does not fail");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use hermetic_types::{ChatId, Platform, ThreadId};
    use proptest::prelude::*;

    use super::*;

    fn key(
        settings: &AccessSettings,
        kind: ChatKind,
        chat: &str,
        thread: Option<&str>,
        user: &str,
    ) -> String {
        let place = ChatPlace {
            chat: ChatId::new(chat).unwrap(),
            kind,
            thread: thread.map(|thread| ThreadId::new(thread).unwrap()),
        };
        conversation(
            settings,
            &Platform::Telegram.into(),
            &place,
            &UserId::new(user).unwrap(),
        )
        .as_str()
        .to_owned()
    }

    #[test]
    fn keys_read_as_hermes_users_know_them() {
        let default = AccessSettings::default();
        let together = AccessSettings {
            group_sessions_per_user: false,
            ..AccessSettings::default()
        };
        let apart = AccessSettings {
            thread_sessions_per_user: true,
            ..AccessSettings::default()
        };
        let table = [
            (
                &default,
                ChatKind::Dm,
                "42",
                None,
                "agent:main:telegram:dm:42",
            ),
            (
                &default,
                ChatKind::Dm,
                "42",
                Some("7"),
                "agent:main:telegram:dm:42:7",
            ),
            (
                &default,
                ChatKind::Group,
                "-100",
                None,
                "agent:main:telegram:group:-100::42",
            ),
            (
                &default,
                ChatKind::Group,
                "-100",
                Some("7"),
                "agent:main:telegram:group:-100:7",
            ),
            (
                &together,
                ChatKind::Group,
                "-100",
                None,
                "agent:main:telegram:group:-100",
            ),
            (
                &apart,
                ChatKind::Group,
                "-100",
                Some("7"),
                "agent:main:telegram:group:-100:7:42",
            ),
            (
                &default,
                ChatKind::Channel,
                "a:b",
                None,
                "agent:main:telegram:channel:a%3Ab::42",
            ),
        ];
        for (settings, kind, chat, thread, expected) in table {
            assert_eq!(key(settings, kind, chat, thread, "42"), expected);
        }
    }

    #[test]
    fn two_bots_in_one_chat_hold_two_conversations() {
        let place = ChatPlace {
            chat: ChatId::from(42),
            kind: ChatKind::Dm,
            thread: None,
        };
        let work = "telegram/work".parse().unwrap();
        let key = conversation(&AccessSettings::default(), &work, &place, &UserId::from(42));
        assert_eq!(key.as_str(), "agent:main:telegram/work:dm:42");
        assert_eq!(key.platform(), Some(Platform::Telegram));
    }

    #[test]
    fn a_topic_is_not_a_user_of_the_same_number() {
        let settings = AccessSettings::default();
        assert_ne!(
            key(&settings, ChatKind::Group, "-100", Some("42"), "7"),
            key(&settings, ChatKind::Group, "-100", None, "42"),
        );
    }

    proptest! {
        /// Ids made of the very characters a forger would use.
        #[test]
        fn crafted_ids_never_meet(
            one in crafted(), two in crafted(), per_user: bool, per_thread: bool,
        ) {
            let settings = AccessSettings {
                group_sessions_per_user: per_user,
                thread_sessions_per_user: per_thread,
                ..AccessSettings::default()
            };
            let mut seen = HashMap::new();
            for (kind, chat, thread, user) in [one, two] {
                let place = ChatPlace {
                    chat: ChatId::new(chat.clone()).unwrap(),
                    kind,
                    thread: thread.clone().map(|thread| ThreadId::new(thread).unwrap()),
                };
                let shared = !speaks_alone(&settings, &place);
                let who = if shared { None } else { Some(user.clone()) };
                let key = key(&settings, kind, &chat, thread.as_deref(), &user);
                let read = ConversationKey::new(key.clone()).platform();
                prop_assert_eq!(read, Some(Platform::Telegram));
                let meant = (kind, chat, thread, who);
                prop_assert_eq!(seen.entry(key).or_insert_with(|| meant.clone()), &meant);
            }
        }
    }

    fn crafted() -> impl Strategy<Value = (ChatKind, String, Option<String>, String)> {
        let id = "[:%0-2aA\u{e9}]{1,3}";
        let kind = prop_oneof![
            Just(ChatKind::Dm),
            Just(ChatKind::Group),
            Just(ChatKind::Thread)
        ];
        (kind, id, proptest::option::of(id), id)
    }
}
