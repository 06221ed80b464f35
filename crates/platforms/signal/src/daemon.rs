//! signal-cli's daemon, whichever way it listens.
//!
//! Over HTTP a call is a request and events are a stream of their own. Over a socket both share one
//! connection, and it has to be the only one: the daemon hands every event to everybody who is connected
//! and forgets it, so a connection that was opened for a call alone would swallow messages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Value, json};

use crate::endpoint::DaemonEndpoint;
use crate::http::HttpDaemon;
use crate::rpc::SignalCallError;
use crate::socket::{SocketDaemon, SocketEvents};
use crate::sse::SseEvents;
use crate::{SignalConfig, SignalConfigError};

/// What comes over a stream of events is bounded: Signal's own bound for a text is 64 KiB.
pub(crate) const LONGEST_EVENT: usize = 4 << 20;

/// For asking whether messages are received, before we listen: they should not wait for it long.
const PROBING: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct SignalDaemon {
    link: DaemonLink,
    /// The number it runs as.
    account: String,
    ids: AtomicU64,
    request: Duration,
}

#[derive(Debug)]
enum DaemonLink {
    Http(HttpDaemon),
    Socket(SocketDaemon),
}

/// Something that came over the stream.
#[derive(Debug, PartialEq)]
pub(crate) enum DaemonFrame {
    /// Nothing but a sign of life.
    Alive,
    Event(Value),
    /// Not JSON, or too long.
    Malformed,
}

#[derive(Debug)]
pub(crate) enum DaemonEvents {
    Http(SseEvents),
    Socket(SocketEvents),
}

impl SignalDaemon {
    pub(crate) fn new(config: &SignalConfig) -> Result<Self, SignalConfigError> {
        let link = match &config.endpoint {
            DaemonEndpoint::Http(url) => {
                DaemonLink::Http(HttpDaemon::new(url.clone(), config.endpoint.is_loopback())?)
            }
            DaemonEndpoint::Tcp(_) | DaemonEndpoint::Unix(_) => {
                DaemonLink::Socket(SocketDaemon::new(config.endpoint.clone()))
            }
        };
        Ok(Self {
            link,
            account: config.number.clone(),
            ids: AtomicU64::new(1),
            request: config.timing.request,
        })
    }

    /// Whether a connection for a call alone would take messages away.
    pub(crate) fn is_socket(&self) -> bool {
        matches!(self.link, DaemonLink::Socket(_))
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, SignalCallError> {
        self.call_within(method, params, self.request, LONGEST_EVENT)
            .await
    }

    /// A call for our account, whose answer is not longer than this.
    pub(crate) async fn call_within(
        &self,
        method: &str,
        mut params: Value,
        limit: Duration,
        longest: usize,
    ) -> Result<Value, SignalCallError> {
        params["account"] = json!(self.account);
        self.call_plainly(method, &params, limit, longest).await
    }

    async fn call_plainly(
        &self,
        method: &str,
        params: &Value,
        limit: Duration,
        longest: usize,
    ) -> Result<Value, SignalCallError> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        match &self.link {
            DaemonLink::Http(http) => http.call(id, method, params, limit, longest).await,
            DaemonLink::Socket(socket) => socket.call(id, method, params, limit).await,
        }
    }

    /// Whether messages are received although we are not connected: then those that come while we are
    /// away are lost. Nothing is received by asking, because no message is what is asked for.
    pub(crate) async fn receives_without_us(&self) -> Result<bool, SignalCallError> {
        let nothing = json!({ "timeout": 0, "maxMessages": 0 });
        let asked = match self
            .call_within("receive", nothing.clone(), PROBING, LONGEST_EVENT)
            .await
        {
            // A daemon for one account does not know the parameter here.
            Err(error) if error.says_unknown_parameter() => {
                self.call_plainly("receive", &nothing, PROBING, LONGEST_EVENT)
                    .await
            }
            asked => asked,
        };
        match asked {
            Ok(_) => Ok(false),
            Err(error) if error.says_already_received() => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Begins to listen.
    pub(crate) async fn events(&self) -> Result<DaemonEvents, SignalCallError> {
        match &self.link {
            DaemonLink::Http(http) => http.events(&self.account).await.map(DaemonEvents::Http),
            DaemonLink::Socket(socket) => {
                let events = socket.events().await?;
                // Started with `--receive-mode=manual` it waits to be told.
                if !self.receives_without_us().await.unwrap_or(true) {
                    self.call("subscribeReceive", json!({})).await?;
                }
                Ok(DaemonEvents::Socket(events))
            }
        }
    }

    /// Has the daemon hand nothing over any more, where it can be told.
    pub(crate) async fn hang_up(&self) {
        if let DaemonLink::Socket(socket) = &self.link {
            socket.hang_up().await;
        }
    }

    /// Whether Signal still takes the daemon for the account's. A daemon for one account answers all that it
    /// can by itself when the phone has unlinked it, and hears nothing any more. Only a refusal counts: that
    /// Signal cannot be reached passes by itself.
    pub(crate) async fn prove_account(&self) -> Result<(), SignalCallError> {
        let nothing = json!({});
        let asked = match self.call("listDevices", nothing.clone()).await {
            Err(error) if error.says_unknown_parameter() => {
                let limit = self.request;
                self.call_plainly("listDevices", &nothing, limit, LONGEST_EVENT)
                    .await
            }
            asked => asked,
        };
        match asked {
            Err(error) if error.lacks_account() => Err(error),
            _ => Ok(()),
        }
    }

    /// Asks for something small that only a daemon with our account answers.
    pub(crate) async fn ping(&self) -> Result<Value, SignalCallError> {
        self.call("version", json!({})).await
    }
}

impl DaemonEvents {
    /// May be dropped and called again; nothing is lost by that.
    pub(crate) async fn next(&mut self) -> Result<DaemonFrame, SignalCallError> {
        match self {
            Self::Http(events) => events.next().await,
            Self::Socket(events) => events.next().await,
        }
    }

    /// What is here already, or comes before the daemon has ended the connection that it was told to end.
    pub(crate) async fn rest(&mut self) -> Vec<DaemonFrame> {
        let mut frames = Vec::new();
        loop {
            let next = match self {
                Self::Http(events) => events.next().now_or_never(),
                Self::Socket(events) => Some(events.next().await),
            };
            match next {
                Some(Ok(frame)) => frames.push(frame),
                Some(Err(_)) | None => return frames,
            }
        }
    }

    /// Whether silence is a sign: over HTTP there is a sign of life every fifteen seconds.
    pub(crate) fn show_life(&self) -> bool {
        matches!(self, Self::Http(_))
    }
}
