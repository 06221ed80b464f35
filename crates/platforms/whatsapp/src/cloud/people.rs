//! By which name a person is kept.
//!
//! Everybody is known by their business-scoped id, because a number may be hidden. Operators list people
//! by number all the same, so whoever shows a listed number is known by that number, and from then on
//! also when they hide it: an id belongs to one number, and a new number makes a new id. The note that
//! says so is on the disk before the message is handed out.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_chat::{AdapterState, AdapterStateError, SaveDurability};
use hermetic_types::{ChatId, UserId};
use tokio::sync::OnceCell;

use super::message::CloudSender;
use crate::person::{BusinessScopedId, PhoneNumber};

/// What the keys of notes begin with; the id follows, and the value is the number.
const PREFIX: &str = "number:";

#[derive(Debug)]
pub(crate) struct CloudPeople {
    listed: BTreeSet<PhoneNumber>,
    state: Arc<dyn AdapterState>,
    /// Read when the first person writes.
    known: OnceCell<Mutex<ShownNumbers>>,
    /// Held by whoever changes notes. Requests come beside each other, and of two people who show one number at
    /// the same time each would find nobody else noted, and both would stay known by it.
    noting: tokio::sync::Mutex<()>,
}

/// The listed numbers that were shown, by the id of who showed them.
type ShownNumbers = HashMap<BusinessScopedId, PhoneNumber>;

impl CloudPeople {
    pub(crate) fn new(listed: BTreeSet<PhoneNumber>, state: Arc<dyn AdapterState>) -> Self {
        Self {
            listed,
            state,
            known: OnceCell::new(),
            noting: tokio::sync::Mutex::default(),
        }
    }

    /// Who somebody is who shows this id, this number or both. Nobody, if they show neither.
    pub(crate) async fn identify(
        &self,
        id: Option<BusinessScopedId>,
        number: Option<PhoneNumber>,
    ) -> Result<Option<CloudSender>, AdapterStateError> {
        let known = self.known().await?;
        let (user, private) = match (id, number) {
            (None, None) => return Ok(None),
            (None, Some(number)) => {
                let chat = id_of(&lock(known), &number).unwrap_or(number.as_str().to_owned());
                (number.as_str().to_owned(), chat)
            }
            (Some(id), Some(number)) => {
                self.note(known, &id, &number).await?;
                let listed = self.listed.contains(&number);
                let user = if listed { number.as_str() } else { id.as_str() };
                (user.to_owned(), id.as_str().to_owned())
            }
            (Some(id), None) => {
                let number = lock(known).get(&id).cloned();
                let number = number.filter(|number| self.listed.contains(number));
                let user = number.as_ref().map_or(id.as_str(), PhoneNumber::as_str);
                (user.to_owned(), id.as_str().to_owned())
            }
        };
        Ok(UserId::new(user)
            .ok()
            .zip(ChatId::new(private).ok())
            .map(|(user, private)| CloudSender { user, private }))
    }

    /// The private chat with a person, as far as they are known.
    pub(crate) async fn private_chat(&self, user: &UserId) -> Option<ChatId> {
        let text = user.as_str();
        if BusinessScopedId::read(text).is_some() {
            return ChatId::new(text).ok();
        }
        let number = PhoneNumber::read(text)?;
        let known = self.known().await.ok();
        let id = known.and_then(|known| id_of(&lock(known), &number));
        ChatId::new(id.unwrap_or(number.as_str().to_owned())).ok()
    }

    /// Keeps what was shown in step with what is noted. Notes are kept of listed numbers only, so
    /// strangers cannot fill the store.
    async fn note(
        &self,
        known: &Mutex<ShownNumbers>,
        id: &BusinessScopedId,
        number: &PhoneNumber,
    ) -> Result<(), AdapterStateError> {
        let _alone = self.noting.lock().await;
        // The number has gone over to somebody else: who had it before is not known by it any more.
        let before: Vec<_> = {
            let known = lock(known);
            let others = known
                .iter()
                .filter(|(other, had)| *other != id && *had == number);
            others.map(|(other, _)| other.clone()).collect()
        };
        for other in before {
            // The disk first: a note that is gone from memory alone would be back after a restart,
            // and the number would be two people's.
            self.state.remove(&key(&other)).await?;
            lock(known).remove(&other);
        }
        let is_noted = lock(known).get(id) == Some(number);
        if self.listed.contains(number) && !is_noted {
            let key = key(id);
            let saved = self
                .state
                .save(&key, number.as_str(), SaveDurability::OnDisk);
            saved.await?;
            lock(known).insert(id.clone(), number.clone());
        } else if !is_noted && lock(known).contains_key(id) {
            self.state.remove(&key(id)).await?;
            lock(known).remove(id);
        }
        Ok(())
    }

    async fn known(&self) -> Result<&Mutex<ShownNumbers>, AdapterStateError> {
        let read = || async {
            let notes = self.state.load_all(PREFIX).await?.into_iter();
            let notes = notes.filter_map(|(key, number)| {
                let id = BusinessScopedId::read(key.strip_prefix(PREFIX)?)?;
                Some((id, PhoneNumber::read(&number)?))
            });
            Ok(Mutex::new(notes.collect()))
        };
        self.known.get_or_try_init(read).await
    }
}

fn key(id: &BusinessScopedId) -> String {
    format!("{PREFIX}{}", id.as_str())
}

