//! Somebody whose app speaks encrypted rooms, with keys and a sync of its own.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test whose people cannot speak has failed"
)]

use std::io::{Cursor, Read};
use std::time::Duration;

use matrix_sdk_crypto::types::requests::AnyOutgoingRequest;
use matrix_sdk_crypto::{
    AttachmentDecryptor, AttachmentEncryptor, DecryptionSettings, EncryptionSettings,
    EncryptionSyncChanges, MediaEncryptionInfo, OlmMachine, TrustRequirement,
};
use ruma::api::IncomingResponse;
use ruma::api::client::keys::{claim_keys, get_keys, upload_keys, upload_signatures};
use ruma::api::client::sync::sync_events::DeviceLists;
use ruma::api::client::to_device::send_event_to_device;
use ruma::{DeviceId, RoomId, UserId};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::MatrixPerson;

const PATIENCE: Duration = Duration::from_secs(60);
const SETTINGS: DecryptionSettings = DecryptionSettings {
    sender_device_trust_requirement: TrustRequirement::Untrusted,
};

/// A person of a homeserver with a device that seals and opens.
pub struct SealedPerson {
    pub person: MatrixPerson,
    machine: OlmMachine,
    since: Option<String>,
}

impl SealedPerson {
    /// With keys that everybody can ask for.
    pub async fn new(person: MatrixPerson) -> Self {
        let user = <&UserId>::try_from(person.user()).unwrap();
        let device = <&DeviceId>::from(person.device());
        let machine = OlmMachine::new(user, device).await;
        let mut one = Self {
            person,
            machine,
            since: None,
        };
        one.sync().await;
        one
    }

    pub async fn opens_private(&self, other: &MatrixPerson) -> String {
        let mut room = json!({ "preset": "trusted_private_chat", "is_direct": true,
            "invite": [other.user()] });
        room["initial_state"] = encryption();
        self.person.opens(room).await
    }

    pub async fn opens_room(&self, others: &[&MatrixPerson]) -> String {
        let invited: Vec<_> = others.iter().map(|other| other.user()).collect();
        let mut room = json!({ "preset": "private_chat", "invite": invited });
        room["initial_state"] = encryption();
        self.person.opens(room).await
    }

    /// Takes over keys, and asks for what is due.
    pub async fn sync(&mut self) {
        let answer = self.person.syncs(self.since.as_deref()).await;
        let devices: DeviceLists = field(&answer["device_lists"]);
        let counts = field(&answer["device_one_time_keys_count"]);
        let unused: Vec<_> = field(&answer["device_unused_fallback_key_types"]);
        let changes = EncryptionSyncChanges {
            to_device_events: field(&answer["to_device"]["events"]),
            changed_devices: &devices,
            one_time_keys_counts: &counts,
            unused_fallback_keys: Some(&unused),
            next_batch_token: None,
        };
        let taken = self.machine.receive_sync_changes(changes, &SETTINGS).await;
        taken.unwrap();
        self.since = answer["next_batch"].as_str().map(str::to_owned);
        self.send_due().await;
    }

    async fn send_due(&self) {
        for request in self.machine.outgoing_requests().await.unwrap() {
            let id = request.request_id();
            match request.request() {
                AnyOutgoingRequest::KeysUpload(upload) => {
                    let mut body = json!({ "one_time_keys": upload.one_time_keys,
                        "fallback_keys": upload.fallback_keys });
                    if let Some(keys) = &upload.device_keys {
                        body["device_keys"] = json!(keys);
                    }
                    let answer = self.person.post(&["keys", "upload"], body).await;
                    let answer: upload_keys::v3::Response = read(&answer);
                    self.machine
                        .mark_request_as_sent(id, &answer)
                        .await
                        .unwrap();
                }
                AnyOutgoingRequest::KeysQuery(query) => {
                    let body = json!({ "device_keys": query.device_keys });
                    let answer = self.person.post(&["keys", "query"], body).await;
                    let answer: get_keys::v3::Response = read(&answer);
                    self.machine
                        .mark_request_as_sent(id, &answer)
                        .await
                        .unwrap();
                }
                AnyOutgoingRequest::SignatureUpload(upload) => {
                    let body = json!(upload.signed_keys);
                    let path = ["keys", "signatures", "upload"];
                    let answer = self.person.post(&path, body).await;
                    let answer: upload_signatures::v3::Response = read(&answer);
                    self.machine
                        .mark_request_as_sent(id, &answer)
                        .await
                        .unwrap();
                }
                AnyOutgoingRequest::ToDeviceRequest(request) => {
                    self.sends_to_devices(request).await;
                }
                AnyOutgoingRequest::KeysClaim(_) | AnyOutgoingRequest::RoomMessage(_) => {}
            }
        }
    }

