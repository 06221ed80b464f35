//! What receiving and sending share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hermetic_chat::{AdapterState, Backoff, ChatState, RecentKeys};
use hermetic_types::{AccountId, UpdateId};

use crate::config::{Hearing, Intake, SlackConfig, SlackConfigError, Timing};
use crate::listening::Listening;
use crate::pace::Pace;
use crate::wire::Wire;

/// Slack repeats an event for some six minutes; the ledger knows all the others.
const KNOWN_EVENTS: usize = 4000;

#[derive(Debug)]
pub(crate) struct SlackAccount {
    pub(crate) account: AccountId,
    pub(crate) wire: Wire,
    pub(crate) intake: Intake,
    pub(crate) hearing: Hearing,
    pub(crate) timing: Timing,
    pub(crate) pace: Pace,
    pub(crate) adapter_state: Arc<dyn AdapterState>,
    /// Events that were stored lately: Slack repeats itself when it doubts.
    pub(crate) stored: Arc<Mutex<RecentKeys<UpdateId>>>,
    pub(crate) malformed: Mutex<HashSet<&'static str>>,
    /// Slack does not let this app show that it writes.
    pub(crate) no_status: AtomicBool,
    state: Mutex<ChatState>,
    /// Whoever listens now.
    listening: Mutex<Option<Arc<Listening>>>,
}

/// Takes the listening away again when it ends.
#[derive(Debug)]
pub(crate) struct Published<'a>(&'a SlackAccount);

impl SlackAccount {
    pub(crate) fn new(
        config: SlackConfig,
        adapter_state: Arc<dyn AdapterState>,
    ) -> Result<Self, SlackConfigError> {
        config.check_secrets()?;
        Ok(Self {
            wire: Wire::new(&config)?,
            account: config.account,
            intake: config.intake,
            hearing: config.hearing,
            timing: config.timing,
            pace: Pace::default(),
            adapter_state,
            stored: Arc::new(Mutex::new(RecentKeys::new(KNOWN_EVENTS))),
            malformed: Mutex::default(),
            no_status: AtomicBool::new(false),
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

    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(self.timing.retry.0, self.timing.retry.1)
    }

    pub(crate) fn publish(&self, listening: &Arc<Listening>) -> Published<'_> {
        *self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(listening));
        Published(self)
    }

    pub(crate) fn listening(&self) -> Option<Arc<Listening>> {
        self.listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn may_show_status(&self) -> bool {
        !self.no_status.load(Ordering::Relaxed)
    }
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        let mut listening = self
            .0
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *listening = None;
    }
}
