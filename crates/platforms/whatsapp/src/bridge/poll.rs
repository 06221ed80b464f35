//! Messages in: the bridge is asked for them, and hands each over once.
//!
//! So what it handed over is on our disk before it is handed out, and comes again from there until its
//! receipt is signed. A crash between the bridge's answer and our disk loses what was in that answer;
//! the bridge has no other copy.

use std::collections::VecDeque;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use hermetic_chat::{Backoff, ChatEvent, ChatState, Receipt, ReceivedEvent, SaveDurability};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use super::WhatsAppBridge;
use super::api::BridgeCallError;
use super::message::{BridgeMessage, BridgeReader};

/// What the keys of messages that are not stored yet begin with.
const PREFIX: &str = "polled:";

/// What is asked of the bridge, and what of it is still open.
pub(super) struct BridgePoller<'a> {
    bridge: &'a WhatsAppBridge,
    waiting: VecDeque<PolledEvent>,
    open: FuturesUnordered<BoxFuture<'a, (PolledEvent, bool)>>,
    backoff: Backoff,
    next_poll: Instant,
    next_health: Instant,
    has_begun: bool,
}

/// A message, and where it is kept until it is stored.
struct PolledEvent {
    key: String,
    event: ChatEvent,
}

#[derive(Deserialize)]
pub(super) struct RawHealth {
    pub(super) status: String,
}

impl<'a> BridgePoller<'a> {
    pub(super) fn new(bridge: &'a WhatsAppBridge) -> Self {
        let retry = bridge.timing.retry;
        Self {
            bridge,
            waiting: VecDeque::new(),
            open: FuturesUnordered::new(),
            backoff: Backoff::new(retry.0, retry.1),
            next_poll: Instant::now(),
            next_health: Instant::now(),
            has_begun: false,
        }
    }

    /// The next message, until `stop`. An answer of the bridge is never dropped half read: it would be
    /// the only copy.
    pub(super) async fn next(&mut self, stop: &CancellationToken) -> Option<ReceivedEvent> {
        loop {
            if let Some(polled) = self.waiting.pop_front() {
                return Some(self.hand_out(polled));
            }
            let pause = self.bridge.timing.retry.0;
            tokio::select! {
                () = stop.cancelled() => return None,
                Some((polled, is_stored)) = self.open.next(), if !self.open.is_empty() => {
                    match is_stored {
                        // Only now: until the gateway has it, this is the one copy that survives
                        // us.
                        true => self.bridge.forget(&polled).await,
                        false => {
                            self.waiting.push_back(polled);
                            // Whoever could not store it is not asked again at full speed, and
                            // whoever stops does not wait for that.
                            stop.run_until_cancelled(sleep(pause)).await?;
                        }
                    }
                }
                () = sleep_until(self.next_poll) => self.poll().await,
            }
        }
    }

    fn hand_out(&mut self, polled: PolledEvent) -> ReceivedEvent {
        let (receipt, counterfoil) = Receipt::pair();
        let event = polled.event.clone();
        let settled = async move { (polled, counterfoil.signed().await) };
        self.open.push(settled.boxed());
        ReceivedEvent { event, receipt }
    }

    async fn poll(&mut self) {
        if !self.has_begun {
            // Before the first question, so that what an earlier process left comes first.
            self.has_begun = self.take_up().await;
        }
        let looked = self.look().await;
        let wait = match looked {
            Ok(()) => {
                self.backoff.reset();
                self.bridge.timing.poll
            }
            Err(error) => {
                warn!(account = %self.bridge.account, %error, "the bridge was not heard");
                let why = error.to_string();
                self.bridge.set_state(ChatState::Retrying { why });
                self.next_health = Instant::now();
                self.backoff.next_wait()
            }
        };
        self.next_poll = Instant::now() + wait;
    }

    async fn look(&mut self) -> Result<(), BridgeCallError> {
        if Instant::now() >= self.next_health {
            let health: RawHealth = self.bridge.api.get("/health").await?;
            self.bridge.set_state(match health.status.as_str() {
                "connected" => ChatState::Connected,
                other => ChatState::Retrying {
                    why: format!("the bridge is not connected to WhatsApp: {other}"),
                },
            });
            self.next_health = Instant::now() + self.bridge.timing.health;
        }
        let messages: Vec<Value> = self.bridge.api.get("/messages").await?;
        for message in messages {
            self.keep(message).await;
        }
        Ok(())
    }

    /// Writes a message down and has it handed out. One that cannot be written down is handed out all
    /// the same: it may be stored before anything happens to us.
    async fn keep(&mut self, message: Value) {
        let Some(polled) = self.read(&message) else {
            return;
        };
        let text = message.to_string();
        let kept = self
            .bridge
            .store
            .save(&polled.key, &text, SaveDurability::OnDisk);
        if let Err(error) = kept.await {
            error!(update = %polled.key, %error, "a message of the bridge is only in memory");
        }
        self.waiting.push_back(polled);
    }

    /// What an earlier process had not seen stored.
    async fn take_up(&mut self) -> bool {
        match self.bridge.store.load_all(PREFIX).await {
            Ok(kept) => {
                let kept = kept.iter();
                let kept = kept.filter_map(|(_, text)| serde_json::from_str(text).ok());
                let read: Vec<_> = kept.filter_map(|message| self.read(&message)).collect();
                self.waiting.extend(read);
                true
            }
            Err(error) => {
                error!(%error, "messages of an earlier run could not be read");
                false
            }
        }
    }

    fn read(&self, message: &Value) -> Option<PolledEvent> {
        let raw = match BridgeMessage::deserialize(message) {
            Ok(raw) => raw,
            Err(error) => {
                warn!(%error, "the bridge handed over something malformed; skipped");
                return None;
            }
        };
        // Under the message's own name: one that is handed over twice is kept once.
        let key = format!("{PREFIX}{}", raw.message_id);
        let reader = BridgeReader {
            account: &self.bridge.account,
            hearing: &self.bridge.hearing,
            now: self.bridge.now(),
        };
        match raw.event(reader) {
            Ok(event) => Some(PolledEvent { key, event }),
            Err(why) => {
                debug!(update = key, why, "not for us");
                None
            }
        }
    }
}

impl WhatsAppBridge {
    async fn forget(&self, polled: &PolledEvent) {
        if let Err(error) = self.store.remove(&polled.key).await {
            // It comes again after a restart, and its update id tells.
            debug!(%error, "a stored message is still kept");
        }
    }
}
