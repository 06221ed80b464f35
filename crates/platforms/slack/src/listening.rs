//! From the first question who we are to the last event: what runs while somebody listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::{self, BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{
    AdapterStateError, Backoff, ChannelPositions, ChatState, ReceiveError, Received,
};
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use crate::account::SlackAccount;
use crate::config::Intake;
use crate::identity::Identity;
use crate::inbox::{EventInbox, UnsettledEvents};
use crate::threads::JoinedThreads;
use crate::wire::CallError;
use crate::{socket_mode, sweep};

/// Events that wait to be looked at.
const WAITING: usize = 64;

/// What is known while somebody listens.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) identity: Identity,
    pub(crate) threads: JoinedThreads,
    pub(crate) inbox: EventInbox,
    /// How often nobody was connected.
    pub(crate) gaps: AtomicU64,
    pub(crate) sweep_wanted: Notify,
}

/// Everything that happens, until `stop`. What listens runs in a task of its own, so that sockets answer
/// pings and acknowledgements leave while the gateway looks at an event.
pub(crate) fn stream(
    slack: &Arc<SlackAccount>,
    stop: CancellationToken,
) -> BoxStream<'_, Result<Received, ReceiveError>> {
    stream::unfold(Stage::Begin, move |stage| next(slack, stop.clone(), stage)).boxed()
}

enum Stage {
    Begin,
    Listen {
        take_out: mpsc::Receiver<Received>,
        task: AbortOnDropHandle<ReceiveError>,
    },
    Over,
}

async fn next(
    slack: &Arc<SlackAccount>,
    stop: CancellationToken,
    stage: Stage,
) -> Option<(Result<Received, ReceiveError>, Stage)> {
    let (mut take_out, mut task) = match stage {
        Stage::Begin => {
            let (hand_in, take_out) = mpsc::channel(WAITING);
            let task = tokio::spawn(listen(Arc::clone(slack), hand_in));
            (take_out, AbortOnDropHandle::new(task))
        }
        Stage::Listen { take_out, task } => (take_out, task),
        Stage::Over => return None,
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {
            task.abort();
            // Its last word about the state comes before ours.
            let _ = (&mut task).await;
            let why = "asked to".to_owned();
            slack.set_state(ChatState::Stopped { why });
            None
        }
        Some(received) = take_out.recv() => {
            Some((Ok(received), Stage::Listen { take_out, task }))
        }
        ended = &mut task => ended.ok().map(|error| (Err(error), Stage::Over)),
    }
}

/// Ends only with an error that does not pass.
async fn listen(slack: Arc<SlackAccount>, hand_in: mpsc::Sender<Received>) -> ReceiveError {
    let (listening, unsettled) = match prepare(&slack, hand_in).await {
        Ok(prepared) => prepared,
        Err(error) => return error,
    };
    let listening = Arc::new(listening);
    let _published = slack.publish(&listening);
    let intake: BoxFuture<'_, ReceiveError> = match &slack.intake {
        Intake::SocketMode { app_token } => {
            socket_mode::keep_open(&slack, &listening, app_token).boxed()
        }
        Intake::EventsApi { .. } => {
            // Slack calls us from now on; what it gave up before stands in the histories.
            slack.set_state(ChatState::Connected);
            listening.sweep_wanted.notify_one();
            future::pending().boxed()
        }
    };
    tokio::select! {
        error = intake => error,
        never = listening.inbox.settle_all(unsettled) => match never {},
        never = sweep::sweep_gaps(&slack, &listening) => match never {},
    }
}

async fn prepare(
    slack: &SlackAccount,
    hand_in: mpsc::Sender<Received>,
) -> Result<(Listening, UnsettledEvents), ReceiveError> {
    let identity = identify(slack).await?;
    let workspace = &identity.workspace;
    info!(account = %slack.account, workspace, home = identity.home.id(), "connected to slack");
    let mut backoff = slack.backoff();
    let (positions, threads) = loop {
        match recall(slack).await {
            Ok(recalled) => break recalled,
            Err(error) => {
                warn!(account = %slack.account, %error, "the state of the slack adapter cannot be read");
                slack.set_state(ChatState::Retrying {
                    why: error.to_string(),
                });
                sleep(backoff.next_wait()).await;
            }
        }
    };
    let stored = Arc::clone(&slack.stored);
    let (inbox, unsettled) = EventInbox::new(hand_in, positions, stored, &slack.timing);
    let listening = Listening {
        identity,
        threads,
        inbox,
        gaps: AtomicU64::new(1),
        sweep_wanted: Notify::new(),
    };
    Ok((listening, unsettled))
}

async fn recall(
    slack: &SlackAccount,
) -> Result<(ChannelPositions, JoinedThreads), AdapterStateError> {
    let positions = ChannelPositions::load(Arc::clone(&slack.adapter_state)).await?;
    let threads = JoinedThreads::load(Arc::clone(&slack.adapter_state)).await?;
    Ok((positions, threads))
}

async fn identify(slack: &SlackAccount) -> Result<Identity, ReceiveError> {
    let mut backoff = slack.backoff();
    loop {
        match Identity::ask(&slack.wire).await {
            Ok(identity) => return Ok(identity),
            Err(error) => ride_out(slack, &error, &mut backoff).await?,
        }
    }
}

/// Waits out what may pass. What may not is returned.
pub(crate) async fn ride_out(
    slack: &SlackAccount,
    error: &CallError,
    backoff: &mut Backoff,
) -> Result<(), ReceiveError> {
    let why = error.to_string();
    if error.is_final() {
        slack.set_state(ChatState::Stopped { why: why.clone() });
        return Err(ReceiveError::Unauthorized {
            account: slack.account.clone(),
            description: why,
        });
    }
    let wait = match error {
        CallError::Throttled { retry_after } => (*retry_after).max(backoff.next_wait()),
        _ => backoff.next_wait(),
    };
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let wait_ms = wait.as_millis();
    warn!(account = %slack.account, %error, cause, wait_ms, "slack does not let us in yet");
    if slack.is_not_connected() {
        slack.set_state(ChatState::Retrying { why });
    }
    sleep(wait).await;
    Ok(())
}

impl Listening {
    /// Nobody is connected from here on: positions stand still until a sweep has read what was said.
    pub(crate) fn begin_gap(&self) {
        self.gaps.fetch_add(1, Ordering::SeqCst);
        self.inbox.positions().begin_sweep();
    }
}
