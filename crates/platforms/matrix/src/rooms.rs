//! What is known of the rooms we are in.
//!
//! The homeserver tells what a room is like once, and then only what changes. So it is written down, before
//! the position in the stream of changes moves past it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_chat::{AdapterState, AdapterStateError, RecentKeys, SaveDurability};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use crate::config::EncryptionMode;
use crate::sync::{JoinedRoom, RoomEvent};

/// What the keys of kept rooms begin with.
const PREFIX: &str = "room:";
/// Names of people that are remembered; the homeserver sends one along with what they say.
const MOST_NAMES: usize = 2000;
/// How much of a name is kept.
const NAME_CHARACTERS: usize = 128;
/// Threads of which it is known whether we take part. One that is forgotten is asked for again.
const MOST_THREADS: usize = 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RoomFacts {
    /// The event that brought us here. What was said before it was not said to us.
    pub(crate) since_event: Option<String>,
    /// Once a room is encrypted, it stays so.
    pub(crate) is_encrypted: bool,
    pub(crate) joined: u64,
    pub(crate) invited: u64,
    /// The other one, where there is one.
    pub(crate) with: Option<String>,
}

#[derive(Debug)]
pub(crate) struct KnownRooms {
    store: Arc<dyn AdapterState>,
    is_loaded: OnceCell<()>,
    known: Mutex<HashMap<String, RoomFacts>>,
    names: Mutex<RecentKeys<(String, String), String>>,
    /// Threads by their first message, and whether we take part.
    threads: Mutex<RecentKeys<String, bool>>,
}

impl KnownRooms {
    pub(crate) fn new(store: Arc<dyn AdapterState>) -> Self {
        Self {
            store,
            is_loaded: OnceCell::new(),
            known: Mutex::default(),
            names: Mutex::new(RecentKeys::new(MOST_NAMES)),
            threads: Mutex::new(RecentKeys::new(MOST_THREADS)),
        }
    }

    /// Reads what an earlier process wrote down, once.
    pub(crate) async fn load(&self) -> Result<(), AdapterStateError> {
        let load = || async {
            for (key, value) in self.store.load_all(PREFIX).await? {
                let room = key.strip_prefix(PREFIX).unwrap_or_default().to_owned();
                // What cannot be read is not known, and asked for again.
                if let Ok(facts) = serde_json::from_str(&value) {
                    lock(&self.known).entry(room).or_insert(facts);
                }
            }
            Ok(())
        };
        self.is_loaded.get_or_try_init(load).await.copied()
    }

    pub(crate) fn facts(&self, room: &str) -> Option<RoomFacts> {
        lock(&self.known).get(room).cloned()
    }

    /// Writes down what is new.
    pub(crate) async fn note(
        &self,
        room: &str,
        facts: RoomFacts,
        saving: SaveDurability,
    ) -> Result<(), AdapterStateError> {
        if self.facts(room).as_ref() == Some(&facts) {
            return Ok(());
        }
        let written = serde_json::to_string(&facts).unwrap_or_default();
        self.store
            .save(&format!("{PREFIX}{room}"), &written, saving)
            .await?;
        lock(&self.known).insert(room.to_owned(), facts);
        Ok(())
    }

    /// We are not in it any more.
    pub(crate) async fn forget(&self, room: &str) -> Result<bool, AdapterStateError> {
        let was_known = lock(&self.known).remove(room).is_some();
        if was_known {
            self.store.remove(&format!("{PREFIX}{room}")).await?;
        }
        Ok(was_known)
    }

    /// A room in which we are alone with somebody and can speak.
    pub(crate) fn private_with(&self, user: &str, mode: EncryptionMode) -> Option<String> {
        let known = lock(&self.known);
        let rooms = known.iter().filter(|(_, facts)| {
            facts.is_private()
                && mode.speaks(facts.is_encrypted)
                && facts.with.as_deref() == Some(user)
        });
        // One of several, and always the same; an encrypted one before others, and one that they have
        // joined before one they have not.
        rooms
            .min_by_key(|(room, facts)| (!facts.is_encrypted, facts.invited, *room))
            .map(|(room, _)| room.clone())
    }

    pub(crate) fn encrypted(&self) -> usize {
        let known = lock(&self.known);
        known.values().filter(|facts| facts.is_encrypted).count()
    }

