//! Whoever posts the notifications.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{APP_SECRET, VERIFY_TOKEN, http};

/// What is to be echoed when the address is registered.
pub const CHALLENGE: &str = "1158201444";

/// Between two attempts. Meta waits for longer.
const REPEAT_AFTER: Duration = Duration::from_millis(5);

#[derive(Clone, Debug)]
pub(super) struct Webhook {
    shared: Arc<Mutex<Shared>>,
    /// What people said, in order.
    lane: mpsc::UnboundedSender<Value>,
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Shared {
    callback: Option<String>,
    taken: usize,
}

impl Webhook {
    pub(super) fn start(stop: CancellationToken) -> Self {
        let (lane, mut waiting) = mpsc::unbounded_channel::<Value>();
        let webhook = Self {
            shared: Arc::default(),
            lane,
            stop: stop.clone(),
        };
        // Not a clone of all of it, or the lane would never end.
        let shared = Arc::clone(&webhook.shared);
        tokio::spawn(async move {
            while let Some(Some(body)) = stop.run_until_cancelled(waiting.recv()).await {
                let delivering = deliver(&shared, &body);
                if stop.run_until_cancelled(delivering).await.is_none() {
                    break;
                }
            }
        });
        webhook
    }

    pub(super) async fn subscribe(&self, callback: &str) -> (u16, String) {
        let url = format!(
            "{callback}?hub.mode=subscribe&hub.verify_token={VERIFY_TOKEN}&hub.challenge={CHALLENGE}"
        );
        let answer = http::request("GET", &url, &[], b"").await;
        let (status, body) = answer.unwrap_or_default();
        if status == 200 && body == CHALLENGE {
            self.lock().callback = Some(callback.to_owned());
        }
        (status, body)
    }

    pub(super) fn post_message(&self, body: &Value) {
        // The lane ends with the server.
        let _ = self.lane.send(body.clone());
    }

    /// Beside the messages: a status does not wait for what somebody said.
    pub(super) fn post_status(&self, body: Value) {
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.clone());
        tokio::spawn(async move { stop.run_until_cancelled(deliver(&shared, &body)).await });
    }

    pub(super) async fn post_raw(&self, body: &[u8], signature: Option<&str>) -> u16 {
        let callback = self.lock().callback.clone().unwrap_or_default();
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(signature.map(|signature| ("X-Hub-Signature-256", signature)));
        let answer = http::request("POST", &callback, &headers, body).await;
        answer.unwrap_or_default().0
    }

    pub(super) fn taken(&self) -> usize {
        self.lock().taken
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until it is taken.
async fn deliver(shared: &Mutex<Shared>, body: &Value) {
    let body = body.to_string();
    let signature = sign(body.as_bytes());
    let headers = [
        ("Content-Type", "application/json"),
        ("X-Hub-Signature-256", signature.as_str()),
    ];
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let callback = lock().callback.clone();
        if let Some(callback) = callback {
            let answer = http::request("POST", &callback, &headers, body.as_bytes()).await;
            if answer.is_ok_and(|(status, _)| status == 200) {
                lock().taken += 1;
                return;
            }
        }
        tokio::time::sleep(REPEAT_AFTER).await;
    }
}

/// The signature of a body, as Meta computes it.
pub fn sign(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(APP_SECRET.as_bytes())
        .expect("HMAC takes a key of any length");
    mac.update(body);
    let digest = mac.finalize().into_bytes();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}
