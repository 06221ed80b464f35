//! Sockets, one after the other without a gap between them, as far as it is up to us.
//!
//! Slack closes each socket after some hours and says so some seconds before. The next one is opened
//! while the old one is still read, because events go to whichever is open. Where none was open, even for
//! a moment, there is a gap, and the histories are swept.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use hermetic_chat::{Backoff, ChatState, ReceiveError};
use hermetic_types::Secret;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::warn;

use crate::account::SlackAccount;
use crate::listening::{ListeningState, ride_out};
use crate::socket::{SlackSocket, SocketEnd};

/// A socket that lived for less was no success: the next one is not opened at once.
const SETTLED: Duration = Duration::from_secs(30);

/// Keeps a socket open; ends only with an error that does not pass.
pub(crate) async fn keep_open(
    slack: &SlackAccount,
    listening: &ListeningState,
    app_token: &Secret,
) -> ReceiveError {
    let (successor, mut successor_wanted) = mpsc::unbounded_channel();
    let mut sockets = OpenSockets {
        slack,
        listening,
        open: FuturesUnordered::new(),
        has_gap: true,
    };
    let mut backoff = slack.backoff();
    let mut pause = Duration::ZERO;
    loop {
        let opening = open_patiently(slack, app_token, &mut backoff, pause);
        // The old ones are served meanwhile: that is what keeps a change of sockets from being a
        // gap.
        let socket = match sockets.serve_while(opening).await {
            Ok(socket) => socket,
            Err(error) => return error,
        };
        let opened_at = Instant::now();
        sockets.add(socket, &successor);
        sockets
            .serve_until_one_is_needed(&mut successor_wanted)
            .await;
        // Slack may ask for the next one at once, and again, and again.
        pause = match opened_at.elapsed() >= SETTLED {
            true => {
                backoff.reset();
                Duration::ZERO
            }
            false => backoff.next_wait(),
        };
    }
}

async fn open_patiently(
    slack: &SlackAccount,
    app_token: &Secret,
    backoff: &mut Backoff,
    pause: Duration,
) -> Result<SlackSocket, ReceiveError> {
    sleep(pause).await;
    loop {
        match SlackSocket::open(slack, app_token).await {
            Ok(socket) => return Ok(socket),
            Err(error) => ride_out(slack, &error, backoff).await?,
        }
    }
}

/// The sockets that are open: the newest, and older ones that drain.
struct OpenSockets<'a> {
    slack: &'a SlackAccount,
    listening: &'a ListeningState,
    open: FuturesUnordered<BoxFuture<'a, SocketEnd>>,
    has_gap: bool,
}

impl<'a> OpenSockets<'a> {
    fn add(&mut self, socket: SlackSocket, successor: &mpsc::UnboundedSender<()>) {
        let (slack, listening) = (self.slack, self.listening);
        let successor = successor.clone();
        let serving = async move { socket.serve(slack, listening, &successor).await };
        self.open.push(serving.boxed());
        slack.set_state(ChatState::Connected);
        if std::mem::take(&mut self.has_gap) {
            listening.sweep_wanted.notify_one();
        }
    }

    async fn serve_while<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                Some(_) = self.open.next(), if !self.open.is_empty() => self.note_end(),
            }
        }
    }

    /// Until Slack announces the end of the newest, or it is lost.
    async fn serve_until_one_is_needed(&mut self, wanted: &mut mpsc::UnboundedReceiver<()>) {
        loop {
            tokio::select! {
                Some(()) = wanted.recv() => return,
                Some(end) = self.open.next(), if !self.open.is_empty() => {
                    self.note_end();
                    // One that was announced has a successor by now; its end is no news.
                    if end == SocketEnd::Lost || self.open.is_empty() {
                        warn!(account = %self.slack.account, "a socket of slack was lost");
                        return;
                    }
                }
                else => return,
            }
        }
    }

    fn note_end(&mut self) {
        if self.open.is_empty() && !self.has_gap {
            self.has_gap = true;
            // When the last is gone and not when the next is open: what is said in between has to
            // be behind the gap.
            self.listening.begin_gap();
            let why = "slack closed the socket".to_owned();
            self.slack.set_state(ChatState::Retrying { why });
        }
    }
}
