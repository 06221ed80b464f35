//! What the homeserver hands over in one answer, read as far as we use it.
//!
//! A room or an event that cannot be read costs itself and nothing beside it: each is looked at alone.

use serde_json::{Map, Value, json};

use crate::names::{is_event, is_room, is_user};

/// Everything since the last position.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SyncBatch {
    /// The position after it.
    pub(crate) next: String,
    pub(crate) joined: Vec<JoinedRoom>,
    pub(crate) invitations: Vec<RoomInvitation>,
    /// Rooms that we are not in any more.
    pub(crate) left: Vec<String>,
    /// Events and rooms that could not be read.
    pub(crate) malformed: usize,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct JoinedRoom {
    pub(crate) id: String,
    /// What the room was like before the timeline, as far as it changed.
    pub(crate) state: Vec<RoomEvent>,
    pub(crate) timeline: Vec<RoomEvent>,
    /// There is more before the timeline, to be asked for from here.
    pub(crate) gap: Option<String>,
    pub(crate) joined_members: Option<u64>,
    pub(crate) invited_members: Option<u64>,
    /// Some of the members, without us.
    pub(crate) heroes: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct RoomInvitation {
    pub(crate) room: String,
    pub(crate) inviter: String,
    pub(crate) is_direct: bool,
    pub(crate) is_encrypted: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RoomEvent {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) sender: String,
    pub(crate) state_key: Option<String>,
    pub(crate) content: Map<String, Value>,
    /// When its homeserver says it was sent, in milliseconds.
    pub(crate) sent_at: u64,
    /// Of a redaction, where older rooms have it.
    pub(crate) redacts: Option<String>,
    /// We have written in the thread below it.
    pub(crate) has_our_thread: bool,
}

/// `None` if it is no answer to a sync at all.
pub(crate) fn read_sync(answer: &Value, us: &str) -> Option<SyncBatch> {
    let mut batch = SyncBatch {
        next: answer.get("next_batch")?.as_str()?.to_owned(),
        ..SyncBatch::default()
    };
    let rooms = |kind: &str| {
        let rooms = answer.get("rooms").and_then(|rooms| rooms.get(kind));
        rooms.and_then(Value::as_object).into_iter().flatten()
    };
    for (id, room) in rooms("join") {
        match is_room(id) {
            true => batch
                .joined
                .push(joined_room(id, room, &mut batch.malformed)),
            false => batch.malformed += 1,
        }
    }
    for (id, room) in rooms("invite") {
        match invitation(id, room, us) {
            Some(invitation) => batch.invitations.push(invitation),
            None => batch.malformed += 1,
        }
    }
    batch.left.extend(rooms("leave").map(|(id, _)| id.clone()));
    Some(batch)
}

/// The events of a list, and how many were none.
pub(crate) fn read_events(list: Option<&Value>, malformed: &mut usize) -> Vec<RoomEvent> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    let read: Vec<_> = list.map(RoomEvent::read).collect();
    *malformed += read.iter().filter(|event| event.is_none()).count();
    read.into_iter().flatten().collect()
}

fn joined_room(id: &str, room: &Value, malformed: &mut usize) -> JoinedRoom {
    let timeline = room.get("timeline");
    let is_limited = timeline.and_then(|timeline| timeline.get("limited"));
    let before = timeline.and_then(|timeline| timeline.get("prev_batch"));
    let summary = |name: &str| room.get("summary").and_then(|summary| summary.get(name));
    let heroes = summary("m.heroes").and_then(Value::as_array);
    let heroes = heroes.into_iter().flatten().filter_map(Value::as_str);
    JoinedRoom {
        id: id.to_owned(),
        state: read_events(events_of(room.get("state")), malformed),
        timeline: read_events(events_of(timeline), malformed),
        // Every answer names what lies before it; only where it says `limited` is something
        // missing.
        gap: before
            .and_then(Value::as_str)
            .filter(|_| is_limited.and_then(Value::as_bool) == Some(true))
            .map(str::to_owned),
        joined_members: summary("m.joined_member_count").and_then(Value::as_u64),
        invited_members: summary("m.invited_member_count").and_then(Value::as_u64),
        heroes: heroes.map(str::to_owned).collect(),
    }
}

fn events_of(list: Option<&Value>) -> Option<&Value> {
    list.and_then(|list| list.get("events"))
}

/// Who invites us is whoever made us an invited member; everything else here is what they say. The
/// homeserver puts the invitation itself behind what the inviter's server says of the room, which may hold
/// another one in somebody else's name: where two disagree, nobody is believed.
fn invitation(id: &str, room: &Value, us: &str) -> Option<RoomInvitation> {
    let events = room.get("invite_state")?.get("events")?.as_array()?;
    let kind = |event: &&Value, kind: &str| event["type"].as_str() == Some(kind);
    let mut all_ours = events.iter().filter(|event| {
        kind(event, "m.room.member")
            && event["state_key"].as_str() == Some(us)
            && event["content"]["membership"].as_str() == Some("invite")
    });
    let ours = all_ours.next_back()?;
    // Refused before anything is read of it: whoever may invite us is decided by this name.
    if all_ours.any(|other| other["sender"] != ours["sender"]) {
        return None;
    }
    let inviter = ours["sender"].as_str().filter(|sender| is_user(sender))?;
    let mut all = events.iter();
    Some(RoomInvitation {
        room: Some(id).filter(|id| is_room(id))?.to_owned(),
        inviter: inviter.to_owned(),
        is_direct: ours["content"]["is_direct"].as_bool() == Some(true),
        is_encrypted: all.any(|event| kind(&event, "m.room.encryption")),
    })
}

