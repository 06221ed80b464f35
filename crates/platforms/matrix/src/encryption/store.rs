//! Where the keys of a device are kept: in the state of its account, with everything else.
//!
//! Nothing is held in memory but what the account's own object holds, so that a process which dies loses
//! nothing that it was told it had saved. Room keys and the names of messages that were seen are bounded:
//! whoever may write can make as many as they like.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use hermetic_types::SharedClock;
use matrix_sdk_crypto::olm::{
    Curve25519PublicKey, InboundGroupSession, OlmMessageHash, OutboundGroupSession, PickledAccount,
    PickledCrossSigningIdentity, PickledInboundGroupSession, PickledOutboundGroupSession,
    PickledSession, PrivateCrossSigningIdentity, SenderDataType, Session,
};
use matrix_sdk_crypto::store::CryptoStore;
use matrix_sdk_crypto::store::types::{
    BackupKeys, Changes, DehydratedDeviceKey, PendingChanges, RoomKeyCounts, RoomKeyWithheldEntry,
    RoomPendingKeyBundleDetails, RoomSettings, StoredRoomKeyBundleData, TrackedUser,
};
use matrix_sdk_crypto::{
    Account, CryptoStoreError, DeviceData, GossipRequest, SecretInfo, UserIdentityData,
};
use ruma::events::secret::request::SecretName;
use ruma::{DeviceId, OwnedDeviceId, RoomId, TransactionId, UserId};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::rows::{DeviceRows, RowChanges};

/// Room keys that are kept, the newest of them.
const MOST_ROOM_KEYS: usize = 5_000;
/// Messages between devices that are known when they come again.
const MOST_HASHES: usize = 5_000;
/// New rows before the oldest are looked for.
const TIDY_AFTER: usize = 500;

pub(super) const ACCOUNT: &str = "account";
const IDENTITY: &str = "identity";
const NEXT_BATCH: &str = "next-batch";
const SESSIONS: &str = "session ";
const ROOM_KEYS: &str = "inbound ";
const OUTBOUND: &str = "outbound ";
const TRACKED: &str = "tracked ";
const DEVICES: &str = "device ";
const USERS: &str = "user ";
const HASHES: &str = "hash ";
const REQUESTS: &str = "request ";
const WITHHELD: &str = "withheld ";
const ROOMS: &str = "room ";
const CUSTOM: &str = "custom ";

type StoreOutcome<T> = Result<T, CryptoStoreError>;

#[derive(Debug)]
pub(super) struct DeviceKeyStore {
    rows: DeviceRows,
    clock: SharedClock,
    since_tidied: AtomicUsize,
}

/// A row with the time of its writing, by which the oldest are found.
#[derive(Serialize, Deserialize)]
struct DatedRow<T> {
    at: i64,
    value: T,
}

impl DeviceKeyStore {
    pub(super) fn new(rows: DeviceRows, clock: SharedClock) -> Self {
        Self {
            rows,
            clock,
            // The first write looks.
            since_tidied: AtomicUsize::new(TIDY_AFTER),
        }
    }

    fn dated<T>(&self, value: T) -> DatedRow<T> {
        let at = self.clock.now().millis();
        DatedRow { at, value }
    }

    async fn put_room_keys(
        &self,
        changes: &mut RowChanges,
        sessions: &[InboundGroupSession],
    ) -> StoreOutcome<()> {
        for session in sessions {
            let pickle = self.dated(session.pickle().await);
            let name = room_key(session.room_id(), session.session_id());
            self.rows.put(changes, &name, &pickle)?;
        }
        Ok(())
    }

    async fn room_keys(&self, prefix: &str) -> StoreOutcome<Vec<InboundGroupSession>> {
        let rows = self.rows.load_all(prefix).await?;
        let sessions = rows.into_iter().map(|(_, row)| {
            let row: DatedRow<PickledInboundGroupSession> = row;
            Ok(InboundGroupSession::from_pickle(row.value)?)
        });
        sessions.collect()
    }

