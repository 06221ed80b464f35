//! The keys of our device, and what is done with them.
//!
//! The machine that keeps the ratchets knows no network: it says what is to be asked of the homeserver and
//! is told the answers. Its rows lie in the state of the account.

mod files;
mod requests;
mod rows;
mod store;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use hermetic_chat::{AdapterState, SaveDurability};
use hermetic_types::SharedClock;
use matrix_sdk_crypto::olm::PickledAccount;
use matrix_sdk_crypto::types::events::room::encrypted::EncryptedEvent;
use matrix_sdk_crypto::{
    Account, CollectStrategy, DecryptionSettings, EncryptionSettings, EncryptionSyncChanges,
    MegolmError, OlmMachine, TrustRequirement,
};
use ruma::api::client::sync::sync_events::DeviceLists;
use ruma::events::{AnyMessageLikeEventContent, AnyToDeviceEvent};
use ruma::serde::Raw;
use ruma::{OneTimeKeyAlgorithm, OwnedDeviceId, OwnedUserId, RoomId, UInt, UserId};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use crate::cipher_error::{CipherError, Undecryptable};
use crate::config::DeviceTrust;
use crate::sync::RoomEvent;
use rows::DeviceRows;
use store::DeviceKeyStore;

pub(crate) use files::{open_file, seal_file};
pub(crate) use requests::KeyRequest;

/// Whether this build speaks encrypted rooms.
pub(crate) const IS_SPOKEN: bool = true;
/// The device whose keys are used, where another process looks for it.
const DEVICE_KEY: &str = "e2ee-device";

/// Our device among those of everybody we talk to.
pub(crate) struct RoomCipher {
    machine: OlmMachine,
    trust: DeviceTrust,
    /// Whoever asks the homeserver about keys does so alone, or both would do it.
    asking: Mutex<()>,
    /// A room's key is shared and used by one at a time.
    sealing: Mutex<()>,
}

/// What a sync brought.
#[derive(Debug, Default)]
pub(crate) struct TakenKeys {
    /// Keys of rooms, by which something may be readable now that was not.
    pub(crate) room_keys: usize,
}

impl RoomCipher {
    pub(crate) async fn open(
        state: Arc<dyn AdapterState>,
        clock: SharedClock,
        user: &str,
        device: &str,
        trust: DeviceTrust,
    ) -> Result<Self, CipherError> {
        let user: OwnedUserId = user.try_into().map_err(CipherError::keys)?;
        let device_id = OwnedDeviceId::from(device);
        // Before the first keys are made: there must never be keys whose device another process
        // cannot name.
        let kept = state.save(DEVICE_KEY, device, SaveDurability::OnDisk).await;
        kept.map_err(CipherError::keys)?;
        let store = DeviceKeyStore::new(DeviceRows::new(state, device), clock);
        let machine = OlmMachine::with_store(&user, &device_id, store, None).await;
        Ok(Self {
            machine: machine.map_err(CipherError::keys)?,
            trust,
            asking: Mutex::default(),
            sealing: Mutex::default(),
        })
    }