impl RoomEvent {
    pub(crate) fn read(event: &Value) -> Option<Self> {
        let text = |name: &str| event.get(name).and_then(Value::as_str);
        let thread = event.get("unsigned").and_then(|unsigned| {
            let relations = unsigned.get("m.relations")?.get("m.thread")?;
            relations.get("current_user_participated")?.as_bool()
        });
        Some(Self {
            id: text("event_id").filter(|id| is_event(id))?.to_owned(),
            kind: text("type")?.to_owned(),
            sender: text("sender").filter(|sender| is_user(sender))?.to_owned(),
            state_key: text("state_key").map(str::to_owned),
            content: event.get("content")?.as_object()?.clone(),
            sent_at: event
                .get("origin_server_ts")
                .and_then(Value::as_u64)
                .unwrap_or_default(),
            redacts: text("redacts").map(str::to_owned),
            has_our_thread: thread == Some(true),
        })
    }

    /// As [`Self::read`] reads it, but for what the homeserver adds.
    pub(crate) fn written(&self) -> Value {
        json!({
            "type": self.kind, "event_id": self.id, "sender": self.sender,
            "origin_server_ts": self.sent_at, "content": self.content,
        })
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.content.get(name).and_then(Value::as_str)
    }

    /// What a message is to read from now on, if this is an edit.
    pub(crate) fn new_content(&self) -> Option<&Map<String, Value>> {
        self.content.get("m.new_content")?.as_object()
    }

    /// Whether it switches encryption on.
    pub(crate) fn is_encryption(&self) -> bool {
        self.kind == "m.room.encryption" && self.state_key.as_deref() == Some("")
    }

    /// Whose membership it tells, and what that is.
    pub(crate) fn membership(&self) -> Option<(&str, &str)> {
        let is_member = self.kind == "m.room.member";
        let member = self.state_key.as_deref().filter(|_| is_member)?;
        Some((member, self.text("membership")?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_cannot_be_read_costs_nothing_beside_it() {
        let event =
            json!({ "type": "m.room.message", "event_id": "$1", "sender": "@a:b", "content": {} });
        let answer = json!({ "next_batch": "s2", "rooms": {
            "join": {
                "!a": { "timeline": { "events": [7, event, { "type": "m.room.message" }], "limited": true,
                    "prev_batch": "s1" }, "summary": { "m.joined_member_count": 2 } },
                "a room": {},
                "!b": "nothing",
            },
            "invite": { "!c": { "invite_state": { "events": [
                { "type": "m.room.member", "state_key": "@us:b", "sender": "@a:b",
                  "content": { "membership": "invite", "is_direct": true } },
                { "type": "m.room.encryption", "state_key": "", "sender": "@a:b", "content": {} },
            ] } }, "!d": { "invite_state": { "events": "none" } } },
            "leave": { "!e": {} },
        } });
        let batch = read_sync(&answer, "@us:b").unwrap();
        assert_eq!((batch.next.as_str(), batch.malformed), ("s2", 4));
        let rooms: Vec<_> = batch.joined.iter().map(|room| room.id.as_str()).collect();
        assert_eq!(rooms, ["!a", "!b"]);
        assert_eq!(batch.joined[0].timeline.len(), 1);
        assert_eq!(batch.joined[0].gap.as_deref(), Some("s1"));
        assert_eq!(
            batch.invitations,
            [RoomInvitation {
                room: "!c".to_owned(),
                inviter: "@a:b".to_owned(),
                is_direct: true,
                is_encrypted: true
            }]
        );
        assert_eq!(batch.left, ["!e"]);
        assert_eq!(read_sync(&json!({ "rooms": {} }), "@us:b"), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in r#"[{}\[\]",:a-z0-9!$@_.]{0,200}"#) {
            if let Ok(answer) = serde_json::from_str(&text) {
                read_sync(&answer, "@us:b");
            }
        }
    }

    #[test]
    fn an_invitation_in_somebody_elses_name_is_none() {
        let invites = |senders: &[&str]| {
            let events: Vec<_> = senders
                .iter()
                .map(|sender| {
                    json!({ "type": "m.room.member", "state_key": "@us:b", "sender": sender,
                        "content": { "membership": "invite", "is_direct": true } })
                })
                .collect();
            invitation(
                "!a",
                &json!({ "invite_state": { "events": events } }),
                "@us:b",
            )
        };
        // What the inviter's server says of the room comes before the invitation itself.
        assert_eq!(invites(&["@alice:b", "@mallory:evil"]), None);
        let twice = invites(&["@mallory:evil", "@mallory:evil"]).unwrap();
        assert_eq!(twice.inviter, "@mallory:evil");
    }
}
