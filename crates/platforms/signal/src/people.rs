//! What a person is called.
//!
//! Signal names a person by an id that stays. A number may be hidden, may change, and may come to belong
//! to somebody else; allowlists hold numbers all the same, because that is what people know of each other.
//! So a person whom the operator listed goes by the name they are listed with, and everybody else by their
//! id. Which id a listed number belongs to is written down when it is first seen. Another person who shows
//! the same number later is a stranger until the operator says otherwise.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use hermetic_chat::{AdapterState, AdapterStateError, SaveDurability};
use hermetic_types::UserId;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use tracing::{debug, warn};

use crate::daemon::SignalDaemon;
use crate::envelope::{SignalAddress, is_number, is_uuid};
use crate::rpc::SignalCallError;

/// What the keys of pinned numbers begin with.
const PREFIX: &str = "number:";

#[derive(Debug)]
pub(crate) struct SignalPeople {
    number: String,
    /// Our own id, once it is known.
    uuid: OnceLock<String>,
    /// In the order in which a person's names are looked for.
    listed: Vec<ListedContact>,
    state: Arc<dyn AdapterState>,
    /// Listed numbers and the ids they belong to; nothing before they are loaded.
    pins: Mutex<Option<HashMap<String, String>>>,
}

#[derive(Debug)]
struct ListedContact {
    /// As the operator wrote it.
    written: UserId,
    name: ListedName,
}

#[derive(Debug, PartialEq, Eq)]
enum ListedName {
    Uuid(String),
    Number(String),
}

impl SignalPeople {
    pub(crate) fn new(number: &str, listed: &[UserId], state: Arc<dyn AdapterState>) -> Self {
        let listed = listed.iter().filter_map(|written| {
            let name = ListedName::read(written.as_str())?;
            let written = written.clone();
            Some(ListedContact { written, name })
        });
        Self {
            number: number.to_owned(),
            uuid: OnceLock::new(),
            listed: listed.collect(),
            state,
            pins: Mutex::new(None),
        }
    }

    pub(crate) fn us(&self) -> SignalAddress {
        SignalAddress {
            uuid: self.uuid.get().cloned(),
            number: Some(self.number.clone()),
        }
    }

    /// Whether this is how we are called ourselves.
    pub(crate) fn is_us(&self, name: &str) -> bool {
        name == self.number || self.uuid.get().is_some_and(|uuid| uuid == name)
    }

    /// The name somebody goes by. An error if whose a listed number is cannot be kept now: without that
    /// somebody who may speak would be a stranger.
    pub(crate) async fn user(
        &self,
        address: &SignalAddress,
    ) -> Result<Option<UserId>, AdapterStateError> {
        let pins = self.pins().await;
        if let (Some(uuid), Some(number)) = (&address.uuid, &address.number) {
            self.pin(pins, number, uuid).await?;
        } else {
            drop(pins);
        }
        for listed in &self.listed {
            let is_theirs = match &listed.name {
                ListedName::Uuid(uuid) => address.uuid.as_ref() == Some(uuid),
                ListedName::Number(number) => match &address.uuid {
                    Some(uuid) => self.pinned(number).await.as_ref() == Some(uuid),
                    None => address.number.as_ref() == Some(number),
                },
            };
            if is_theirs {
                return Ok(Some(listed.written.clone()));
            }
        }
        Ok(UserId::new(address.name()).ok())
    }

    /// The id behind a name, if it is known: of an id it is that id.
    pub(crate) async fn uuid_of(&self, name: &str) -> Option<String> {
        match ListedName::read(name)? {
            ListedName::Uuid(uuid) => Some(uuid),
            ListedName::Number(number) if number == self.number => self.uuid.get().cloned(),
            ListedName::Number(number) => self.pinned(&number).await,
        }
    }

    /// Asks Signal whose the listed numbers are, where that is not known yet: a sender who hides the
    /// number is known by it then. Not being told is no reason to stop.
    pub(crate) async fn look_up(&self, daemon: &SignalDaemon) {
        let mut unknown = Vec::new();
        for listed in &self.listed {
            if let ListedName::Number(number) = &listed.name
                && self.pinned(number).await.is_none()
            {
                unknown.push(number.clone());
            }
        }
        if self.uuid.get().is_none() {
            unknown.push(self.number.clone());
        }
        if unknown.is_empty() {
            return;
        }
        if let Err(error) = self.ask(daemon, &unknown).await {
            debug!(%error, "it could not be asked whose the listed numbers are");
        }
    }

