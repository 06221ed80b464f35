//! What receiving and sending share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermetic_chat::{AdapterState, Backoff, ChatState, Position, RecentKeys, RefusalLog};
use hermetic_types::{AccountId, SharedClock, UpdateId};

use crate::config::{SlackConfig, SlackConfigError, SlackEventIntake, SlackHearing, SlackTiming};
use crate::listening::ListeningState;
use crate::names::PeoplesNames;
use crate::pace::CallPace;
use crate::wire::SlackApi;

/// Slack repeats an event for some six minutes; the ledger knows all the others.
const KNOWN_EVENTS: usize = 4000;

/// In microseconds. Slack gives a request up after some six minutes.
const LOST_REQUESTS: Position = 15 * 60 * 1_000_000;

#[derive(Debug)]
pub(crate) struct SlackAccount {
    pub(crate) account: AccountId,
    pub(crate) wire: SlackApi,
    pub(crate) intake: SlackEventIntake,
    pub(crate) hearing: SlackHearing,
    pub(crate) timing: SlackTiming,
    pub(crate) clock: SharedClock,
    pub(crate) pace: CallPace,
    pub(crate) adapter_state: Arc<dyn AdapterState>,
    /// Events that were stored lately: Slack repeats itself when it doubts.
    pub(crate) stored: Arc<Mutex<RecentKeys<UpdateId>>>,
    pub(crate) malformed: Mutex<HashSet<&'static str>>,
    /// Slack does not let this app show that it writes.
    pub(crate) no_status: AtomicBool,
    pub(crate) names: PeoplesNames,
    pub(crate) refusals: RefusalLog,
    state: Mutex<ChatState>,
    /// Whoever listens now.
    listening: Mutex<Option<Arc<ListeningState>>>,
}

/// Takes the listening away again when it ends.
#[derive(Debug)]
pub(crate) struct PublishedListening<'a>(&'a SlackAccount);

impl SlackAccount {
    pub(crate) fn new(
        config: SlackConfig,
        adapter_state: Arc<dyn AdapterState>,
    ) -> Result<Self, SlackConfigError> {
        config.check_secrets()?;
        Ok(Self {
            wire: SlackApi::new(&config)?,
            account: config.account,
            intake: config.intake,
            hearing: config.hearing,
            timing: config.timing,
            clock: config.clock,
            pace: CallPace::default(),
            adapter_state,
            stored: Arc::new(Mutex::new(RecentKeys::new(KNOWN_EVENTS))),
            malformed: Mutex::default(),
            no_status: AtomicBool::new(false),
            names: PeoplesNames::default(),
            refusals: RefusalLog::default(),
            state: Mutex::new(ChatState::Starting),
            listening: Mutex::default(),
        })
    }

    pub(crate) fn state(&self) -> ChatState {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_state(&self, state: ChatState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    pub(crate) fn is_not_connected(&self) -> bool {
        self.state() != ChatState::Connected
    }

    /// Slack's name for this moment.
    pub(crate) fn position_now(&self) -> Position {
        self.position_before(Duration::ZERO)
    }

    /// The same for the moment so long ago.
    pub(crate) fn position_before(&self, ago: Duration) -> Position {
        Position::try_from(self.clock.now().minus(ago).micros()).unwrap_or_default()
    }

    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(self.timing.retry.0, self.timing.retry.1)
    }

    pub(crate) fn publish(&self, listening: &Arc<ListeningState>) -> PublishedListening<'_> {
        *self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(listening));
        PublishedListening(self)
    }

    pub(crate) fn listening(&self) -> Option<Arc<ListeningState>> {
        self.listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Where a history is read from. Requests of Slack's may fail one by one, so that something later was
    /// stored before what is missing; the ledger knows what is found twice.
    pub(crate) fn look_back(&self, position: Position) -> Position {
        match self.intake {
            SlackEventIntake::SocketMode { .. } => position,
            SlackEventIntake::EventsApi { .. } => position.saturating_sub(LOST_REQUESTS),
        }
    }

    pub(crate) fn may_show_status(&self) -> bool {
        !self.no_status.load(Ordering::Relaxed)
    }
}

// By a guard, because the stream that listens may be dropped at any await.
impl Drop for PublishedListening<'_> {
    fn drop(&mut self) {
        let mut listening = self
            .0
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *listening = None;
    }
}
