//! One connection to the gateway, from its first word to its end.
//!
//! It is a task of its own, so that it goes on beating while nobody takes its events: Discord ends a
//! connection that does not beat. An event that finds no room waits, and nothing more is read meanwhile.

use std::sync::Arc;
use std::time::Duration;

use hermetic_types::Secret;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use crate::close_code::{ConnectionEnd, KEEPS_SESSION};
use crate::dispatch::DispatchEvent;
use crate::interactions::OpenInteractions;
use crate::socket::{GatewaySocket, SocketError, SocketFrame};

/// Events that wait to be taken.
const MOST_WAITING_EVENTS: usize = 64;
/// Nothing beats faster or slower because the gateway says so.
const BEATS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(600));
/// How long saying goodbye may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// The events of a connection. The connection ends when this is dropped.
#[derive(Debug)]
pub(crate) struct GatewayConnection {
    events: mpsc::Receiver<NumberedEvent>,
    task: JoinHandle<ConnectionEnd>,
    stop: DropGuard,
}

/// An event, and its number within the session.
#[derive(Debug)]
pub(crate) struct NumberedEvent {
    pub(crate) number: u64,
    pub(crate) event: DispatchEvent,
}

/// The first thing we say.
#[derive(Debug)]
pub(crate) enum GatewayGreeting {
    Identify {
        token: Secret,
        intents: u32,
    },
    Resume {
        token: Secret,
        session: String,
        sequence: u64,
    },
}

impl GatewayConnection {
    pub(crate) fn start(
        socket: GatewaySocket,
        greeting: GatewayGreeting,
        interactions: Arc<OpenInteractions>,
        hello: Duration,
    ) -> Self {
        let (sender, events) = mpsc::channel(MOST_WAITING_EVENTS);
        let stop = CancellationToken::new();
        let speaker = GatewaySpeaker {
            socket,
            events: sender,
            interactions,
            sequence: None,
            waiting: None,
            unanswered: false,
        };
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut speaker = speaker;
            let ended = tokio::select! {
                // Dropped where we leave: what it had read and not handed over comes again when the
                // session is resumed.
                ended = speaker.talk(greeting, hello) => ended,
                () = stopped.cancelled() => ConnectionEnd::Resumable { why: "we left".to_owned() },
            };
            // Also where the other side ended it: a socket that stays open would be a second ear.
            let _ = timeout(FAREWELL, speaker.socket.close(KEEPS_SESSION)).await;
            ended
        });
        Self {
            events,
            task,
            stop: stop.drop_guard(),
        }
    }

    /// The next event; `None` when the connection is over.
    pub(crate) async fn next(&mut self) -> Option<NumberedEvent> {
        self.events.recv().await
    }

    /// Ends it, if it has not ended, in a way that leaves the session alive.
    pub(crate) async fn end(self) -> ConnectionEnd {
        // The stop first: a task that waits for room would otherwise take the closed channel for
        // its reason to end.
        drop(self.stop);
        drop(self.events);
        self.task.await.unwrap_or_else(|error| broken(&error))
    }

    /// How it ended by itself.
    pub(crate) async fn ended(self) -> ConnectionEnd {
        self.task.await.unwrap_or_else(|error| broken(&error))
    }
}

fn broken(error: &JoinError) -> ConnectionEnd {
    ConnectionEnd::Resumable {
        why: error.to_string(),
    }
}

struct GatewaySpeaker {
    socket: GatewaySocket,
    events: mpsc::Sender<NumberedEvent>,
    interactions: Arc<OpenInteractions>,
    /// The last number that was seen, which is what a beat tells.
    sequence: Option<u64>,
    waiting: Option<NumberedEvent>,
    /// The last beat was not answered yet.
    unanswered: bool,
}

#[derive(Deserialize)]
struct GatewayPayload {
    op: u8,
    #[serde(default)]
    d: Value,
    s: Option<u64>,
    t: Option<String>,
}