    pub(crate) async fn asking(&self) -> MutexGuard<'_, ()> {
        self.asking.lock().await
    }

    pub(crate) async fn sealing(&self) -> MutexGuard<'_, ()> {
        self.sealing.lock().await
    }

    /// Takes over what a sync says about keys. It is on the disk when this returns, because the homeserver
    /// forgets it with the next sync.
    pub(crate) async fn take_sync(&self, answer: &Value) -> Result<TakenKeys, CipherError> {
        let to_device: Vec<Raw<AnyToDeviceEvent>> =
            field(answer.get("to_device").and_then(|list| list.get("events")));
        let devices: DeviceLists = field(answer.get("device_lists"));
        let counts: BTreeMap<OneTimeKeyAlgorithm, UInt> =
            field(answer.get("device_one_time_keys_count"));
        // Absent and empty are different: absent says that the homeserver knows no such keys, and
        // empty that ours was used and another one is due.
        let unused = answer.get("device_unused_fallback_key_types");
        let unused: Option<Vec<OneTimeKeyAlgorithm>> = unused.map(|unused| field(Some(unused)));
        let changes = EncryptionSyncChanges {
            to_device_events: to_device,
            changed_devices: &devices,
            one_time_keys_counts: &counts,
            unused_fallback_keys: unused.as_deref(),
            // Whoever polls keeps the position, once all of the answer is stored. A second one here
            // could disagree with it.
            next_batch_token: None,
        };
        let settings = self.decryption();
        let taken = self.machine.receive_sync_changes(changes, &settings).await;
        let (_, room_keys) = taken.map_err(CipherError::keys)?;
        Ok(TakenKeys {
            room_keys: room_keys.len(),
        })
    }

    /// What the homeserver is to be asked now.
    pub(crate) async fn due_requests(&self) -> Result<Vec<KeyRequest>, CipherError> {
        let due = self.machine.outgoing_requests().await;
        let due = due.map_err(CipherError::keys)?;
        Ok(due.iter().filter_map(KeyRequest::of).collect())
    }

    /// What the homeserver answered.
    pub(crate) async fn answered(
        &self,
        request: &KeyRequest,
        answer: &Value,
    ) -> Result<(), CipherError> {
        requests::mark_as_sent(&self.machine, request, answer).await
    }

    /// Makes the devices of these people known, which takes requests.
    pub(crate) fn track(&self, users: &[String]) -> BoxFuture<'static, Result<(), CipherError>> {
        let (machine, users) = (self.machine.clone(), user_ids(users));
        async move {
            let tracked = machine.update_tracked_users(references(&users)).await;
            tracked.map_err(CipherError::keys)
        }
        .boxed()
    }

    /// What is to be asked before something can be said to all devices of these people.
    pub(crate) fn missing_channels(
        &self,
        users: &[String],
    ) -> BoxFuture<'static, Result<Option<KeyRequest>, CipherError>> {
        let (machine, users) = (self.machine.clone(), user_ids(users));
        async move {
            let users = references(&users);
            let missing = machine.get_missing_sessions(users.iter().copied()).await;
            let missing = missing.map_err(CipherError::keys)?;
            Ok(missing.map(|(id, claim)| KeyRequest::claim(&id, &claim)))
        }
        .boxed()
    }

    /// Hands a room's key to whoever is in it and has not got it. Somebody who left makes a new one.
    pub(crate) fn share(
        &self,
        room: &str,
        users: &[String],
    ) -> BoxFuture<'static, Result<Vec<KeyRequest>, CipherError>> {
        let (machine, users) = (self.machine.clone(), user_ids(users));
        let room = RoomId::parse(room);
        let settings = EncryptionSettings {
            sharing_strategy: match self.trust {
                DeviceTrust::Anybody => CollectStrategy::AllDevices,
                DeviceTrust::CrossSigned => CollectStrategy::IdentityBasedStrategy,
            },
            ..EncryptionSettings::default()
        };
        async move {
            let room = room.map_err(CipherError::keys)?;
            let users = references(&users);
            let shared = machine.share_room_key(&room, users.iter().copied(), settings);
            let shared = shared.await.map_err(CipherError::keys)?;
            let requests = shared.iter().map(|request| KeyRequest::to_devices(request));
            Ok(requests.collect())
        }
        .boxed()
    }

    /// The content of an encrypted event. The ratchet's next position is on the disk when this returns.
    pub(crate) fn encrypt(
        &self,
        room: &str,
        kind: &str,
        content: &Value,
    ) -> BoxFuture<'static, Result<Value, CipherError>> {
        let (machine, room, kind) = (self.machine.clone(), RoomId::parse(room), kind.to_owned());
        let content = serde_json::from_value::<Raw<AnyMessageLikeEventContent>>(content.clone());
        async move {
            let (room, content) = (room.map_err(CipherError::keys)?, content);
            let content = content.map_err(CipherError::keys)?;
            let sealed = machine.encrypt_room_event_raw(&room, &kind, &content).await;
            let sealed = sealed.map_err(CipherError::keys)?;
            serde_json::to_value(&sealed.content).map_err(CipherError::keys)
        }
        .boxed()
    }

    /// What an encrypted event says.
    pub(crate) async fn decrypt(
        &self,
        room: &str,
        event: &RoomEvent,
    ) -> Result<RoomEvent, Undecryptable> {
        let id = <&RoomId>::try_from(room).map_err(|_| Undecryptable::Garbled)?;
        let raw = raw_event(event).ok_or(Undecryptable::Garbled)?;
        let decrypted = self
            .machine
            .decrypt_room_event(&raw, id, &self.decryption())
            .await;
        let decrypted = decrypted.map_err(|error| match error {
            // Apart from all others: it says nothing about the event, which is read again once the
            // store answers.
            MegolmError::Store(error) => Undecryptable::Store(CipherError::keys(error)),
            MegolmError::MissingRoomKey(_) => Undecryptable::NoKey,
            MegolmError::SenderIdentityNotTrusted(_) => Undecryptable::Untrusted,
            _ => Undecryptable::Garbled,
        })?;
        let plain: Value = serde_json::from_str(decrypted.event.json().get())
            .map_err(|_| Undecryptable::Garbled)?;
        let text = |name: &str| plain.get(name).and_then(Value::as_str).map(str::to_owned);
        let content = plain.get("content").and_then(Value::as_object);
        // Name, sender and time are the homeserver's; the words and what they are come from within.
        Ok(RoomEvent {
            kind: text("type").ok_or(Undecryptable::Garbled)?,
            content: content.cloned().ok_or(Undecryptable::Garbled)?,
            // What was sealed is never the state of a room.
            state_key: None,
            ..event.clone()
        })
    }

    /// Asks our other devices for the key of an event once more.
    pub(crate) async fn request_key(&self, room: &str, event: &RoomEvent) -> Vec<KeyRequest> {
        let (Ok(room), Some(raw)) = (<&RoomId>::try_from(room), raw_event(event)) else {
            return Vec::new();
        };
        match self.machine.request_room_key(&raw, room).await {
            Ok((cancel, ask)) => {
                let both = cancel.iter().chain([&ask]);
                both.filter_map(KeyRequest::of).collect()
            }
            Err(_) => Vec::new(),
        }
    }

    /// What makes our device one of an identity of ours, if there is none yet.
    pub(crate) async fn bootstrap(&self) -> Result<Vec<KeyRequest>, CipherError> {
        let ours = self
            .machine
            .get_identity(self.machine.user_id(), None)
            .await;
        let is_known = ours.map_err(CipherError::keys)?.is_some();
        let status = self.machine.cross_signing_status().await;
        if is_known && !status.has_self_signing {
            // Made by somebody else: whoever holds it may sign us.
            return Ok(Vec::new());
        }
        let own = self
            .machine
            .get_device(self.machine.user_id(), self.machine.device_id(), None);
        let own = own.await.map_err(CipherError::keys)?;
        if is_known && own.is_some_and(|own| own.is_cross_signed_by_owner()) {
            return Ok(Vec::new());
        }
        // Without a reset: another identity in place of one that is there would undo what people
        // verified of us.
        let requests = self.machine.bootstrap_cross_signing(false).await;
        let requests = requests.map_err(CipherError::keys)?;
        KeyRequest::bootstrap(&requests)
    }

    fn decryption(&self) -> DecryptionSettings {
        DecryptionSettings {
            sender_device_trust_requirement: match self.trust {
                DeviceTrust::Anybody => TrustRequirement::Untrusted,
                DeviceTrust::CrossSigned => TrustRequirement::CrossSigned,
            },
        }
    }
}

