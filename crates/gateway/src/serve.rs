//! From the first look at the sandboxes to the last turn.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesOrdered, StreamExt, select_all};
use hermetic_chat::{Event, Receipt};
use hermetic_listen::{BoundedListener, ConnectionBounds, descriptors, serve_http};
use hermetic_redact::Redacted;
use hermetic_session::SettleError;
use hermetic_store::{End, StoreError};
use hermetic_types::{BackendKind, Platform, Press};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::kept::Kept;
use crate::lanes::{Control, Joined, Line, Told};
use crate::life::{Tended, in_full};
use crate::seats::Ticket;
use crate::slash::Slash;
use crate::wording::{self, now};
use crate::{Busy, Gateway, Parts, ProofError, Report, Stage, health};

/// How often what is over for long is forgotten.
const FORGET_EVERY: Duration = Duration::from_secs(3600);

/// Messages that are written down at the same time.
const MOST_TAKEN: usize = 64;

/// How often questions that nobody waits for are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(10);

/// Connections to one port of ours at once, where there are descriptors enough: each of these ports
/// answers a few clients, and whoever sends nothing whole goes first.
const MOST_CONNECTIONS: usize = 512;

/// How long answers on these ports may go on when everything else has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every turn came to its end.
    Clean,
    CutShort {
        /// Turns that were interrupted.
        turns: usize,
    },
}

#[derive(Debug, Error)]
pub enum ServeError {
    #[error("the sandboxes of an earlier run could not be settled")]
    Settle(#[from] SettleError),
    #[error("the {backend} backend does not work")]
    Proof {
        backend: BackendKind,
        source: ProofError,
    },
    #[error("what was left open could not be read")]
    Resume(#[from] StoreError),
    #[error("no chat platform is left to listen to")]
    NoChatLeft,
}

/// Serves until `stop`. Each change of condition is reported; messages are taken from the first
/// [`Stage::Serving`] on.
///
/// Boxed here and not where it is awaited: whoever awaits a future compiles all that is in it.
pub fn serve(
    parts: Parts,
    health: TcpListener,
    stop: CancellationToken,
    report: Report,
) -> BoxFuture<'static, Result<Drained, ServeError>> {
    live(parts, health, stop, report).boxed()
}

async fn live(
    mut parts: Parts,
    health: TcpListener,
    stop: CancellationToken,
    report: Report,
) -> Result<Drained, ServeError> {
    let doors = std::mem::take(&mut parts.doors);
    let gateway = Arc::new(Gateway::new(parts));
    gateway.store.wait_for_room();
    gateway.sandboxes.settle().await?;
    gateway.prove_backends().await?;

    let household = Household::start(&gateway, health, doors, report);
    let listened = match stop.run_until_cancelled(gateway.resume()).await {
        None => Ok(()),
        Some(Ok(())) => {
            gateway.stage.send_replace(Stage::Serving);
            tokio::select! {
                listened = gateway.listen(&stop) => listened,
                never = gateway.hear_notices() => match never {},
            }
        }
        Some(Err(error)) => Err(error.into()),
    };
    gateway.stage.send_replace(Stage::Draining);
    let drained = gateway.drain().await;
    household.end().await;
    gateway.asking.board.close().await;
    gateway.worksites.background().close().await;
    gateway.sandboxes.drain().await;
    listened.map(|()| drained)
}

impl Gateway {
    async fn listen(self: &Arc<Self>, stop: &CancellationToken) -> Result<(), ServeError> {
        if self.chats.is_empty() {
            stop.cancelled().await;
            return Ok(());
        }
        let mut heard = select_all(self.chats.iter().map(|chat| chat.receive(stop.clone())));
        // Written down together, handed on in the order they came.
        let mut taking = FuturesOrdered::new();
        let ended = loop {
            let next = tokio::select! {
                biased;
                Some(taken) = taking.next(), if !taking.is_empty() => {
                    self.hand_on(taken).await;
                    continue;
                }
                next = stop.run_until_cancelled(heard.next()), if taking.len() < MOST_TAKEN => next,
            };
            match next {
                None => break Ok(()),
                Some(Some(Ok(received))) => match received.event {
                    Event::Message(incoming) => {
                        taking.push_back(self.take_in(incoming, received.receipt));
                    }
                    Event::Press(press) => self.hear_press(press, received.receipt),
                },
                Some(Some(Err(error))) => tracing::error!(%error, "a chat platform is lost"),
                Some(None) if stop.is_cancelled() => break Ok(()),
                Some(None) => break Err(ServeError::NoChatLeft),
            }
        };
        while let Some(taken) = taking.next().await {
            self.hand_on(taken).await;
        }
        ended
    }