    /// Asks Signal whose these numbers are.
    pub(crate) async fn ask(
        &self,
        daemon: &SignalDaemon,
        numbers: &[String],
    ) -> Result<(), SignalCallError> {
        let answer = daemon
            .call("getUserStatus", json!({ "recipient": numbers }))
            .await?;
        for status in answer.as_array().into_iter().flatten() {
            let Ok(status) = RawUserStatus::deserialize(status) else {
                continue;
            };
            let asked = status.number.or(status.recipient);
            let address = SignalAddress::new(status.uuid, asked);
            let Some((Some(uuid), Some(number))) = address.map(|known| (known.uuid, known.number))
            else {
                continue;
            };
            if number == self.number {
                // Whoever learned it first learned the same.
                let _ = self.uuid.set(uuid);
            } else {
                let pins = self.pins().await;
                if let Err(error) = self.pin(pins, &number, &uuid).await {
                    warn!(%error, "whose a listed number is could not be kept");
                }
            }
        }
        Ok(())
    }

    async fn pinned(&self, number: &str) -> Option<String> {
        let pins = self.pins().await;
        pins.as_ref()?.get(number).cloned()
    }

    /// Notes whose a listed number is, if nobody has it yet.
    async fn pin(
        &self,
        mut pins: MutexGuard<'_, Option<HashMap<String, String>>>,
        number: &str,
        uuid: &str,
    ) -> Result<(), AdapterStateError> {
        let is_listed =
            |listed: &ListedContact| listed.name == ListedName::Number(number.to_owned());
        let Some(pins) = pins.as_mut().filter(|_| self.listed.iter().any(is_listed)) else {
            return Ok(());
        };
        match pins.get(number) {
            Some(known) if known == uuid => {}
            Some(known) => warn!(
                known,
                other = uuid,
                "a listed number belongs to another account than before, which is let in only if its id \
                 is listed"
            ),
            None => {
                let key = format!("{PREFIX}{number}");
                // On the disk first, or a restart could give the number to whoever shows it next.
                self.state.save(&key, uuid, SaveDurability::OnDisk).await?;
                pins.insert(number.to_owned(), uuid.to_owned());
            }
        }
        Ok(())
    }

    /// As they are kept. Where they cannot be read, nobody is known by a number.
    async fn pins(&self) -> MutexGuard<'_, Option<HashMap<String, String>>> {
        let mut pins = self.pins.lock().await;
        if pins.is_none() {
            match self.load().await {
                Ok(loaded) => *pins = Some(loaded),
                Err(error) => warn!(%error, "whose the listed numbers are could not be read"),
            }
        }
        pins
    }

    async fn load(&self) -> Result<HashMap<String, String>, AdapterStateError> {
        let kept = self.state.load_all(PREFIX).await?.into_iter();
        let number = |key: String| key.strip_prefix(PREFIX).map(str::to_owned);
        Ok(kept
            .filter_map(|(key, uuid)| Some((number(key)?, uuid)))
            .collect())
    }
}

impl ListedName {
    fn read(text: &str) -> Option<Self> {
        if is_uuid(text) {
            return Some(Self::Uuid(text.to_ascii_lowercase()));
        }
        // As people write it, and as a file without quotes turns it into a number.
        let digits: String = text.chars().filter(|c| !" -()./".contains(*c)).collect();
        let number = match digits.starts_with('+') {
            true => digits,
            false => format!("+{digits}"),
        };
        is_number(&number).then_some(Self::Number(number))
    }
}

/// Whether this is a way to write a person.
pub(crate) fn names_a_person(text: &str) -> bool {
    ListedName::read(text).is_some()
}

#[derive(Deserialize)]
struct RawUserStatus {
    recipient: Option<String>,
    number: Option<String>,
    uuid: Option<String>,
}

/// For places: the fields by which somebody is written to.
pub(crate) fn recipient(name: &str) -> Option<Value> {
    (is_uuid(name) || is_number(name)).then(|| json!({ "recipient": [name] }))
}

#[cfg(test)]
#[path = "people_tests.rs"]
mod tests;