impl GatewaySpeaker {
    async fn talk(&mut self, greeting: GatewayGreeting, hello: Duration) -> ConnectionEnd {
        // Heard before we speak, as the protocol has it: the hello says how often a beat is wanted.
        let interval = match timeout(hello, self.hello()).await {
            Ok(Ok(interval)) => interval,
            Ok(Err(ended)) => return ended,
            Err(_) => return resumable("the gateway did not say hello"),
        };
        if let Err(error) = self.socket.send(&greeting.payload()).await {
            return resumable(error.to_string());
        }
        // The first beat at a random moment: a gateway that comes back is not met by everybody at once.
        let mut beat = Instant::now() + interval.mul_f64(random());
        let events = self.events.clone();
        loop {
            let goes_on = tokio::select! {
                // The beat first: under a flood of events it would come too late, and a connection
                // that does not beat is ended.
                biased;
                () = sleep_until(beat) => {
                    beat = Instant::now() + interval;
                    self.beat().await
                }
                // A place first and the event then: whichever branch is dropped here, no event is
                // lost with it.
                permit = events.reserve(), if self.waiting.is_some() => {
                    match (permit, self.waiting.take()) {
                        (Ok(permit), Some(event)) => {
                            permit.send(event);
                            Ok(())
                        }
                        _ => Err(resumable("nobody listens any more")),
                    }
                }
                frame = self.socket.next(), if self.waiting.is_none() => self.take(frame).await,
            };
            if let Err(ended) = goes_on {
                return ended;
            }
        }
    }

    async fn hello(&mut self) -> Result<Duration, ConnectionEnd> {
        loop {
            let payload = match self
                .socket
                .next()
                .await
                .map_err(|error| resumable(error.to_string()))?
            {
                SocketFrame::Closed(code) => return Err(closed(code)),
                SocketFrame::Text(text) => serde_json::from_str::<GatewayPayload>(&text),
            };
            if let Ok(GatewayPayload { op: 10, d, .. }) = payload {
                let every = d["heartbeat_interval"].as_u64().unwrap_or(41_250);
                return Ok(Duration::from_millis(every).clamp(BEATS.0, BEATS.1));
            }
        }
    }

    /// Tells the gateway that we are here. One that did not answer the last beat is dead, although its
    /// connection is open; unless it was not listened to, because an event waits.
    async fn beat(&mut self) -> Result<(), ConnectionEnd> {
        if self.unanswered && self.waiting.is_none() {
            return Err(resumable("the gateway does not answer any more"));
        }
        self.unanswered = true;
        let payload = json!({ "op": 1, "d": self.sequence });
        self.socket
            .send(&payload)
            .await
            .map_err(|error| resumable(error.to_string()))
    }

    async fn take(&mut self, frame: Result<SocketFrame, SocketError>) -> Result<(), ConnectionEnd> {
        let text = match frame.map_err(|error| resumable(error.to_string()))? {
            SocketFrame::Closed(code) => return Err(closed(code)),
            SocketFrame::Text(text) => text,
        };
        let Ok(payload) = serde_json::from_str::<GatewayPayload>(&text) else {
            debug!("the gateway sent something we cannot read; skipped");
            return Ok(());
        };
        match payload.op {
            0 => self.dispatch(payload),
            1 => {
                // Asked for by the gateway, beside those of the clock.
                self.unanswered = false;
                return self.beat().await;
            }
            7 => return Err(resumable("the gateway wants us to connect anew")),
            9 if payload.d == Value::Bool(true) => {
                return Err(resumable("the gateway did not take the session now"));
            }
            9 => {
                return Err(ConnectionEnd::SessionLost {
                    why: "the gateway does not know the session".to_owned(),
                });
            }
            11 => self.unanswered = false,
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, payload: GatewayPayload) {
        let Some(number) = payload.s else {
            debug!("the gateway sent an event without a number; skipped");
            return;
        };
        // Of every event, also of those that are not for us: a beat that names an old number looks
        // like a client that lags.
        self.sequence = self.sequence.max(Some(number));
        let kind = payload.t.unwrap_or_default();
        let event = DispatchEvent::read(&kind, payload.d);
        if let DispatchEvent::Interaction(interaction) = &event {
            // At once: whoever takes the events may be waiting for a disk.
            self.interactions.arrived(interaction);
        }
        self.waiting = Some(NumberedEvent { number, event });
    }
}

impl GatewayGreeting {
    fn payload(&self) -> Value {
        match self {
            Self::Identify { token, intents } => json!({ "op": 2, "d": {
                "token": token.expose(),
                "intents": intents,
                "properties": { "os": "linux", "browser": "hermetic", "device": "hermetic" },
            }}),
            Self::Resume {
                token,
                session,
                sequence,
            } => json!({ "op": 6, "d": {
                "token": token.expose(),
                "session_id": session,
                "seq": sequence,
            }}),
        }
    }
}

fn closed(code: Option<u16>) -> ConnectionEnd {
    code.map_or_else(|| resumable("the connection ended"), ConnectionEnd::by_code)
}

fn resumable(why: impl Into<String>) -> ConnectionEnd {
    ConnectionEnd::Resumable { why: why.into() }
}

/// Between 0 and 1.
fn random() -> f64 {
    getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX))
}