fn id_of(known: &ShownNumbers, number: &PhoneNumber) -> Option<String> {
    let mut all = known.iter();
    let found = all.find(|(_, known)| *known == number);
    found.map(|(id, _)| id.as_str().to_owned())
}

fn lock(known: &Mutex<ShownNumbers>) -> MutexGuard<'_, ShownNumbers> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::BoxFuture;
    use hermetic_chat::{InMemoryState, StateChange};

    const ALICE: (&str, &str) = ("US.1", "15550001111");

    fn people(state: &Arc<InMemoryState>) -> CloudPeople {
        let listed = BTreeSet::from([PhoneNumber::read(ALICE.1).unwrap()]);
        CloudPeople::new(listed, Arc::clone(state) as Arc<dyn AdapterState>)
    }

    async fn who(people: &CloudPeople, id: Option<&str>, number: Option<&str>) -> (String, String) {
        let id = id.map(|id| BusinessScopedId::read(id).unwrap());
        let number = number.map(|number| PhoneNumber::read(number).unwrap());
        let origin = people.identify(id, number).await.unwrap().unwrap();
        (origin.user.to_string(), origin.private.to_string())
    }

    fn pair(user: &str, chat: &str) -> (String, String) {
        (user.to_owned(), chat.to_owned())
    }

    #[tokio::test]
    async fn a_listed_number_names_its_owner_also_when_it_is_hidden() {
        let state = Arc::new(InMemoryState::default());
        let (id, number) = ALICE;
        let first = people(&state);
        assert_eq!(who(&first, Some(id), None).await, pair(id, id));
        assert_eq!(who(&first, Some(id), Some(number)).await, pair(number, id));
        let next = people(&state);
        assert_eq!(who(&next, Some(id), None).await, pair(number, id));
        assert_eq!(who(&next, None, Some(number)).await, pair(number, id));
        let user = UserId::new(number).unwrap();
        assert_eq!(next.private_chat(&user).await.unwrap().as_str(), id);
    }

    #[tokio::test]
    async fn a_number_that_went_over_to_another_person_names_only_them() {
        let state = Arc::new(InMemoryState::default());
        let (id, number) = ALICE;
        let people = people(&state);
        who(&people, Some(id), Some(number)).await;
        assert_eq!(
            who(&people, Some("US.2"), Some(number)).await,
            pair(number, "US.2")
        );
        assert_eq!(who(&people, Some(id), None).await, pair(id, id));
        assert_eq!(state.load_all(PREFIX).await.unwrap().len(), 1);
        // The same id with a number that nobody listed.
        assert_eq!(
            who(&people, Some("US.2"), Some("15559990000")).await,
            pair("US.2", "US.2")
        );
        assert_eq!(state.load_all(PREFIX).await.unwrap().len(), 0);
    }

    /// A disk that takes its time, so that others come in between.
    #[derive(Debug, Default)]
    struct SlowState(InMemoryState);

    impl AdapterState for SlowState {
        fn load<'a>(
            &'a self,
            key: &'a str,
        ) -> BoxFuture<'a, Result<Option<String>, AdapterStateError>> {
            self.0.load(key)
        }

        fn load_all<'a>(
            &'a self,
            prefix: &'a str,
        ) -> BoxFuture<'a, Result<Vec<(String, String)>, AdapterStateError>> {
            self.0.load_all(prefix)
        }

        fn save<'a>(
            &'a self,
            key: &'a str,
            value: &'a str,
            saving: SaveDurability,
        ) -> BoxFuture<'a, Result<(), AdapterStateError>> {
            Box::pin(async move {
                tokio::task::yield_now().await;
                self.0.save(key, value, saving).await
            })
        }

        fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), AdapterStateError>> {
            Box::pin(async move {
                tokio::task::yield_now().await;
                self.0.remove(key).await
            })
        }

        fn save_together<'a>(
            &'a self,
            changes: &'a [StateChange],
        ) -> BoxFuture<'a, Result<(), AdapterStateError>> {
            self.0.save_together(changes)
        }
    }

    #[tokio::test]
    async fn a_number_shown_by_two_people_at_the_same_time_names_one() {
        let (id, number) = ALICE;
        let state = Arc::new(SlowState::default());
        let listed = BTreeSet::from([PhoneNumber::read(number).unwrap()]);
        let people = CloudPeople::new(listed, Arc::clone(&state) as Arc<dyn AdapterState>);
        tokio::join!(
            who(&people, Some(id), Some(number)),
            who(&people, Some("US.2"), Some(number)),
        );
        assert_eq!(state.load_all(PREFIX).await.unwrap().len(), 1);
        let (one, other) = (
            who(&people, Some(id), None).await.0,
            who(&people, Some("US.2"), None).await.0,
        );
        assert!((one == number) != (other == number), "{one} and {other}");
    }

    #[tokio::test]
    async fn strangers_leave_nothing_in_the_store() {
        let state = Arc::new(InMemoryState::default());
        let people = people(&state);
        for n in 0..100 {
            let (id, number) = (format!("US.9{n}"), format!("1555000{n:04}9"));
            assert_eq!(who(&people, Some(&id), Some(&number)).await, pair(&id, &id));
        }
        assert_eq!(state.load_all("").await.unwrap().len(), 0);
        assert!(people.identify(None, None).await.unwrap().is_none());
    }
}