    /// Forgets the oldest of what has a bound.
    async fn tidy(&self, new: usize) -> StoreOutcome<()> {
        let so_far = self.since_tidied.fetch_add(new, Ordering::Relaxed) + new;
        if new == 0 || so_far < TIDY_AFTER {
            return Ok(());
        }
        // Set back first: where the tidying fails, it is tried again after as many rows, and not
        // with every message from now on.
        self.since_tidied.store(0, Ordering::Relaxed);
        let mut changes = RowChanges::default();
        for (prefix, most) in [(ROOM_KEYS, MOST_ROOM_KEYS), (HASHES, MOST_HASHES)] {
            let rows = self
                .rows
                .load_all::<DatedRow<serde::de::IgnoredAny>>(prefix);
            let mut ages: Vec<_> = rows.await?;
            ages.sort_by_key(|(_, row)| row.at);
            let too_many = ages.len().saturating_sub(most);
            for (name, _) in &ages[..too_many] {
                self.rows.remove(&mut changes, &format!("{prefix}{name}"));
            }
        }
        self.rows.write(changes).await
    }

    async fn account(&self) -> StoreOutcome<Option<Account>> {
        let pickle = self.rows.load::<PickledAccount>(ACCOUNT).await?;
        Ok(pickle.map(Account::from_pickle).transpose()?)
    }
}

#[async_trait]
impl CryptoStore for DeviceKeyStore {
    type Error = CryptoStoreError;

    async fn load_account(&self) -> StoreOutcome<Option<Account>> {
        self.account().await
    }

    async fn load_identity(&self) -> StoreOutcome<Option<PrivateCrossSigningIdentity>> {
        let pickle = self
            .rows
            .load::<PickledCrossSigningIdentity>(IDENTITY)
            .await?;
        let identity = pickle.map(PrivateCrossSigningIdentity::from_pickle);
        identity
            .transpose()
            .map_err(|_| CryptoStoreError::UnpicklingError)
    }

    async fn save_changes(&self, changes: Changes) -> StoreOutcome<()> {
        let rows = &self.rows;
        let mut write = RowChanges::default();
        if let Some(identity) = &changes.private_identity {
            rows.put(&mut write, IDENTITY, &identity.pickle().await)?;
        }
        for session in &changes.sessions {
            let pickle = session.pickle().await;
            let name = format!(
                "{SESSIONS}{} {}",
                pickle.sender_key.to_base64(),
                session.session_id()
            );
            rows.put(&mut write, &name, &pickle)?;
        }
        self.put_room_keys(&mut write, &changes.inbound_group_sessions)
            .await?;
        for session in &changes.outbound_group_sessions {
            let name = format!("{OUTBOUND}{}", session.room_id());
            rows.put(&mut write, &name, &session.pickle().await)?;
        }
        for hash in &changes.message_hashes {
            rows.put(&mut write, &message_hash(hash), &self.dated(()))?;
        }
        for request in &changes.key_requests {
            rows.put(&mut write, &key_request(&request.request_id), request)?;
        }
        let identities = &changes.identities;
        for identity in identities.new.iter().chain(&identities.changed) {
            let name = format!("{USERS}{}", identity.user_id());
            rows.put(&mut write, &name, identity)?;
        }
        let devices = &changes.devices;
        for device in devices.new.iter().chain(&devices.changed) {
            let name = device_name(device.user_id(), device.device_id());
            rows.put(&mut write, &name, device)?;
        }
        for device in &devices.deleted {
            rows.remove(
                &mut write,
                &device_name(device.user_id(), device.device_id()),
            );
        }
        for (room, withheld) in &changes.withheld_session_info {
            for (session, entry) in withheld {
                rows.put(&mut write, &format!("{WITHHELD}{room} {session}"), entry)?;
            }
        }
        for (room, settings) in &changes.room_settings {
            rows.put(&mut write, &format!("{ROOMS}{room}"), settings)?;
        }
        if let Some(next) = &changes.next_batch_token {
            rows.put(&mut write, NEXT_BATCH, next)?;
        }
        // Backups of keys, secrets of other devices, dehydrated devices and bundles of old room keys are
        // never asked for by us; what is pushed to us is not kept.
        rows.write(write).await?;
        self.tidy(changes.inbound_group_sessions.len() + changes.message_hashes.len())
            .await
    }