    /// Learns what people are called in a room.
    pub(crate) fn note_names<'a>(&self, room: &str, events: impl Iterator<Item = &'a RoomEvent>) {
        let mut names = lock(&self.names);
        for event in events {
            if let (Some((user, _)), Some(name)) = (event.membership(), event.text("displayname")) {
                let name = name.chars().take(NAME_CHARACTERS).collect();
                names.note((room.to_owned(), user.to_owned()), name);
            }
        }
    }

    pub(crate) fn name(&self, room: &str, user: &str) -> Option<String> {
        let key = (room.to_owned(), user.to_owned());
        let name = lock(&self.names).get(&key).cloned();
        name.filter(|name| !name.trim().is_empty())
    }

    pub(crate) fn is_our_thread(&self, root: &str) -> Option<bool> {
        lock(&self.threads).get(&root.to_owned()).copied()
    }

    pub(crate) fn note_thread(&self, root: &str, ours: bool) {
        lock(&self.threads).note(root.to_owned(), ours);
    }
}

impl RoomFacts {
    /// One person and us. Somebody who is invited counts: what is said is theirs to read soon.
    pub(crate) fn is_private(&self) -> bool {
        self.joined.saturating_add(self.invited) <= 2
    }

    /// What a sync says of the room, besides what is said in it.
    pub(crate) fn learn(&mut self, room: &JoinedRoom, us: &str) {
        self.joined = room.joined_members.unwrap_or(self.joined);
        self.invited = room.invited_members.unwrap_or(self.invited);
        // Who comes or goes may leave us with somebody else; whoever is left says so by the next words.
        let mut changes = room.timeline.iter().filter_map(RoomEvent::membership);
        if changes.any(|(user, _)| user != us) || !self.is_private() {
            self.with = None;
        }
        let others = room.heroes.iter().filter(|hero| *hero != us);
        if let ([hero], true) = (&others.collect::<Vec<_>>()[..], self.is_private()) {
            self.with = Some((*hero).clone());
        }
        let mut all = room.state.iter().chain(&room.timeline);
        self.is_encrypted |= all.any(RoomEvent::is_encryption);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use hermetic_chat::InMemoryState;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_is_known_of_a_room_outlives_the_process() {
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let rooms = KnownRooms::new(Arc::clone(&state));
        let facts = |joined, with: &str| RoomFacts {
            joined,
            with: Some(with.to_owned()),
            ..RoomFacts::default()
        };
        let alice = "@alice:example.org";
        for (room, facts) in [("!b", facts(2, alice)), ("!a", facts(3, alice))] {
            rooms.note(room, facts, SaveDurability::Soon).await.unwrap();
        }
        let encrypted = RoomFacts {
            is_encrypted: true,
            ..facts(2, alice)
        };
        rooms
            .note("!0", encrypted, SaveDurability::Soon)
            .await
            .unwrap();
        let next = KnownRooms::new(Arc::clone(&state));
        next.load().await.unwrap();
        let room = |mode| next.private_with(alice, mode);
        assert_eq!(room(EncryptionMode::Off).as_deref(), Some("!b"));
        assert_eq!(room(EncryptionMode::Optional).as_deref(), Some("!0"));
        assert_eq!(room(EncryptionMode::Required).as_deref(), Some("!0"));
        assert_eq!(next.encrypted(), 1);
        assert!(next.forget("!b").await.unwrap());
        assert!(!next.forget("!b").await.unwrap());
        assert_eq!(next.private_with(alice, EncryptionMode::Off), None);
    }

    #[test]
    fn a_room_that_was_encrypted_stays_so() {
        let event = RoomEvent::read(&json!({
            "type": "m.room.encryption", "event_id": "$1", "sender": "@a:b", "state_key": "",
            "content": { "algorithm": "m.megolm.v1.aes-sha2" },
        }));
        let room = JoinedRoom {
            timeline: event.into_iter().collect(),
            joined_members: Some(2),
            heroes: vec!["@a:b".to_owned()],
            ..JoinedRoom::default()
        };
        let mut facts = RoomFacts::default();
        facts.learn(&room, "@us:b");
        assert!(facts.is_encrypted);
        assert_eq!(facts.with.as_deref(), Some("@a:b"));
        facts.learn(&JoinedRoom::default(), "@us:b");
        assert!(facts.is_encrypted);
    }

    #[test]
    fn whoever_comes_or_goes_ends_what_is_known_of_a_private_room() {
        let left = RoomEvent::read(&json!({
            "type": "m.room.member", "event_id": "$1", "sender": "@alice:b", "state_key": "@alice:b",
            "content": { "membership": "leave" },
        }));
        let mut facts = RoomFacts {
            joined: 2,
            with: Some("@alice:b".to_owned()),
            ..RoomFacts::default()
        };
        let room = JoinedRoom {
            timeline: left.into_iter().collect(),
            joined_members: Some(2),
            ..JoinedRoom::default()
        };
        facts.learn(&room, "@us:b");
        assert_eq!(facts.with, None, "somebody else sits there now");
        let many = JoinedRoom {
            joined_members: Some(u64::MAX),
            invited_members: Some(3),
            ..JoinedRoom::default()
        };
        facts.learn(&many, "@us:b");
        assert!(!facts.is_private());
    }
}
