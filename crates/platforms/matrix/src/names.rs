//! The names that Matrix gives: people, rooms and events.
//!
//! Each begins with a sign of its own, and a room's does not need to say which server made it. Whatever
//! does not look like one never becomes part of an address.

use hermetic_chat::SendFailure;
use hermetic_types::{ChatPlace, MessageId};

/// A person: `@alice:example.org`.
pub(crate) fn is_user(name: &str) -> bool {
    let named = name.strip_prefix('@').and_then(|rest| rest.split_once(':'));
    named.is_some_and(|(local, server)| {
        !local.is_empty() && !server.is_empty() && !name.contains(char::is_whitespace)
    })
}

/// What stands before a person's server.
pub(crate) fn localpart(user: &str) -> &str {
    let bare = user.strip_prefix('@').unwrap_or(user);
    bare.split(':').next().unwrap_or(bare)
}

/// The server that a person belongs to.
pub(crate) fn server_of(user: &str) -> Option<&str> {
    user.split_once(':').map(|(_, server)| server)
}

pub(crate) fn is_room(name: &str) -> bool {
    name.len() > 1 && name.starts_with('!')
}

pub(crate) fn is_event(name: &str) -> bool {
    name.len() > 1 && name.starts_with('$')
}

/// The room that a place is in.
pub(crate) fn room_of(place: &ChatPlace) -> Result<&str, SendFailure> {
    let room = place.chat.as_str();
    is_room(room)
        .then_some(room)
        .ok_or_else(|| not_ours("room", room))
}

pub(crate) fn event_of(message: &MessageId) -> Result<&str, SendFailure> {
    let event = message.as_str();
    is_event(event)
        .then_some(event)
        .ok_or_else(|| not_ours("event", event))
}

pub(crate) fn not_ours(what: &str, name: &str) -> SendFailure {
    SendFailure::Refused {
        description: format!("{name:?} is no matrix {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_sign_and_a_person_a_server() {
        assert!(is_user("@alice:example.org") && is_user("@alice:[::1]:8448"));
        for none in [
            "",
            "@",
            "alice:example.org",
            "@alice",
            "@:x",
            "@a:",
            "@a b:c",
        ] {
            assert!(!is_user(none), "{none:?}");
        }
        assert!(is_room("!oJfv3-_AePj9P3Nv3pwOW0Qrz4VB3VwYhFZm6IxchQ8") && is_room("!a:b"));
        assert!(!is_room("!") && !is_room("#alias:example.org") && !is_event(".."));
        assert_eq!(localpart("@alice:example.org"), "alice");
        assert_eq!(
            server_of("@alice:example.org:8448"),
            Some("example.org:8448")
        );
    }
}
