//! Encrypted rooms: what is asked of the homeserver about keys, what is sealed before it leaves, and what
//! becomes of events that cannot be read.
//!
//! A room's key comes from device to device and may be later than the first words under it. Words without
//! a key are kept until it comes, then heard as if they had just been said. Somebody whose words stay
//! unread is told so, once an hour: silence would look like listening.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermetic_chat::{AdapterStateError, SaveDurability, SendFailure};
use hermetic_types::{Timestamp, UpdateId, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing::{debug, info, warn};

use crate::cipher_error::{CipherError, Undecryptable};
use crate::config::EncryptionMode;
use crate::encryption::{KeyRequest, RoomCipher};
use crate::receive::{MatrixTrouble, SyncArrival};
use crate::session::SessionError;
use crate::sync::{JoinedRoom, RoomEvent};
use crate::wire::{MatrixCallError, MatrixRoute};
use crate::{HomeserverCredentials, MatrixAdapter, content};

/// What the names of unread events begin with.
const PREFIX: &str = "unread:";
/// Events that wait for a key at one time.
const MOST_UNREAD: usize = 200;
/// How long a key may take to be of use.
const KEY_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Between two times that somebody is told.
const TOLD_AGAIN: Duration = Duration::from_secs(3600);
/// People to whom a room's key is handed. In larger rooms everybody reads along, sealed or not.
const MOST_MEMBERS: usize = 1000;
/// Rounds of requests after one sync; each answer may make the next one due.
const ROUNDS: usize = 4;

const UNREADABLE: &str = "I could not decrypt what you wrote: its key has not reached me. Please send it \
                          again. If that does not help, restart your app, or write to me in a room \
                          without encryption.";

/// What is remembered of encrypted rooms.
#[derive(Debug, Default)]
pub(crate) struct EncryptedRooms {
    /// Who is in a room, until somebody comes or goes.
    members: Mutex<HashMap<String, Arc<Vec<String>>>>,
    /// How often somebody came or went.
    changes: AtomicU64,
    /// When somebody was told last that their words stay unread.
    told: Mutex<HashMap<String, Timestamp>>,
    /// Events that waited for a key and are handed out.
    handed_out: Mutex<HashSet<String>>,
    is_signed: tokio::sync::OnceCell<()>,
}

/// An event that waits for its key.
#[derive(Debug, Serialize, Deserialize)]
struct UnreadEvent {
    room: String,
    event: Value,
    since: i64,
    is_told: bool,
}

impl EncryptedRooms {
    /// Forgets who is in a room if a sync says that this may have changed.
    pub(crate) fn note_sync(&self, room: &JoinedRoom) {
        let mut all = room.state.iter().chain(&room.timeline);
        if room.gap.is_some() || all.any(|event| event.kind == "m.room.member") {
            self.changes.fetch_add(1, Ordering::SeqCst);
            lock(&self.members).remove(&room.id);
        }
    }
}

impl MatrixAdapter {
    /// Our keys, where encrypted rooms are spoken.
    pub(crate) async fn cipher(&self) -> Result<Option<&RoomCipher>, SessionError> {
        if self.encryption == EncryptionMode::Off {
            return Ok(None);
        }
        let session = self.session().await?;
        let device = session.device.clone().ok_or(SessionError::NoDevice)?;
        let open = || {
            let (state, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
            async move { RoomCipher::open(state, clock, &session.user, &device, self.trust).await }
        };
        Ok(Some(self.cipher.get_or_try_init(open).await?))
    }

    /// Takes over the keys that a sync brought and asks for what is due. Whether something may be readable
    /// now that was not.
    pub(crate) async fn take_keys(&self, answer: &Value) -> Result<bool, SessionError> {
        let Some(cipher) = self.cipher().await? else {
            return Ok(false);
        };
        let taken = cipher.take_sync(answer).await?;
        if let Err(error) = self.send_due_requests(cipher).await {
            warn!(account = %self.account, %error, "keys could not be exchanged; tried again with the next sync");
        } else if let Err(error) = self.sign_device(cipher).await {
            warn!(account = %self.account, %error, "the device could not be signed; people may be shown a warning beside it");
        }
        Ok(taken.room_keys > 0)
    }

    async fn send_due_requests(&self, cipher: &RoomCipher) -> Result<(), SessionError> {
        let _alone = cipher.asking().await;
        for _ in 0..ROUNDS {
            let due = cipher.due_requests().await?;
            if due.is_empty() {
                break;
            }
            for request in due {
                self.ask_about_keys(cipher, &request).await?;
            }
        }
        Ok(())
    }

    async fn ask_about_keys(
        &self,
        cipher: &RoomCipher,
        request: &KeyRequest,
    ) -> Result<(), SessionError> {
        let answer = self.patiently::<Value>(&request.route, |r| r.json(&request.body));
        Ok(cipher.answered(request, &answer.await?).await?)
    }

    /// Makes our device one that we signed ourselves, once in a process: apps warn of others.
    async fn sign_device(&self, cipher: &RoomCipher) -> Result<(), SessionError> {
        let sign = || async {
            // Asked first, so that an identity which was made elsewhere is known and stays.
            let session = self.session().await?;
            cipher.track(std::slice::from_ref(&session.user)).await?;
            self.send_due_requests(cipher).await?;
            for request in cipher.bootstrap().await? {
                let asked = self.ask_about_keys(cipher, &request).await;
                match asked {
                    Err(SessionError::Call(MatrixCallError::Refused { status: 401, .. }))
                        if request.needs_password() =>
                    {
                        self.ask_with_password(cipher, &request).await?;
                    }
                    asked => asked?,
                }
            }
            Ok::<_, SessionError>(())
        };
        let signed = self.encrypted_rooms.is_signed.get_or_try_init(sign).await;
        match signed {
            // Whoever cannot be signed is asked to be believed by fingerprint, and not at every sync.
            Err(SessionError::Call(MatrixCallError::Refused { .. })) => {
                let _ = self.encrypted_rooms.is_signed.set(());
                signed.map(drop)
            }
            signed => signed.map(drop),
        }
    }

    async fn ask_with_password(
        &self,
        cipher: &RoomCipher,
        request: &KeyRequest,
    ) -> Result<(), SessionError> {
        let HomeserverCredentials::Password { password, .. } = &self.credentials else {
            let status = 401;
            let description = "our identity cannot be made without a password".to_owned();
            let code = "M_FORBIDDEN".to_owned();
            return Err(MatrixCallError::Refused {
                status,
                code,
                description,
            }
            .into());
        };
        let session = self.session().await?;
        let mut request = request.clone();
        request.body["auth"] = json!({
            "type": "m.login.password", "password": password.expose(),
            "identifier": { "type": "m.id.user", "user": session.user },
        });
        self.ask_about_keys(cipher, &request).await
    }

    /// Seals what is said in an encrypted room: everybody who is there gets the key first.
    pub(crate) async fn seal(
        &self,
        room: &str,
        kind: &str,
        content: &Value,
    ) -> Result<Value, SendFailure> {
        match self.try_to_seal(room, kind, content).await {
            Ok(Ok(sealed)) => Ok(sealed),
            Ok(Err(members)) => Err(SendFailure::Refused {
                description: format!(
                    "{members} people are in this encrypted room, and keys are handed to at most {MOST_MEMBERS}"
                ),
            }),
            Err(error) => match SendFailure::from(error) {
                // Whatever became of the keys, the message certainly did not leave.
                SendFailure::Uncertain(error) => Err(SendFailure::NotSent(error)),
                failure => Err(failure),
            },
        }
    }

    /// The sealed content, or how many people are too many.
    async fn try_to_seal(
        &self,
        room: &str,
        kind: &str,
        content: &Value,
    ) -> Result<Result<Value, usize>, SessionError> {
        let cipher = self.cipher().await?.ok_or(SessionError::NoDevice)?;
        let _alone = cipher.sealing().await;
        let members = self.members(room).await?;
        if members.len() > MOST_MEMBERS {
            return Ok(Err(members.len()));
        }
        cipher.track(&members).await?;
        self.send_due_requests(cipher).await?;
        if let Some(claim) = cipher.missing_channels(&members).await? {
            self.ask_about_keys(cipher, &claim).await?;
        }
        for request in cipher.share(room, &members).await? {
            self.ask_about_keys(cipher, &request).await?;
        }
        Ok(Ok(cipher.encrypt(room, kind, content).await?))
    }

    /// Who reads what is said in a room: whoever is there or invited.
    async fn members(&self, room: &str) -> Result<Arc<Vec<String>>, SessionError> {
        let rooms = &self.encrypted_rooms;
        if let Some(members) = lock(&rooms.members).get(room) {
            return Ok(Arc::clone(members));
        }
        let before = rooms.changes.load(Ordering::SeqCst);
        let route = MatrixRoute::get(&["rooms", room, "members"]).with("not_membership", "leave");
        let answer: Value = self.patiently(&route, |r| r).await?;
        let events = answer.get("chunk").and_then(Value::as_array);
        let events = events.into_iter().flatten();
        let present = events.filter(|event| {
            let membership = event["content"]["membership"].as_str();
            matches!(membership, Some("join" | "invite"))
        });
        let names = present.filter_map(|event| event["state_key"].as_str().map(str::to_owned));
        let members = Arc::new(names.collect::<Vec<_>>());
        let mut known = lock(&rooms.members);
        // Somebody who left meanwhile must not be read from here.
        if rooms.changes.load(Ordering::SeqCst) == before {
            known.insert(room.to_owned(), Arc::clone(&members));
        }
        Ok(members)
    }

    /// An event as it was meant. `None` if it cannot be read, which is noted.
    pub(crate) async fn readable(
        &self,
        room: &str,
        event: &RoomEvent,
    ) -> Result<Option<RoomEvent>, MatrixTrouble> {
        let us = self.me.get().cloned().unwrap_or_default();
        let Some(cipher) = self.cipher().await? else {
            return Ok(None);
        };
        match cipher.decrypt(room, event).await {
            Ok(event) => Ok(Some(event)),
            Err(Undecryptable::Store(error)) => Err(SessionError::Cipher(error).into()),
            Err(Undecryptable::NoKey) if event.sender != us => {
                self.keep_unread(room, event).await?;
                Ok(None)
            }
            Err(why) => {
                if event.sender != us {
                    warn!(account = %self.account, room, event = event.id, sender = event.sender, %why, "an event cannot be read");
                }
                Ok(None)
            }
        }
    }

    async fn keep_unread(&self, room: &str, event: &RoomEvent) -> Result<(), MatrixTrouble> {
        let key = format!("{PREFIX}{}", event.id);
        if self.store.load(&key).await?.is_some() {
            return Ok(());
        }
        info!(account = %self.account, room, event = event.id, "an event waits for its key");
        let all = self.store.load_all(PREFIX).await?;
        if all.len() >= MOST_UNREAD {
            warn!(account = %self.account, room, sender = event.sender, "too many events wait for keys; this one is not kept");
            return Ok(());
        }
        let unread = UnreadEvent {
            room: room.to_owned(),
            event: event.written(),
            since: self.now().millis(),
            is_told: false,
        };
        let value = serde_json::to_string(&unread).unwrap_or_default();
        // Before the position moves past it.
        self.store
            .save(&key, &value, SaveDurability::OnDisk)
            .await?;
        if let Some(cipher) = self.cipher().await? {
            self.request_key(cipher, room, event).await;
        }
        Ok(())
    }

    async fn request_key(&self, cipher: &RoomCipher, room: &str, event: &RoomEvent) {
        for request in cipher.request_key(room, event).await {
            if let Err(error) = self.ask_about_keys(cipher, &request).await {
                debug!(%error, "a key could not be asked for");
            }
        }
    }

    /// What can be read of that which waited for keys.
    pub(crate) async fn hear_unread(&self) -> Result<Vec<SyncArrival>, MatrixTrouble> {
        let Some(cipher) = self.cipher().await? else {
            return Ok(Vec::new());
        };
        let mut arrivals = Vec::new();
        for (key, unread) in self.unread().await? {
            let Some(event) = RoomEvent::read(&unread.event) else {
                self.store.remove(&key).await?;
                continue;
            };
            match cipher.decrypt(&unread.room, &event).await {
                Ok(_) => {
                    let facts = self.rooms.facts(&unread.room).unwrap_or_default();
                    let heard = self.hear_events(&unread.room, facts, &[event]).await?;
                    // What is for us is forgotten when it is stored.
                    match heard.first() {
                        None => self.store.remove(&key).await?,
                        Some(heard) => {
                            let update = heard.update.as_str().to_owned();
                            lock(&self.encrypted_rooms.handed_out).insert(update);
                        }
                    }
                    arrivals.extend(heard);
                }
                Err(Undecryptable::Store(error)) => return Err(SessionError::Cipher(error).into()),
                Err(Undecryptable::NoKey) => {}
                Err(why) => {
                    warn!(account = %self.account, room = unread.room, event = event.id, %why, "an event cannot be read");
                    self.store.remove(&key).await?;
                }
            }
        }
        Ok(arrivals)
    }

    /// The event is stored, so it does not wait any more.
    pub(crate) async fn forget_unread(&self, update: &UpdateId) {
        if !lock(&self.encrypted_rooms.handed_out).remove(update.as_str()) {
            return;
        }
        let removed = self.store.remove(&format!("{PREFIX}{update}")).await;
        if let Err(error) = removed {
            warn!(account = %self.account, %error, "an event that was read is still marked as unread");
        }
    }

    /// Tells those whose words stay unread, and forgets what waited too long.
    pub(crate) async fn tell_unread(&self) -> Result<(), MatrixTrouble> {
        let Some(cipher) = self.cipher().await? else {
            return Ok(());
        };
        let now = self.now();
        for (key, mut unread) in self.unread().await? {
            let waited = now.since(Timestamp::from_millis(unread.since));
            let event = RoomEvent::read(&unread.event);
            let (Some(event), true) = (event, waited < KEY_LIFETIME) else {
                self.store.remove(&key).await?;
                continue;
            };
            if unread.is_told || waited < self.timing.key_patience {
                continue;
            }
            self.request_key(cipher, &unread.room, &event).await;
            warn!(account = %self.account, room = unread.room, event = event.id, sender = event.sender, "the key of a message has not come");
            unread.is_told = true;
            let value = serde_json::to_string(&unread).unwrap_or_default();
            self.store.save(&key, &value, SaveDurability::Soon).await?;
            if self.may_be_told(&unread.room, &event.sender, now) {
                self.tell_unreadable(&unread.room).await;
            }
        }
        Ok(())
    }

    /// Only who may write, where nobody else reads it, and once an hour: strangers learn nothing, and in a
    /// room of many most words are not for us.
    fn may_be_told(&self, room: &str, sender: &str, now: Timestamp) -> bool {
        let is_private = self
            .rooms
            .facts(room)
            .is_some_and(|facts| facts.is_private());
        let user = UserId::new(sender);
        let is_listed = user.is_ok_and(|user| self.invites.from.contains(&user));
        if !is_private || !(self.invites.from_anybody || is_listed) {
            return false;
        }
        let mut told = lock(&self.encrypted_rooms.told);
        told.retain(|_, at| now.distance(*at) < TOLD_AGAIN);
        told.insert(sender.to_owned(), now).is_none()
    }

    async fn tell_unreadable(&self, room: &str) {
        let content = content::text(UNREADABLE);
        let sent = match crate::send::random() {
            Ok(transaction) => {
                self.send_event(room, "m.room.message", &content, &transaction)
                    .await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            warn!(account = %self.account, room, %error, "nobody could be told that a message stays unread");
        }
    }

    async fn unread(&self) -> Result<Vec<(String, UnreadEvent)>, AdapterStateError> {
        let rows = self.store.load_all(PREFIX).await?;
        let read = rows.into_iter().filter_map(|(key, value)| {
            let unread = serde_json::from_str(&value).ok()?;
            Some((key, unread))
        });
        Ok(read.collect())
    }
}

impl From<CipherError> for MatrixTrouble {
    fn from(error: CipherError) -> Self {
        Self::Session(error.into())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
