//! Events in.
//!
//! The homeserver tells everything since a position that we name. A batch is handed out whole; the position
//! moves, and is written down, when every receipt of the batch is signed. Whatever comes back unsigned is
//! asked for again, from where we stand.

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{
    AdapterStateError, Backoff, ChatEvent, ChatState, Receipt, ReceiptWaiter, ReceiveError,
    ReceivedEvent, SaveDurability,
};
use hermetic_types::UpdateId;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::MatrixAdapter;
use crate::session::SessionError;
use crate::sync::{SyncBatch, read_sync};
use crate::wire::{MatrixCallError, MatrixRoute};

/// Where the position is kept.
const SINCE_KEY: &str = "since";
/// Events of one room in one answer; what is before them is read from its history.
const TIMELINE: u32 = 20;
/// A sync that ends sooner than this, with nothing for us, was not held open.
const HELD: Duration = Duration::from_secs(1);
/// How often in a row a session that was just made may turn out not to be one.
const NEW_SESSIONS: u32 = 3;

/// What interrupts listening.
#[derive(Debug, Error)]
pub(crate) enum MatrixTrouble {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    State(#[from] AdapterStateError),
}

/// An event for the gateway, and the name under which it is known.
#[derive(Debug)]
pub(crate) struct SyncArrival {
    pub(crate) update: UpdateId,
    pub(crate) event: ChatEvent,
}

pub(crate) fn stream(
    matrix: &MatrixAdapter,
    stop: CancellationToken,
) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
    let receiver = MatrixReceiver {
        matrix,
        ready: VecDeque::new(),
        handed_out: Vec::new(),
        since: None,
        next: None,
        has_begun: false,
        is_dead: false,
        new_sessions: 0,
        backoff: Backoff::new(matrix.timing.retry.0, matrix.timing.retry.1),
        pace: SyncPace::default(),
    };
    stream::unfold((receiver, stop), |(mut receiver, stop)| async move {
        let next = stop.run_until_cancelled(receiver.next()).await.flatten();
        if next.is_none() && stop.is_cancelled() {
            receiver.matrix.set_state(ChatState::Stopped {
                why: "asked to".to_owned(),
            });
        }
        next.map(|next| (next, (receiver, stop)))
    })
    .boxed()
}

struct MatrixReceiver<'a> {
    matrix: &'a MatrixAdapter,
    ready: VecDeque<ReceivedEvent>,
    handed_out: Vec<(UpdateId, ReceiptWaiter)>,
    /// Everything before it is stored.
    since: Option<String>,
    /// The position after what is handed out.
    next: Option<String>,
    has_begun: bool,
    is_dead: bool,
    /// Made in a row, without a sync in between.
    new_sessions: u32,
    backoff: Backoff,
    pace: SyncPace,
}

