//! From the first question who we are to the last event: what runs while somebody listens.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{self, BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{
    AdapterStateError, Backoff, ChannelPositions, ChatState, ReceiveError, ReceivedEvent,
};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use crate::account::SlackAccount;
use crate::config::SlackEventIntake;
use crate::identity::BotIdentity;
use crate::inbox::{EventInbox, UnsettledEvents};
use crate::threads::JoinedThreads;
use crate::wire::SlackCallError;
use crate::{socket_mode, sweep};

/// Events that wait to be looked at.
const WAITING: usize = 64;

/// Slack posts again within six minutes, and each sweep costs calls of a narrow tier.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(300);

/// What is known while somebody listens.
#[derive(Debug)]
pub(crate) struct ListeningState {
    pub(crate) identity: BotIdentity,
    pub(crate) threads: JoinedThreads,
    pub(crate) inbox: EventInbox,
    /// How often nobody was connected.
    pub(crate) gaps: AtomicU64,
    pub(crate) sweep_wanted: Notify,
    /// When it was last noticed that Slack could not reach us.
    missed: Mutex<Option<Instant>>,
}

/// Everything that happens, until `stop`. What listens runs in a task of its own, so that sockets answer
/// pings and acknowledgements leave while the gateway looks at an event.
pub(crate) fn stream(
    slack: &Arc<SlackAccount>,
    stop: CancellationToken,
) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
    stream::unfold(ListenStage::Begin, move |stage| {
        next(slack, stop.clone(), stage)
    })
    .boxed()
}

enum ListenStage {
    Begin,
    Listen {
        take_out: mpsc::Receiver<ReceivedEvent>,
        task: AbortOnDropHandle<ReceiveError>,
    },
    Over,
}

async fn next(
    slack: &Arc<SlackAccount>,
    stop: CancellationToken,
    stage: ListenStage,
) -> Option<(Result<ReceivedEvent, ReceiveError>, ListenStage)> {
    let (mut take_out, mut task) = match stage {
        ListenStage::Begin => {
            let (hand_in, take_out) = mpsc::channel(WAITING);
            // Ends with the stream: two that listen with one token would take each other's events.
            let task = tokio::spawn(listen(Arc::clone(slack), hand_in));
            (take_out, AbortOnDropHandle::new(task))
        }
        ListenStage::Listen { take_out, task } => (take_out, task),
        ListenStage::Over => return None,
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
            Some((Ok(received), ListenStage::Listen { take_out, task }))
        }
        ended = &mut task => ended.ok().map(|error| (Err(error), ListenStage::Over)),
    }
}

/// Ends only with an error that does not pass.
async fn listen(slack: Arc<SlackAccount>, hand_in: mpsc::Sender<ReceivedEvent>) -> ReceiveError {
    let (listening, unsettled) = match prepare(&slack, hand_in).await {
        Ok(prepared) => prepared,
        Err(error) => return error,
    };
    let listening = Arc::new(listening);
    // Until this is dropped requests are heard. Published only when we know who we are, because
    // otherwise nobody can tell what is meant for us.
    let _published = slack.publish(&listening);
    let intake: BoxFuture<'_, ReceiveError> = match &slack.intake {
        SlackEventIntake::SocketMode { app_token } => {
            socket_mode::keep_open(&slack, &listening, app_token).boxed()
        }
        SlackEventIntake::EventsApi { .. } => {
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
    hand_in: mpsc::Sender<ReceivedEvent>,
) -> Result<(ListeningState, UnsettledEvents), ReceiveError> {
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
    let listening = ListeningState {
        identity,
        threads,
        inbox,
        gaps: AtomicU64::new(1),
        sweep_wanted: Notify::new(),
        missed: Mutex::new(None),
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

async fn identify(slack: &SlackAccount) -> Result<BotIdentity, ReceiveError> {
    let mut backoff = slack.backoff();
    loop {
        match BotIdentity::ask(&slack.wire).await {
            Ok(identity) => return Ok(identity),
            Err(error) => ride_out(slack, &error, &mut backoff).await?,
        }
    }
}

/// Waits out what may pass. What may not is returned.
pub(crate) async fn ride_out(
    slack: &SlackAccount,
    error: &SlackCallError,
    backoff: &mut Backoff,
) -> Result<(), ReceiveError> {
    let why = error.to_string();
    if error.is_final() {
        slack.set_state(ChatState::Stopped { why: why.clone() });
        return Err(ReceiveError::Ended {
            account: slack.account.clone(),
            description: why,
        });
    }
    let wait = match error {
        SlackCallError::Throttled { retry_after } => (*retry_after).max(backoff.next_wait()),
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

impl ListeningState {
    /// Nobody is connected from here on: positions stand still until a sweep has read what was said.
    pub(crate) fn begin_gap(&self) {
        self.gaps.fetch_add(1, Ordering::SeqCst);
        self.inbox.positions().begin_sweep();
    }

    /// Slack posts something for the second time, or says that it held something back: more may be lost.
    /// It is not looked for at each such word.
    pub(crate) fn note_missed(&self) {
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        if missed.is_some_and(|at| at.elapsed() < BETWEEN_SWEEPS) {
            return;
        }
        *missed = Some(Instant::now());
        // Positions stand still from this very moment, not from the sweep that comes later: an
        // event that is stored in between must not move them past what was lost.
        drop(missed);
        self.begin_gap();
        self.sweep_wanted.notify_one();
    }
}
