//! Requests about keys, as the homeserver wants them.

use matrix_sdk_crypto::types::requests::{
    AnyIncomingResponse, AnyOutgoingRequest, OutgoingRequest, ToDeviceRequest,
};
use matrix_sdk_crypto::{CrossSigningBootstrapRequests, OlmMachine};
use ruma::api::IncomingResponse;
use ruma::api::client::keys::{claim_keys, get_keys, upload_keys, upload_signatures};
use ruma::api::client::message::send_message_event;
use ruma::api::client::to_device::send_event_to_device;
use ruma::{OwnedTransactionId, TransactionId};
use serde_json::{Value, json};

use crate::cipher_error::CipherError;
use crate::wire::MatrixRoute;

/// One request, which may be made twice.
#[derive(Clone, Debug)]
pub(crate) struct KeyRequest {
    id: OwnedTransactionId,
    kind: KeyRequestKind,
    pub(crate) route: MatrixRoute,
    pub(crate) body: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyRequestKind {
    Upload,
    Query,
    Claim,
    ToDevice,
    Signatures,
    /// The keys of our identity, which may need a password.
    Identity,
    RoomMessage,
}

impl KeyRequest {
    pub(super) fn of(request: &OutgoingRequest) -> Option<Self> {
        let id = request.request_id();
        let (kind, route, body) = match request.request() {
            AnyOutgoingRequest::KeysUpload(upload) => return Some(Self::upload(id, upload)),
            AnyOutgoingRequest::KeysQuery(query) => (
                KeyRequestKind::Query,
                MatrixRoute::post(&["keys", "query"]),
                json!({ "device_keys": query.device_keys }),
            ),
            AnyOutgoingRequest::KeysClaim(claim) => return Some(Self::claim(id, claim)),
            AnyOutgoingRequest::ToDeviceRequest(request) => {
                return Some(Self::to_devices(request));
            }
            AnyOutgoingRequest::SignatureUpload(upload) => (
                KeyRequestKind::Signatures,
                MatrixRoute::post(&["keys", "signatures", "upload"]),
                json!(upload.signed_keys),
            ),
            AnyOutgoingRequest::RoomMessage(message) => {
                let content = serde_json::to_value(&message.content).ok()?;
                let kind = ruma::events::MessageLikeEventContent::event_type(&*message.content);
                let kind = kind.to_string();
                let room = message.room_id.as_str();
                let route = MatrixRoute::put(&["rooms", room, "send", &kind, id.as_str()]);
                (KeyRequestKind::RoomMessage, route, content)
            }
        };
        Some(Self {
            id: id.to_owned(),
            kind,
            route,
            body,
        })
    }

    fn upload(id: &TransactionId, upload: &upload_keys::v3::Request) -> Self {
        let mut body = json!({
            "one_time_keys": upload.one_time_keys, "fallback_keys": upload.fallback_keys,
        });
        if let Some(keys) = &upload.device_keys {
            body["device_keys"] = json!(keys);
        }
        Self {
            id: id.to_owned(),
            kind: KeyRequestKind::Upload,
            route: MatrixRoute::post(&["keys", "upload"]),
            body,
        }
    }

    pub(super) fn claim(id: &TransactionId, claim: &claim_keys::v3::Request) -> Self {
        Self {
            id: id.to_owned(),
            kind: KeyRequestKind::Claim,
            route: MatrixRoute::post(&["keys", "claim"]),
            // Milliseconds that the homeserver may wait for other homeservers: one that is away
            // must not keep us from speaking with those who are there.
            body: json!({ "one_time_keys": claim.one_time_keys, "timeout": 10_000 }),
        }
    }

    pub(super) fn to_devices(request: &ToDeviceRequest) -> Self {
        let kind = request.event_type.to_string();
        Self {
            id: request.txn_id.clone(),
            kind: KeyRequestKind::ToDevice,
            route: MatrixRoute::put(&["sendToDevice", &kind, request.txn_id.as_str()]),
            body: json!({ "messages": request.messages }),
        }
    }

    /// In this order: our device, our identity, and what signs the one with the other.
    pub(super) fn bootstrap(
        requests: &CrossSigningBootstrapRequests,
    ) -> Result<Vec<Self>, CipherError> {
        let mut all: Vec<_> = requests
            .upload_keys_req
            .iter()
            .filter_map(Self::of)
            .collect();
        let keys = &requests.upload_signing_keys_req;
        all.push(Self {
            id: TransactionId::new(),
            kind: KeyRequestKind::Identity,
            route: MatrixRoute::post(&["keys", "device_signing", "upload"]),
            body: json!({ "master_key": keys.master_key, "self_signing_key": keys.self_signing_key,
                "user_signing_key": keys.user_signing_key }),
        });
        all.push(Self {
            id: TransactionId::new(),
            kind: KeyRequestKind::Signatures,
            route: MatrixRoute::post(&["keys", "signatures", "upload"]),
            body: json!(requests.upload_signatures_req.signed_keys),
        });
        Ok(all)
    }

    /// Whether the homeserver may want a password for it.
    pub(crate) fn needs_password(&self) -> bool {
        self.kind == KeyRequestKind::Identity
    }
}

pub(super) async fn mark_as_sent(
    machine: &OlmMachine,
    request: &KeyRequest,
    answer: &Value,
) -> Result<(), CipherError> {
    let id = &*request.id;
    let marked = match request.kind {
        KeyRequestKind::Upload => {
            let answer: upload_keys::v3::Response = read(answer)?;
            machine.mark_request_as_sent(id, &answer).await
        }
        KeyRequestKind::Query => {
            let answer: get_keys::v3::Response = read(answer)?;
            machine.mark_request_as_sent(id, &answer).await
        }
        KeyRequestKind::Claim => {
            let answer: claim_keys::v3::Response = read(answer)?;
            machine.mark_request_as_sent(id, &answer).await
        }
        KeyRequestKind::ToDevice => {
            let answer = send_event_to_device::v3::Response::new();
            machine.mark_request_as_sent(id, &answer).await
        }
        KeyRequestKind::Signatures => {
            let answer: upload_signatures::v3::Response = read(answer)?;
            machine.mark_request_as_sent(id, &answer).await
        }
        KeyRequestKind::RoomMessage => {
            let answer: send_message_event::v3::Response = read(answer)?;
            let answer = AnyIncomingResponse::RoomMessage(&answer);
            machine.mark_request_as_sent(id, answer).await
        }
        // The identity is written down when it is made.
        KeyRequestKind::Identity => Ok(()),
    };
    marked.map_err(CipherError::keys)
}

fn read<T: IncomingResponse>(answer: &Value) -> Result<T, CipherError> {
    let answer = http::Response::new(answer.to_string().into_bytes());
    let read = T::try_from_http_response(answer);
    read.map_err(|_| CipherError::Answer)
}