    async fn sends_to_devices(
        &self,
        request: &matrix_sdk_crypto::types::requests::ToDeviceRequest,
    ) {
        let kind = request.event_type.to_string();
        let path = ["sendToDevice", &kind, request.txn_id.as_str()];
        let body = json!({ "messages": request.messages });
        self.person.put(&path, body).await;
        let answer = send_event_to_device::v3::Response::new();
        let sent = self.machine.mark_request_as_sent(&request.txn_id, &answer);
        sent.await.unwrap();
    }

    pub async fn says(&mut self, room: &str, text: &str) -> String {
        self.sends(room, json!({ "msgtype": "m.text", "body": text }))
            .await
    }

    /// Sealed, for everybody who is there.
    pub async fn sends(&mut self, room: &str, content: Value) -> String {
        self.shares_key(room).await;
        let sealed = self.seals(room, &content).await;
        self.person
            .sends_event(room, "m.room.encrypted", sealed)
            .await
    }

    /// Hands over the key of a room. Words that go before it cannot be read yet.
    pub async fn shares_key(&mut self, room: &str) {
        let members = self.person.members(room).await;
        let there = members
            .iter()
            .filter(|(_, is, _)| is == "join" || is == "invite");
        let users: Vec<_> = there
            .map(|(user, _, _)| UserId::parse(user).unwrap())
            .collect();
        let all = || users.iter().map(|user| &**user);
        self.machine.update_tracked_users(all()).await.unwrap();
        self.send_due().await;
        if let Some((id, claim)) = self.machine.get_missing_sessions(all()).await.unwrap() {
            let body = json!({ "one_time_keys": claim.one_time_keys });
            let answer = self.person.post(&["keys", "claim"], body).await;
            let answer: claim_keys::v3::Response = read(&answer);
            self.machine
                .mark_request_as_sent(&id, &answer)
                .await
                .unwrap();
        }
        let id = <&RoomId>::try_from(room).unwrap();
        let settings = EncryptionSettings::default();
        let shared = self.machine.share_room_key(id, all(), settings).await;
        for request in shared.unwrap() {
            self.sends_to_devices(&request).await;
        }
    }

    pub async fn seals(&self, room: &str, content: &Value) -> Value {
        let id = <&RoomId>::try_from(room).unwrap();
        let content = serde_json::from_value(content.clone()).unwrap();
        let sealed = self
            .machine
            .encrypt_room_event_raw(id, "m.room.message", &content)
            .await
            .unwrap();
        serde_json::to_value(&sealed.content).unwrap()
    }

    /// The keys that would be handed to everybody in a room now are thrown away instead.
    pub async fn seals_without_sharing(&mut self, room: &str, text: &str) -> Value {
        let id = <&RoomId>::try_from(room).unwrap();
        let nobody: [&UserId; 0] = [];
        let settings = EncryptionSettings::default();
        self.machine.discard_room_key(id).await.unwrap();
        let shared = self
            .machine
            .share_room_key(id, nobody.into_iter(), settings)
            .await;
        for request in shared.unwrap() {
            let answer = send_event_to_device::v3::Response::new();
            let sent = self.machine.mark_request_as_sent(&request.txn_id, &answer);
            sent.await.unwrap();
        }
        self.seals(room, &json!({ "msgtype": "m.text", "body": text }))
            .await
    }