    async fn save_pending_changes(&self, changes: PendingChanges) -> StoreOutcome<()> {
        let mut write = RowChanges::default();
        if let Some(account) = changes.account {
            self.rows.put(&mut write, ACCOUNT, &account.pickle())?;
        }
        self.rows.write(write).await
    }

    async fn save_inbound_group_sessions(
        &self,
        sessions: Vec<InboundGroupSession>,
        _: Option<&str>,
    ) -> StoreOutcome<()> {
        let mut write = RowChanges::default();
        self.put_room_keys(&mut write, &sessions).await?;
        self.rows.write(write).await?;
        self.tidy(sessions.len()).await
    }

    async fn get_sessions(&self, sender_key: &str) -> StoreOutcome<Option<Vec<Session>>> {
        let ours = self.get_own_device().await?.as_device_keys().clone();
        let prefix = format!("{SESSIONS}{sender_key} ");
        let pickles = self.rows.load_all::<PickledSession>(&prefix).await?;
        let sessions = pickles.into_iter().map(|(_, pickle)| {
            Session::from_pickle(ours.clone(), pickle).map_err(CryptoStoreError::backend)
        });
        let sessions: Vec<_> = sessions.collect::<StoreOutcome<_>>()?;
        Ok(Some(sessions).filter(|sessions| !sessions.is_empty()))
    }

    async fn get_inbound_group_session(
        &self,
        room: &RoomId,
        session: &str,
    ) -> StoreOutcome<Option<InboundGroupSession>> {
        let name = room_key(room, session);
        let row = self
            .rows
            .load::<DatedRow<PickledInboundGroupSession>>(&name);
        let row = row.await?;
        Ok(row
            .map(|row| InboundGroupSession::from_pickle(row.value))
            .transpose()?)
    }

    async fn get_withheld_info(
        &self,
        room: &RoomId,
        session: &str,
    ) -> StoreOutcome<Option<RoomKeyWithheldEntry>> {
        self.rows.load(&format!("{WITHHELD}{room} {session}")).await
    }

    async fn get_withheld_sessions_by_room_id(
        &self,
        room: &RoomId,
    ) -> StoreOutcome<Vec<RoomKeyWithheldEntry>> {
        let rows = self.rows.load_all(&format!("{WITHHELD}{room} ")).await?;
        Ok(rows.into_iter().map(|(_, entry)| entry).collect())
    }

    async fn get_inbound_group_sessions(&self) -> StoreOutcome<Vec<InboundGroupSession>> {
        self.room_keys(ROOM_KEYS).await
    }

    async fn inbound_group_session_counts(&self, _: Option<&str>) -> StoreOutcome<RoomKeyCounts> {
        let total = self.rows.names(ROOM_KEYS).await?.len();
        Ok(RoomKeyCounts {
            total,
            backed_up: 0,
        })
    }

    async fn get_inbound_group_sessions_by_room_id(
        &self,
        room: &RoomId,
    ) -> StoreOutcome<Vec<InboundGroupSession>> {
        self.room_keys(&format!("{ROOM_KEYS}{room} ")).await
    }

    async fn get_inbound_group_sessions_for_device_batch(
        &self,
        sender_key: Curve25519PublicKey,
        kind: SenderDataType,
        after: Option<String>,
        limit: usize,
    ) -> StoreOutcome<Vec<InboundGroupSession>> {
        let mut sessions = self.room_keys(ROOM_KEYS).await?;
        sessions.retain(|session| {
            session.sender_key() == sender_key
                && session.sender_data_type() == kind
                && after
                    .as_deref()
                    .is_none_or(|after| session.session_id() > after)
        });
        sessions.sort_by(|one, other| one.session_id().cmp(other.session_id()));
        sessions.truncate(limit);
        Ok(sessions)
    }