    /// What waits for a person is left to the next start. After the grace period what still runs is
    /// interrupted; each turn says so in its reply.
    async fn drain(&self) -> Drained {
        self.asking.approvals.leave();
        self.turns.close();
        if timeout(self.settings.grace, self.turns.wait())
            .await
            .is_ok()
        {
            return Drained::Clean;
        }
        let turns = self.turns.len();
        self.cut.cancel();
        // What cannot be written by now is found unfinished by the next start.
        self.store.stop_waiting_for_room();
        self.turns.wait().await;
        Drained::CutShort { turns }
    }

    async fn hand_on(self: &Arc<Self>, taken: Result<Option<Kept>, StoreError>) {
        match taken {
            Ok(Some(message)) => self.dispatch(message, self.settings.busy).await,
            Ok(None) => {}
            // The receipt was not signed, so it comes again.
            Err(error) => {
                tracing::error!(error = %in_full(&error), "a message could not be written down");
            }
        }
    }

    /// The receipt is signed when the answer is written down; one that could not be comes again.
    fn hear_press(self: &Arc<Self>, press: Press, receipt: Receipt) {
        let gateway = Arc::clone(self);
        self.turns.spawn(async move {
            match gateway.access.admit_press(press).await {
                Ok(press) => gateway.press(&press, receipt).await,
                Err(_) => receipt.stored(),
            }
        });
    }

    /// Hands a message to whoever works on it. Commands do not wait for a turn.
    pub(crate) async fn dispatch(self: &Arc<Self>, message: Kept, busy: Busy) {
        match self.slash(&message) {
            Some(slash) if !self.settings.gates.let_through(&message, &slash) => {
                self.turn_away(message, wording::NOT_FOR_YOU);
            }
            Some(slash) if self.clears_the_lane(&message, &slash) => {
                let (joined, dropped) = self.lanes.cut_in(message);
                // Aside: the disk may have no room to write it down, and others are to be heard.
                let gateway = Arc::clone(self);
                self.turns.spawn(async move {
                    gateway
                        .drop_waiting(dropped, "dropped by a new conversation")
                        .await;
                });
                self.follow(joined, Line::Turns);
            }
            Some(slash) if slash.works() => {
                self.follow(self.lanes.join_commands(message), Line::Commands);
            }
            Some(slash) => self.run_aside(message, &slash),
            None => self.follow(self.lanes.join(message, busy), Line::Turns),
        }
    }

    /// Whether it takes the conversation's place: what runs is interrupted, what waits is dropped.
    fn clears_the_lane(&self, message: &Kept, slash: &Slash) -> bool {
        match slash {
            Slash::New => true,
            Slash::Destroy(word) => self.destroys_now(message, word),
            _ => false,
        }
    }

    /// Ends messages whose turn had not come. Whoever waits for an answer of his own is told.
    pub(crate) async fn drop_waiting(&self, dropped: Vec<Kept>, note: &'static str) {
        for message in dropped {
            let ended = if message.said().platform == Platform::Webhook {
                let reply = Redacted::constant(wording::DROPPED);
                let told = self.post.deliver(&message, &reply, End::Refused).await;
                told.map(drop)
            } else {
                let row = message.row();
                self.inbox.end(row, End::Refused, Some(note), now()).await
            };
            if let Err(error) = ended {
                tracing::error!(%error, "a dropped message stays open");
            }
        }
    }

    fn follow(self: &Arc<Self>, joined: Joined, line: Line) {
        match joined {
            Joined::Starts(message, control) => {
                let gateway = Arc::clone(self);
                let place = self.place(&message);
                self.turns
                    .spawn(async move { gateway.work_off(*message, control, place, line).await });
            }
            Joined::Waits | Joined::Rides => {}
            Joined::Full(message, told) => self.not_heard(*message, wording::QUEUE_FULL, told),
        }
    }

    /// Where whoever said this stands in line for a seat. What only ends things or tells about them
    /// needs none.
    fn place(&self, message: &Kept) -> Result<Option<Ticket>, Told> {
        match self.slash(message) {
            Some(slash) if !slash.works() => Ok(None),
            _ => self.seats.line_up(message).map(Some),
        }
    }

    fn not_heard(self: &Arc<Self>, message: Kept, why: &'static str, told: Told) {
        match told {
            Told::Now => self.turn_away(message, why),
            Told::Before => self.drop_unheard(message),
        }
    }