impl MatrixReceiver<'_> {
    async fn next(&mut self) -> Option<Result<ReceivedEvent, ReceiveError>> {
        loop {
            if let Some(received) = self.ready.pop_front() {
                return Some(Ok(received));
            }
            if self.is_dead {
                return None;
            }
            // Before the next sync, which names the position: whatever is not stored by then has to
            // come with it once more.
            self.settle().await;
            if let Err(trouble) = self.sync().await
                && let Some(last) = self.ride_out(trouble).await
            {
                self.is_dead = true;
                return Some(Err(last));
            }
        }
    }

    /// Waits for the receipts of the last batch and moves the position if all of it is safe.
    async fn settle(&mut self) {
        let mut unsigned = None;
        for (update, counterfoil) in self.handed_out.drain(..) {
            match counterfoil.signed().await {
                true => {
                    // What waited for its key is forgotten when it is stored, not when it was read.
                    self.matrix.forget_unread(&update).await;
                    self.matrix.note_seen(update);
                }
                false => unsigned = unsigned.or(Some(update)),
            }
        }
        let next = self.next.take();
        if let Some(update) = unsigned {
            warn!(account = %self.matrix.account, %update, "an event was not stored; asking for it again");
            sleep(self.backoff.next_wait()).await;
            return;
        }
        if let Some(next) = next.filter(|next| self.since.as_ref() != Some(next)) {
            // A position of a moment ago costs a few events that are known.
            let saved = self
                .matrix
                .store
                .save(SINCE_KEY, &next, SaveDurability::Soon)
                .await;
            if let Err(error) = saved {
                warn!(account = %self.matrix.account, %error, "the position could not be kept");
            }
            self.since = Some(next);
            self.backoff.reset();
        }
    }

    async fn sync(&mut self) -> Result<(), MatrixTrouble> {
        let session = self.matrix.session().await?;
        if !self.has_begun {
            self.matrix.rooms.load().await?;
            self.matrix.tidy().await;
            self.since = self.matrix.store.load(SINCE_KEY).await?;
        }
        if self.has_begun {
            // When all that was said is handed out: a room may take a while to join.
            self.matrix.answer_invitations().await;
        }
        let asked = Instant::now();
        let answer: Value = self.matrix.call(&self.route(), |r| r).await?;
        let status = 200;
        let batch = read_sync(&answer, &session.user)
            .ok_or(SessionError::Call(MatrixCallError::Garbled { status }))?;
        // First: the words under a key come with it or after it.
        let has_keys = self.matrix.take_keys(&answer).await?;
        let is_first = !self.has_begun;
        self.connected(&session.user);
        self.matrix.note_invitations(&batch.invitations).await?;
        let took = self.take(batch, has_keys || is_first).await?;
        self.matrix.tell_unread().await?;
        sleep(self.pace.after(took, asked.elapsed())).await;
        Ok(())
    }

    /// The first one is answered at once: it tells that we are heard, and what was missed.
    fn route(&self) -> MatrixRoute {
        let timing = &self.matrix.timing;
        let poll = match self.has_begun && self.since.is_some() {
            true => timing.poll,
            false => Duration::ZERO,
        };
        let limit = match self.since {
            Some(_) => TIMELINE,
            // What was said before we first listened was not said to us.
            None => 1,
        };
        let filter = json!({
            "presence": { "types": [] },
            "account_data": { "types": [] },
            "room": {
                "account_data": { "types": [] },
                "ephemeral": { "types": [] },
                "state": { "lazy_load_members": true },
                "timeline": { "limit": limit, "lazy_load_members": true },
            },
        });
        let route = MatrixRoute::get(&["sync"])
            .with("filter", filter.to_string())
            .with("timeout", poll.as_millis().to_string())
            .within(poll + timing.slack);
        match &self.since {
            Some(since) => route.with("since", since.as_str()),
            None => route,
        }
    }

    fn connected(&mut self, user: &str) {
        if !self.has_begun {
            info!(account = %self.matrix.account, user, "connected to matrix");
        }
        self.has_begun = true;
        self.new_sessions = 0;
        self.matrix.set_state(ChatState::Connected);
    }

    async fn take(&mut self, batch: SyncBatch, has_keys: bool) -> Result<SyncYield, MatrixTrouble> {
        if batch.malformed > 0 {
            let count = batch.malformed;
            // One line for all of them: a thousand must not fill the log.
            warn!(account = %self.matrix.account, count, "the homeserver sent malformed events; skipped");
        }
        for room in &batch.left {
            if self.matrix.rooms.forget(room).await? {
                info!(account = %self.matrix.account, room, "we are not in this room any more");
            }
        }
        let is_quiet = self.since.as_ref() == Some(&batch.next);
        for room in batch.joined {
            let heard = self.matrix.hear_room(room, self.since.as_deref()).await?;
            self.hand_out(heard);
        }
        if has_keys {
            // Behind the rooms: the keys of this answer may open what came with it, and what came
            // long before.
            let heard = self.matrix.hear_unread().await?;
            self.hand_out(heard);
        }
        // Last, when all rooms were read: a position beside a room that failed would step over what
        // was said there.
        self.next = Some(batch.next);
        Ok(match (self.ready.is_empty(), is_quiet) {
            (false, _) => SyncYield::Events,
            (true, false) => SyncYield::Others,
            (true, true) => SyncYield::Nothing,
        })
    }

    fn hand_out(&mut self, heard: Vec<SyncArrival>) {
        for SyncArrival { update, event } in heard {
            // What waited for its key may have come once more.
            if self.handed_out.iter().any(|(other, _)| *other == update) {
                continue;
            }
            let (receipt, counterfoil) = Receipt::pair();
            self.ready.push_back(ReceivedEvent { event, receipt });
            self.handed_out.push((update, counterfoil));
        }
    }

    /// Waits out what may pass. What may not is returned.
    async fn ride_out(&mut self, trouble: MatrixTrouble) -> Option<ReceiveError> {
        // Nothing of a batch that could not be read whole is handed out: it comes again.
        self.ready.clear();
        self.handed_out.clear();
        if let MatrixTrouble::Session(error) = &trouble {
            if self.is_position_lost(error).await {
                return None;
            }
            if let Some(why) = error.is_final().filter(|_| !self.may_log_in_again(error)) {
                self.matrix
                    .set_state(ChatState::Stopped { why: why.clone() });
                return Some(ReceiveError::Ended {
                    account: self.matrix.account.clone(),
                    description: why,
                });
            }
        }
        let mut wait = self.backoff.next_wait();
        if let MatrixTrouble::Session(SessionError::Call(MatrixCallError::Throttled {
            retry_after,
        })) = trouble
        {
            wait = wait.max(retry_after);
        }
        let cause = std::error::Error::source(&trouble).map(ToString::to_string);
        let wait_ms = wait.as_millis();
        warn!(account = %self.matrix.account, error = %trouble, cause, wait_ms, "listening to matrix failed");
        self.matrix.set_state(ChatState::Retrying {
            why: trouble.to_string(),
        });
        sleep(wait).await;
        None
    }

    /// A session that was made a moment ago and is none: once or twice it may be the homeserver's haste.
    fn may_log_in_again(&mut self, error: &SessionError) -> bool {
        let is_logged_out = error.call().is_some_and(MatrixCallError::is_logged_out);
        // Counted before it is asked, so that a homeserver that forgets each session at once is not
        // given one after the other.
        self.new_sessions += 1;
        is_logged_out && self.matrix.has_password() && self.new_sessions < NEW_SESSIONS
    }

    /// The homeserver does not know our position, as after its data was put back. Listening begins anew,
    /// and what was missed is lost: that is said.
    async fn is_position_lost(&mut self, error: &SessionError) -> bool {
        let is_lost = match error.call() {
            Some(MatrixCallError::Refused { status, code, .. }) => {
                *status == 400
                    && matches!(
                        code.as_str(),
                        "M_UNKNOWN" | "M_UNKNOWN_POS" | "M_INVALID_PARAM"
                    )
            }
            _ => false,
        };
        if !is_lost || self.since.is_none() {
            return false;
        }
        warn!(account = %self.matrix.account, "the homeserver does not know where we left off; what was said since is lost");
        if let Err(error) = self.matrix.store.remove(SINCE_KEY).await {
            warn!(account = %self.matrix.account, %error, "the position could not be forgotten");
        }
        self.since = None;
        sleep(self.backoff.next_wait()).await;
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncYield {
    Events,
    /// Something happened, but nothing that is for us.
    Others,
    Nothing,
}

/// How soon the next sync may follow, whatever the server answers.
///
/// A server that holds syncs open is asked again at once. One that answers at once with nothing is asked
/// less and less often, down to once in five seconds; what a room says to others has a fixed, small pause,
/// because there it is the usual case.
#[derive(Debug, Default)]
struct SyncPace {
    /// Useless answers in a row.
    useless: u32,
}

impl SyncPace {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(5);

    fn after(&mut self, took: SyncYield, lasted: Duration) -> Duration {
        match took {
            SyncYield::Others if lasted < HELD => Self::FIRST,
            SyncYield::Nothing if lasted < HELD => {
                let doubled = Self::FIRST.saturating_mul(1 << self.useless.min(16));
                self.useless = self.useless.saturating_add(1);
                doubled.min(Self::LONGEST)
            }
            _ => {
                self.useless = 0;
                Duration::ZERO
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_answers_at_once_is_not_asked_at_full_speed() {
        let mut pace = SyncPace::default();
        let mut passed = Duration::ZERO;
        let mut syncs = 0;
        while passed < Duration::from_secs(3600) {
            passed += pace.after(SyncYield::Nothing, Duration::ZERO);
            syncs += 1;
            assert!(syncs < 1000, "it spins");
        }
        assert_eq!(
            pace.after(SyncYield::Nothing, Duration::from_secs(30)),
            Duration::ZERO
        );
        assert_eq!(
            pace.after(SyncYield::Nothing, Duration::ZERO),
            SyncPace::FIRST
        );
        assert_eq!(
            pace.after(SyncYield::Events, Duration::ZERO),
            Duration::ZERO
        );
    }
}