    async fn inbound_group_sessions_for_backup(
        &self,
        _: &str,
        _: usize,
    ) -> StoreOutcome<Vec<InboundGroupSession>> {
        Ok(Vec::new())
    }

    async fn mark_inbound_group_sessions_as_backed_up(
        &self,
        _: &str,
        _: &[(&RoomId, &str)],
    ) -> StoreOutcome<()> {
        Ok(())
    }

    async fn reset_backup_state(&self) -> StoreOutcome<()> {
        Ok(())
    }

    async fn load_backup_keys(&self) -> StoreOutcome<BackupKeys> {
        Ok(BackupKeys::default())
    }

    async fn load_dehydrated_device_pickle_key(&self) -> StoreOutcome<Option<DehydratedDeviceKey>> {
        Ok(None)
    }

    async fn delete_dehydrated_device_pickle_key(&self) -> StoreOutcome<()> {
        Ok(())
    }

    async fn get_outbound_group_session(
        &self,
        room: &RoomId,
    ) -> StoreOutcome<Option<OutboundGroupSession>> {
        let name = format!("{OUTBOUND}{room}");
        let Some(pickle) = self.rows.load::<PickledOutboundGroupSession>(&name).await? else {
            return Ok(None);
        };
        let account = self
            .account()
            .await?
            .ok_or(CryptoStoreError::AccountUnset)?;
        let ours = account.static_data();
        let keys = ours.identity_keys.clone();
        let session = OutboundGroupSession::from_pickle(ours.device_id.clone(), keys, pickle)?;
        Ok(Some(session))
    }

    async fn load_tracked_users(&self) -> StoreOutcome<Vec<TrackedUser>> {
        let rows = self.rows.load_all(TRACKED).await?;
        Ok(rows.into_iter().map(|(_, user)| user).collect())
    }

    async fn save_tracked_users(&self, users: &[(&UserId, bool)]) -> StoreOutcome<()> {
        let mut write = RowChanges::default();
        for (user, dirty) in users {
            let tracked = TrackedUser {
                user_id: (*user).to_owned(),
                dirty: *dirty,
            };
            self.rows
                .put(&mut write, &format!("{TRACKED}{user}"), &tracked)?;
        }
        self.rows.write(write).await
    }

    async fn get_device(
        &self,
        user: &UserId,
        device: &DeviceId,
    ) -> StoreOutcome<Option<DeviceData>> {
        self.rows.load(&device_name(user, device)).await
    }

    async fn get_user_devices(
        &self,
        user: &UserId,
    ) -> StoreOutcome<HashMap<OwnedDeviceId, DeviceData>> {
        // The space ends the name: without it `@a:b.c` would have the devices of `@a:b.com` as
        // well.
        let rows = self.rows.load_all(&format!("{DEVICES}{user} ")).await?;
        let devices = rows.into_iter().map(|(_, device)| device);
        let named = devices.map(|device: DeviceData| (device.device_id().to_owned(), device));
        Ok(named.collect())
    }

    async fn get_own_device(&self) -> StoreOutcome<DeviceData> {
        let account = self
            .account()
            .await?
            .ok_or(CryptoStoreError::AccountUnset)?;
        let ours = account.static_data();
        let device = self.get_device(&ours.user_id, &ours.device_id).await?;
        device.ok_or(CryptoStoreError::AccountUnset)
    }

    async fn get_user_identity(&self, user: &UserId) -> StoreOutcome<Option<UserIdentityData>> {
        self.rows.load(&format!("{USERS}{user}")).await
    }

    async fn is_message_known(&self, hash: &OlmMessageHash) -> StoreOutcome<bool> {
        let row = self.rows.load::<DatedRow<()>>(&message_hash(hash)).await?;
        Ok(row.is_some())
    }

    async fn get_outgoing_secret_requests(
        &self,
        request: &TransactionId,
    ) -> StoreOutcome<Option<GossipRequest>> {
        self.rows.load(&key_request(request)).await
    }