    /// One reply for each message of a flood would be a flood of our own.
    fn drop_unheard(self: &Arc<Self>, message: Kept) {
        let gateway = Arc::clone(self);
        self.turns.spawn(async move {
            let note = Some("too many waited");
            let ended = gateway.inbox.end(message.row(), End::Refused, note, now());
            if let Err(error) = ended.await {
                tracing::error!(%error, "a message stays open");
            }
        });
    }

    fn turn_away(self: &Arc<Self>, message: Kept, why: &'static str) {
        let gateway = Arc::clone(self);
        self.turns.spawn(async move {
            let reply = Redacted::constant(why);
            if let Err(error) = gateway.post.deliver(&message, &reply, End::Refused).await {
                tracing::error!(%error, "a message stays open");
            }
        });
    }

    /// One message of a conversation's line after the other, until none waits.
    async fn work_off(
        self: &Arc<Self>,
        first: Kept,
        control: Control,
        place: Result<Option<Ticket>, Told>,
        line: Line,
    ) {
        let conversation = first.conversation().clone();
        let mut next = Some((first, control, place));
        while let Some((message, control, place)) = next {
            match place {
                Ok(ticket) => {
                    let seat = control.wait_for(ticket).await;
                    let tended = self.tend(&message, &control).await;
                    drop(seat);
                    if tended == Tended::Left {
                        // What comes after it waits with it.
                        return;
                    }
                }
                Err(told) => self.not_heard(message, wording::TOO_MANY_AT_WORK, told),
            }
            next = self
                .lanes
                .next(&conversation, line)
                .map(|(message, control)| {
                    let place = self.place(&message);
                    (message, control, place)
                });
        }
    }

    fn run_aside(self: &Arc<Self>, message: Kept, slash: &Slash) {
        let conversation = message.conversation().clone();
        let gateway = Arc::clone(self);
        // Those end what runs or let it go on, so there is always room for them.
        if matches!(slash, Slash::Stop | Slash::Approve(_) | Slash::Deny(_)) {
            self.turns.spawn(async move {
                gateway.tend(&message, &gateway.lanes.control()).await;
            });
            return;
        }
        let control = match self.lanes.aside(&conversation) {
            Ok(control) => control,
            Err(told) => return self.not_heard(message, wording::QUEUE_FULL, told),
        };
        self.turns.spawn(async move {
            gateway.tend(&message, &control).await;
            gateway.lanes.aside_ended(&conversation, &control);
        });
    }
}

/// The tasks that work on no message.
struct Household {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Household {
    fn start(
        gateway: &Arc<Gateway>,
        health: TcpListener,
        doors: Vec<(TcpListener, axum::Router)>,
        report: Report,
    ) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(Arc::clone(gateway).report(report, stop.clone()));
        let (reaper, until) = (gateway.sandboxes.clone(), stop.clone());
        tasks.spawn(async move { reaper.keep_house(until).await });
        let (guard, until) = (gateway.sandboxes.clone(), stop.clone());
        tasks.spawn(async move { guard.guard_disk(until).await });
        let (courier, until) = (Arc::clone(gateway), stop.clone());
        tasks.spawn(async move { courier.post.courier(until).await });
        let (tidy, until) = (gateway.asking.clone(), stop.clone());
        tasks.spawn(async move {
            while until.run_until_cancelled(tidy.tidy()).await.is_some() {
                if until.run_until_cancelled(sleep(TIDY_EVERY)).await.is_none() {
                    return;
                }
            }
        });
        let (old, until) = (Arc::clone(gateway), stop.clone());
        tasks.spawn(async move {
            while until
                .run_until_cancelled(sleep(FORGET_EVERY))
                .await
                .is_some()
            {
                if let Err(error) = old.forget_old().await {
                    tracing::error!(%error, "what is over could not be forgotten");
                }
            }
        });
        let routes = health::routes(Arc::clone(gateway));
        for (listener, routes) in doors.into_iter().chain([(health, routes)]) {
            let listener = BoundedListener::new(listener, ConnectionBounds::of(connections()));
            tasks.spawn(serve_http(listener, routes, stop.clone(), LAST_ANSWERS));
        }
        Self { tasks, stop }
    }

    async fn end(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// A sixteenth of all descriptors for each port: there are at most three.
fn connections() -> usize {
    let share = usize::try_from(descriptors::available() / 16);
    share.unwrap_or(MOST_CONNECTIONS).min(MOST_CONNECTIONS)
}
