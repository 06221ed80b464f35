//! Events in.
//!
//! The daemon hands an event over once. Until its receipt is signed it is kept here and handed out again,
//! and what is not stored when listening ends is kept for the next start. What a crash takes is lost: Signal
//! has no history to read it from.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join};
use futures::stream::{self, BoxStream, FuturesUnordered, StreamExt};
use hermetic_chat::{Backoff, ChatEvent, ChatState, Receipt, ReceiveError, ReceivedEvent};
use hermetic_types::UpdateId;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::SignalAdapter;
use crate::daemon::{DaemonEvents, DaemonFrame};
use crate::leftovers;
use crate::rpc::SignalCallError;

/// Events that were handed out and are not stored yet. When they are this many, no more are read.
const MOST_OPEN: usize = 64;

pub(crate) fn stream(
    signal: &SignalAdapter,
    stop: CancellationToken,
) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
    let receiver = SignalReceiver {
        signal,
        events: None,
        ready: VecDeque::new(),
        postponed: None,
        open: FuturesUnordered::new(),
        leaving: CancellationToken::new(),
        heard_at: Instant::now(),
        ping_at: Instant::now(),
        backoff: Backoff::new(signal.timing.retry.0, signal.timing.retry.1),
        has_looked_around: false,
        has_leftovers: false,
        proved_at: Instant::now(),
        left: HashSet::new(),
    };
    stream::unfold((receiver, stop), |(mut receiver, stop)| async move {
        let next = stop.run_until_cancelled(receiver.next()).await;
        if next.is_none() {
            receiver.leave().await;
            receiver.signal.set_state(ChatState::Stopped {
                why: "asked to".to_owned(),
            });
        }
        next.map(|next| (Ok(next), (receiver, stop)))
    })
    .boxed()
}

struct SignalReceiver<'a> {
    signal: &'a SignalAdapter,
    events: Option<DaemonEvents>,
    ready: VecDeque<ChatEvent>,
    /// What could not be read yet, because the disk has no room for what is to be kept of it. Nothing more
    /// is read before it.
    postponed: Option<Value>,
    /// Each ends with the event if it was not stored.
    open: FuturesUnordered<BoxFuture<'static, SettledSignal>>,
    /// Cancelled when nobody waits for receipts any more.
    leaving: CancellationToken,
    /// When the daemon was last seen to live.
    heard_at: Instant,
    ping_at: Instant,
    backoff: Backoff,
    has_looked_around: bool,
    /// What an earlier process left is among what is handed out.
    has_leftovers: bool,
    /// When Signal was last asked whether the account is still linked.
    proved_at: Instant,
    /// Events of an earlier process that are not stored yet.
    left: HashSet<UpdateId>,
}

/// What became of an event.
enum SettledSignal {
    Stored(Box<ChatEvent>),
    NotStored(Box<ChatEvent>),
}

/// What happens next.
enum ReceiveStep {
    Settled(Option<SettledSignal>),
    Came(Result<DaemonFrame, SignalCallError>),
    Ping,
}