    async fn get_secret_request_by_info(
        &self,
        info: &SecretInfo,
    ) -> StoreOutcome<Option<GossipRequest>> {
        let requests = self.rows.load_all::<GossipRequest>(REQUESTS).await?;
        let mut requests = requests.into_iter().map(|(_, request)| request);
        Ok(requests.find(|request| request.info == *info))
    }

    async fn get_unsent_secret_requests(&self) -> StoreOutcome<Vec<GossipRequest>> {
        let requests = self.rows.load_all::<GossipRequest>(REQUESTS).await?;
        let requests = requests.into_iter().map(|(_, request)| request);
        Ok(requests.filter(|request| !request.sent_out).collect())
    }

    async fn delete_outgoing_secret_requests(&self, request: &TransactionId) -> StoreOutcome<()> {
        let mut write = RowChanges::default();
        self.rows.remove(&mut write, &key_request(request));
        self.rows.write(write).await
    }

    async fn get_secrets_from_inbox(&self, _: &SecretName) -> StoreOutcome<Vec<Zeroizing<String>>> {
        Ok(Vec::new())
    }

    async fn delete_secrets_from_inbox(&self, _: &SecretName) -> StoreOutcome<()> {
        Ok(())
    }

    async fn get_room_settings(&self, room: &RoomId) -> StoreOutcome<Option<RoomSettings>> {
        self.rows.load(&format!("{ROOMS}{room}")).await
    }

    async fn get_received_room_key_bundle_data(
        &self,
        _: &RoomId,
        _: &UserId,
    ) -> StoreOutcome<Option<StoredRoomKeyBundleData>> {
        Ok(None)
    }

    async fn get_pending_key_bundle_details_for_room(
        &self,
        _: &RoomId,
    ) -> StoreOutcome<Option<RoomPendingKeyBundleDetails>> {
        Ok(None)
    }

    async fn get_all_rooms_pending_key_bundles(
        &self,
    ) -> StoreOutcome<Vec<RoomPendingKeyBundleDetails>> {
        Ok(Vec::new())
    }

    async fn has_downloaded_all_room_keys(&self, _: &RoomId) -> StoreOutcome<bool> {
        Ok(false)
    }

    async fn get_custom_value(&self, key: &str) -> StoreOutcome<Option<Vec<u8>>> {
        self.rows.load(&format!("{CUSTOM}{key}")).await
    }

    async fn set_custom_value(&self, key: &str, value: Vec<u8>) -> StoreOutcome<()> {
        let mut write = RowChanges::default();
        self.rows
            .put(&mut write, &format!("{CUSTOM}{key}"), &value)?;
        self.rows.write(write).await
    }

    async fn remove_custom_value(&self, key: &str) -> StoreOutcome<()> {
        let mut write = RowChanges::default();
        self.rows.remove(&mut write, &format!("{CUSTOM}{key}"));
        self.rows.write(write).await
    }

    /// Two gateways on one home are refused elsewhere, so nobody else holds these keys.
    async fn try_take_leased_lock(&self, _: u32, _: &str, _: &str) -> StoreOutcome<Option<u64>> {
        Ok(Some(1))
    }

    async fn next_batch_token(&self) -> StoreOutcome<Option<String>> {
        self.rows.load(NEXT_BATCH).await
    }

    async fn close(&self) -> StoreOutcome<()> {
        Ok(())
    }

    async fn reopen(&self) -> StoreOutcome<()> {
        Ok(())
    }

    async fn get_size(&self) -> StoreOutcome<Option<usize>> {
        Ok(None)
    }
}

fn room_key(room: &RoomId, session: &str) -> String {
    format!("{ROOM_KEYS}{room} {session}")
}

fn device_name(user: &UserId, device: &DeviceId) -> String {
    format!("{DEVICES}{user} {device}")
}

fn message_hash(hash: &OlmMessageHash) -> String {
    format!("{HASHES}{} {}", hash.sender_key, hash.hash)
}

fn key_request(request: &TransactionId) -> String {
    format!("{REQUESTS}{request}")
}