impl fmt::Debug for RoomCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoomCipher").finish_non_exhaustive()
    }
}

/// The device whose keys lie in a state, and its fingerprint.
pub(crate) async fn kept_device(
    state: &Arc<dyn AdapterState>,
) -> Result<Option<(String, String)>, CipherError> {
    let device = state.load(DEVICE_KEY).await.map_err(CipherError::keys)?;
    let Some(device) = device else {
        return Ok(None);
    };
    let rows = DeviceRows::new(Arc::clone(state), &device);
    let pickle = rows.load::<PickledAccount>(store::ACCOUNT).await;
    let account = pickle.map_err(CipherError::keys)?.map(Account::from_pickle);
    let account = account.transpose().map_err(CipherError::keys)?;
    Ok(account.map(|account| {
        let key = account.static_data().identity_keys.ed25519.to_base64();
        (device, key)
    }))
}

/// What cannot be read is not there.
fn field<T: DeserializeOwned + Default>(value: Option<&Value>) -> T {
    let read = value.map(|value| serde_json::from_value(value.clone()));
    read.and_then(Result::ok).unwrap_or_default()
}

fn user_ids(users: &[String]) -> Vec<OwnedUserId> {
    let ids = users.iter().map(|user| <&UserId>::try_from(user.as_str()));
    ids.filter_map(Result::ok).map(UserId::to_owned).collect()
}

/// Not by a closure within the call: the compiler cannot tell that such a future may change its thread.
fn references(users: &[OwnedUserId]) -> Vec<&UserId> {
    users.iter().map(|user| &**user).collect()
}

fn raw_event(event: &RoomEvent) -> Option<Raw<EncryptedEvent>> {
    let whole = json!({
        "type": event.kind, "event_id": event.id, "sender": event.sender,
        "origin_server_ts": event.sent_at, "content": event.content, "unsigned": {},
    });
    serde_json::from_value(whole).ok()
}