impl SignalReceiver<'_> {
    /// The next event. Trouble is ridden out.
    async fn next(&mut self) -> ReceivedEvent {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return self.hand_out(event);
            }
            // Before anything else is read: it came first, and the daemon does not hand it out a
            // second time.
            if self.postponed.is_some() {
                sleep(self.backoff.next_wait()).await;
                self.hear_postponed().await;
                // Nothing was read meanwhile, which is not the daemon's silence.
                self.alive();
                continue;
            }
            // Before anything new, and whether the daemon is there or not.
            if !self.has_leftovers {
                self.take_leftovers().await;
                continue;
            }
            if let Err(error) = self.listen().await {
                self.ride_out(error).await;
            }
        }
    }

    fn hand_out(&mut self, event: ChatEvent) -> ReceivedEvent {
        let (receipt, counterfoil) = Receipt::pair();
        // A copy stays here until the receipt is signed: nobody else has the event any more.
        let kept = Box::new(event.clone());
        let leaving = self.leaving.clone();
        let settled = async move {
            let is_stored = tokio::select! {
                biased;
                is_stored = counterfoil.signed() => is_stored,
                // Whoever leaves does not know, and keeps it: what is stored after all is known by
                // its name when it comes again.
                () = leaving.cancelled() => false,
            };
            match is_stored {
                true => SettledSignal::Stored(kept),
                false => SettledSignal::NotStored(kept),
            }
        };
        self.open.push(settled.boxed());
        ReceivedEvent { event, receipt }
    }

    async fn listen(&mut self) -> Result<(), SignalCallError> {
        if self.events.is_none() {
            self.events = Some(self.connect().await?);
        }
        match self.wait().await {
            ReceiveStep::Settled(settled) => self.settle(settled).await,
            ReceiveStep::Came(frame) => self.take(frame?).await,
            ReceiveStep::Ping => {
                self.ping_at = Instant::now() + self.signal.timing.ping;
                self.signal.daemon.ping().await?;
                if self.proved_at.elapsed() >= self.signal.timing.prove {
                    self.signal.daemon.prove_account().await?;
                    self.proved_at = Instant::now();
                }
                self.alive();
            }
        }
        Ok(())
    }

    async fn wait(&mut self) -> ReceiveStep {
        let Some(events) = &mut self.events else {
            return ReceiveStep::Came(Err(SignalCallError::Silent));
        };
        let deaf_at = match events.show_life() {
            true => self.heard_at + self.signal.timing.silence,
            false => Instant::now() + Duration::from_secs(3600),
        };
        tokio::select! {
            // What was not stored first: it came first.
            biased;
            settled = self.open.next(), if !self.open.is_empty() => ReceiveStep::Settled(settled),
            frame = events.next(), if self.open.len() < MOST_OPEN => ReceiveStep::Came(frame),
            () = sleep_until(self.ping_at) => ReceiveStep::Ping,
            () = sleep_until(deaf_at), if self.open.len() < MOST_OPEN => {
                ReceiveStep::Came(Err(SignalCallError::Silent))
            }
        }
    }

    async fn connect(&mut self) -> Result<DaemonEvents, SignalCallError> {
        if !self.has_looked_around {
            self.signal.look_around().await?;
            self.has_looked_around = true;
        }
        let events = self.signal.daemon.events().await?;
        // Behind it: a socket that is opened for a call alone would be handed messages.
        self.signal.daemon.prove_account().await?;
        self.proved_at = Instant::now();
        self.alive();
        self.ping_at = Instant::now() + self.signal.timing.ping;
        info!(account = %self.signal.account, "connected to signal-cli");
        self.signal.set_state(ChatState::Connected);
        Ok(events)
    }

    fn alive(&mut self) {
        self.heard_at = Instant::now();
    }

    async fn take(&mut self, frame: DaemonFrame) {
        self.alive();
        // It does not only accept connections, it speaks.
        self.backoff.reset();
        match frame {
            DaemonFrame::Alive => {}
            DaemonFrame::Malformed => {
                warn!(account = %self.signal.account, "signal-cli sent something malformed; skipped");
            }
            DaemonFrame::Event(event) => {
                self.postponed = Some(event);
                self.hear_postponed().await;
            }
        }
    }

    async fn hear_postponed(&mut self) {
        let Some(event) = &self.postponed else {
            return;
        };
        match self.signal.hear(event).await {
            Ok(heard) => {
                self.ready.extend(heard);
                self.postponed = None;
            }
            Err(error) => {
                warn!(account = %self.signal.account, %error, "an event of signal waits for room on the disk");
            }
        }
    }

    async fn settle(&mut self, settled: Option<SettledSignal>) {
        match settled {
            None => {}
            Some(SettledSignal::Stored(event)) => self.note_settled(&event).await,
            Some(SettledSignal::NotStored(event)) => {
                warn!(account = %self.signal.account, "an event was not stored; handing it out again");
                // Before the wait, which a stop may cut: nobody else has the event.
                self.ready.push_back(*event);
                // Whatever keeps it from being stored lasts longer than a moment.
                sleep(self.backoff.next_wait()).await;
                // Nothing was read meanwhile, which is not the daemon's silence.
                self.alive();
            }
        }
    }

    async fn note_settled(&mut self, event: &ChatEvent) {
        self.signal.note_stored(event);
        let was_left = leftovers::update(event).is_some_and(|update| self.left.remove(update));
        if was_left {
            self.signal.leftovers.forget(event).await;
        }
    }

    async fn take_leftovers(&mut self) {
        match self.signal.leftovers.load().await {
            Ok(events) => {
                self.has_leftovers = true;
                self.left
                    .extend(events.iter().filter_map(leftovers::update).cloned());
                self.ready.extend(events);
            }
            Err(error) => {
                warn!(account = %self.signal.account, %error, "what an earlier process left could not be read; trying again");
                sleep(self.backoff.next_wait()).await;
            }
        }
    }

    /// Keeps what was received and is not stored. The daemon forgot it when it gave it to us.
    async fn leave(&mut self) {
        self.hear_postponed().await;
        let mut left: Vec<_> = self.ready.drain(..).collect();
        if let Some(mut events) = self.events.take() {
            let hanging_up = self.signal.daemon.hang_up();
            for frame in join(hanging_up, events.rest()).await.1 {
                if let DaemonFrame::Event(event) = frame {
                    left.extend(self.signal.hear(&event).await.ok().flatten());
                }
            }
        }
        // Last, so that those that are being stored at this moment have had their time.
        self.leaving.cancel();
        while let Some(settled) = self.open.next().await {
            match settled {
                SettledSignal::NotStored(event) => left.push(*event),
                SettledSignal::Stored(event) => self.note_settled(&event).await,
            }
        }
        for event in left {
            self.signal.leftovers.keep(event).await;
        }
    }

    /// Waits before the next attempt. Nothing here is for good: a daemon is started again, a device is
    /// linked again, an address is mended.
    async fn ride_out(&mut self, error: SignalCallError) {
        self.events = None;
        let wait = self.backoff.next_wait();
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let wait_ms = wait.as_millis();
        warn!(account = %self.signal.account, %error, cause, wait_ms, "listening to signal-cli failed");
        self.signal.set_state(ChatState::Retrying {
            why: error.to_string(),
        });
        sleep(wait).await;
        debug!(account = %self.signal.account, "connecting again");
    }
}