    /// What somebody sealed in a room, as far as it can be read here, each as it was changed last.
    pub async fn reads(&mut self, room: &str, sender: &str) -> Vec<Value> {
        self.sync().await;
        let id = <&RoomId>::try_from(room).unwrap().to_owned();
        let mut shown: Vec<(String, Value)> = Vec::new();
        for event in self.person.events(room).await {
            if event["type"] != "m.room.encrypted" || event["sender"] != sender {
                continue;
            }
            let raw = serde_json::from_value(event.clone()).unwrap();
            let Ok(plain) = self.machine.decrypt_room_event(&raw, &id, &SETTINGS).await else {
                continue;
            };
            let plain: Value = serde_json::from_str(plain.event.json().get()).unwrap();
            let content = plain["content"].clone();
            let relation = &content["m.relates_to"];
            if relation["rel_type"] == "m.replace" {
                let first = relation["event_id"].as_str().unwrap_or_default();
                if let Some((_, one)) = shown.iter_mut().find(|(name, _)| name == first) {
                    *one = content["m.new_content"].clone();
                }
                continue;
            }
            let name = event["event_id"].as_str().unwrap_or_default().to_owned();
            shown.push((name, content));
        }
        shown.into_iter().map(|(_, content)| content).collect()
    }

    pub async fn waits_for(
        &mut self,
        room: &str,
        sender: &str,
        wanted: impl Fn(&[Value]) -> bool,
    ) -> Vec<Value> {
        let waiting = async {
            loop {
                let shown = self.reads(room, sender).await;
                if wanted(&shown) {
                    return shown;
                }
            }
        };
        timeout(PATIENCE, waiting)
            .await
            .expect("it is said in time")
    }

    /// The content of a message with a sealed file.
    pub async fn uploads(&self, name: &str, bytes: &[u8]) -> Value {
        let mut reader = Cursor::new(bytes);
        let mut sealing = AttachmentEncryptor::new(&mut reader);
        let mut sealed = Vec::new();
        sealing.read_to_end(&mut sealed).unwrap();
        let mut file = serde_json::to_value(sealing.finish()).unwrap();
        let kind = "application/octet-stream";
        file["url"] = json!(self.person.uploads(&sealed, kind).await);
        json!({ "msgtype": "m.file", "body": name, "filename": name, "file": file,
            "info": { "size": bytes.len() } })
    }

    pub async fn opens_file(&self, content: &Value) -> Vec<u8> {
        let file = &content["file"];
        let sealed = self.person.downloads(file["url"].as_str().unwrap()).await;
        let key: MediaEncryptionInfo = serde_json::from_value(file.clone()).unwrap();
        let mut reader = Cursor::new(sealed);
        let mut opened = Vec::new();
        let mut opening = AttachmentDecryptor::new(&mut reader, key).unwrap();
        opening.read_to_end(&mut opened).unwrap();
        opened
    }

    /// The id of the key under which somebody sealed their last words.
    pub async fn last_key(&self, room: &str, sender: &str) -> String {
        let sealed = self.last_sealed(room, sender).await;
        sealed["content"]["session_id"].as_str().unwrap().to_owned()
    }

    /// The name of what somebody sealed last.
    pub async fn last_event(&self, room: &str, sender: &str) -> String {
        let sealed = self.last_sealed(room, sender).await;
        sealed["event_id"].as_str().unwrap().to_owned()
    }

    async fn last_sealed(&self, room: &str, sender: &str) -> Value {
        let events = self.person.events(room).await;
        let is_theirs =
            |event: &&Value| event["type"] == "m.room.encrypted" && event["sender"] == sender;
        events.iter().rfind(is_theirs).unwrap().clone()
    }
}

fn encryption() -> Value {
    json!([{ "type": "m.room.encryption", "state_key": "",
        "content": { "algorithm": "m.megolm.v1.aes-sha2" } }])
}

fn field<T: DeserializeOwned + Default>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

fn read<T: IncomingResponse>(answer: &Value) -> T {
    let answer = http::Response::new(answer.to_string().into_bytes());
    let Ok(read) = T::try_from_http_response(answer) else {
        panic!("an answer that cannot be read");
    };
    read
}
