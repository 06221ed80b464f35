//! Tells browsers that something changed.
//!
//! An event says no more than which part of the pages is old; the browser asks for the page again and gets
//! what is true then, as far as it may see it. So nothing that was missed matters for longer than until the
//! next event: whoever comes back with the number of the last event that he heard is told what came since,
//! or, where that is not known any more, to ask for everything.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use hermetic_store::{LedgerState, RowOwner};
use hermetic_types::RunId;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::access::Viewer;
use crate::sandbox_history::COUNT_INTERVAL;
use crate::state::SharedState;

/// What happened lately, and who listens.
#[derive(Debug)]
pub(crate) struct LiveEvents {
    /// Sets numbers apart from those of an earlier run.
    run: RunId,
    recent: Mutex<VecDeque<LiveEvent>>,
    sender: broadcast::Sender<LiveEvent>,
    places: Arc<StreamPlaces>,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveEvent {
    pub(crate) number: u64,
    pub(crate) topic: LiveTopic,
}

/// The part of the pages that is old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiveTopic {
    /// Conversations, questions, sandboxes, money: whatever the store keeps.
    Activity,
    /// Connections.
    Egress,
    /// How the gateway and its platforms are.
    Condition,
    /// Conversations in the browser.
    Chat,
    /// What running tool calls write.
    Output,
    /// What sandboxes use.
    Use,
    /// How many questions wait for a person, which every page shows.
    Waiting,
}

/// Streams that are open, by whom.
#[derive(Debug)]
struct StreamPlaces {
    most: usize,
    open: Mutex<HashMap<String, usize>>,
}

/// One place, given back when it is dropped.
#[derive(Debug)]
struct StreamPlace {
    places: Arc<StreamPlaces>,
    who: String,
}

/// Events that are remembered. At ten a second, the most there are of one topic, half a minute and more.
const REMEMBERED: usize = 512;

/// The shortest time between two events of one topic.
const GAP: Duration = Duration::from_millis(100);

/// The same for output: a command that writes without pause would have every browser ask without pause.
const OUTPUT_GAP: Duration = Duration::from_millis(250);

/// How often it is looked whether the condition changed, which nobody tells.
const CONDITION_INTERVAL: Duration = Duration::from_secs(1);

/// What keeps connections from being taken for dead, and finds those that are.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A stream ends after this, and the browser opens another: nothing is held for whoever is not there.
const LONGEST_STREAM: Duration = Duration::from_secs(20 * 60);

/// Streams of one person: as many as a browser has tabs in sight.
const MOST_EACH: usize = 16;

impl LiveEvents {
    pub(crate) fn new(most_streams: usize) -> Self {
        Self {
            run: RunId::random(),
            recent: Mutex::default(),
            sender: broadcast::Sender::new(REMEMBERED),
            places: Arc::new(StreamPlaces {
                most: most_streams,
                open: Mutex::default(),
            }),
        }
    }

    pub(crate) fn publish(&self, topic: LiveTopic) {
        let mut recent = self.recent();
        let number = recent.back().map_or(1, |last| last.number + 1);
        let event = LiveEvent { number, topic };
        if recent.len() >= REMEMBERED {
            recent.pop_front();
        }
        recent.push_back(event);
        // Under the lock, so that whoever subscribes under it misses none and hears none twice. Nobody
        // may be listening.
        let _ = self.sender.send(event);
    }

    /// How many listen.
    pub(crate) fn listeners(&self) -> usize {
        self.places.open().values().sum()
    }

    /// What came since `last`, or nothing where that is not known, and what comes from now on.
    fn subscribe(
        &self,
        last: Option<&str>,
    ) -> (Option<Vec<LiveEvent>>, u64, broadcast::Receiver<LiveEvent>) {
        let recent = self.recent();
        let newest = recent.back().map_or(0, |event| event.number);
        let heard = last
            .and_then(|last| last.rsplit_once('-'))
            .filter(|(run, _)| *run == self.run.as_str())
            .and_then(|(_, number)| number.parse::<u64>().ok())
            // A number that was never given out is nothing that was heard, and one more of it could
            // run over.
            .filter(|number| *number <= newest);
        let oldest = recent.front().map_or(1, |event| event.number);
        let missed = heard.filter(|number| number + 1 >= oldest).map(|number| {
            let since = recent.iter().filter(|one| one.number > number);
            since.copied().collect()
        });
        (missed, newest, self.sender.subscribe())
    }

    fn written(&self, name: &str, number: u64) -> Bytes {
        Bytes::from(format!(
            "id: {}-{number}\nevent: {name}\ndata: {name}\n\n",
            self.run
        ))
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<LiveEvent>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveTopic {
    const fn name(self) -> &'static str {
        match self {
            Self::Activity => "activity",
            Self::Egress => "egress",
            Self::Condition => "condition",
            Self::Chat => "chat",
            Self::Output => "output",
            Self::Use => "use",
            Self::Waiting => "waiting",
        }
    }
}

impl StreamPlaces {
    fn take(self: &Arc<Self>, who: &str) -> Option<StreamPlace> {
        let mut open = self.open();
        let (all, own) = (
            open.values().sum::<usize>(),
            open.get(who).copied().unwrap_or_default(),
        );
        if all >= self.most || own >= MOST_EACH {
            return None;
        }
        open.insert(who.to_owned(), own + 1);
        Some(StreamPlace {
            places: Arc::clone(self),
            who: who.to_owned(),
        })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.places.open();
        if let Some(own) = open.get_mut(&self.who) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.who);
            }
        }
    }
}

/// Publishes what changes, until `stop`.
pub(crate) async fn watch(state: SharedState, stop: CancellationToken) {
    let mut egress = state.egress.changes();
    let live = Arc::clone(&state.live);
    let connections = async {
        while egress.changed().await.is_ok() {
            live.publish(LiveTopic::Egress);
            sleep(GAP).await;
        }
    };
    let chat = async {
        let Some(chat) = &state.chat else {
            return std::future::pending().await;
        };
        let mut changes = chat.changes();
        while changes.changed().await.is_ok() {
            live.publish(LiveTopic::Chat);
            sleep(GAP).await;
        }
    };
    let output = async {
        let mut changes = state.gateway.output_changes();
        while changes.changed().await.is_ok() {
            // What nobody hears is not remembered either: whoever comes later asks for the page anyway.
            if live.listeners() > 0 {
                live.publish(LiveTopic::Output);
            }
            sleep(OUTPUT_GAP).await;
        }
    };
    let condition = async {
        let mut last = state.gateway.condition();
        loop {
            sleep(CONDITION_INTERVAL).await;
            if live.listeners() == 0 {
                continue;
            }
            let now = state.gateway.condition();
            if now != last {
                last = now;
                live.publish(LiveTopic::Condition);
            }
        }
    };
    let activity = tell_of_rows(&state);
    let (uses, sandboxes) = (state.uses.run(&state), count_sandboxes(&state));
    tokio::select! {
        () = stop.cancelled() => {}
        () = async { tokio::join!(activity, connections, condition, chat, output, uses, sandboxes); } => {}
    }
}

/// What the store keeps, and apart from that how many questions wait.
async fn tell_of_rows(state: &SharedState) {
    let (mut rows, live) = (state.store.changes(), &state.live);
    let waiting_now = async || state.approvals.pending().await.ok().map(|all| all.len());
    let mut waiting = waiting_now().await;
    while rows.changed().await.is_ok() {
        live.publish(LiveTopic::Activity);
        if live.listeners() > 0 {
            let now = waiting_now().await;
            if now.is_some() && now != waiting {
                live.publish(LiveTopic::Waiting);
                waiting = now;
            }
        }
        sleep(GAP).await;
    }
}

/// For the chart of a day; nobody is told.
async fn count_sandboxes(state: &SharedState) {
    loop {
        if let Ok(counts) = state.ledger.counts(RowOwner::AnyGateway).await {
            let running = counts.iter().find(|(one, _)| *one == LedgerState::Running);
            let running = running.map_or(0, |(_, many)| *many);
            state.history.note(state.now(), running);
        }
        sleep(COUNT_INTERVAL).await;
    }
}

/// `GET /events`.
pub(crate) async fn events(
    State((state, stop)): State<(SharedState, CancellationToken)>,
    Extension(viewer): Extension<Viewer>,
    headers: HeaderMap,
) -> Response {
    let Some(place) = state.live.places.take(&viewer.who) else {
        let retry = [(RETRY_AFTER, "30")];
        let text = "too many event streams are open\n";
        return (StatusCode::SERVICE_UNAVAILABLE, retry, text).into_response();
    };
    let last = headers.get("last-event-id");
    let last = last.and_then(|value| value.to_str().ok());
    let (missed, newest, receiver) = state.live.subscribe(last);
    let live = Arc::clone(&state.live);
    let mut opening = vec![Bytes::from_static(b"retry: 2000\n\n")];
    match missed {
        Some(missed) => opening.extend(
            missed
                .into_iter()
                .map(|event| live.written(event.topic.name(), event.number)),
        ),
        None => opening.push(live.written("reset", newest)),
    }
    let stream = EventStream {
        live,
        receiver,
        opening: opening.into_iter().collect(),
        ends_at: Instant::now() + LONGEST_STREAM,
        stop,
        _place: place,
    };
    let body = Body::from_stream(stream::unfold(stream, |mut stream| async move {
        let next = stream.next().await?;
        Some((Ok::<_, Infallible>(next), stream))
    }));
    let headers = [
        (CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, body).into_response()
}

/// What one browser hears.
struct EventStream {
    live: Arc<LiveEvents>,
    receiver: broadcast::Receiver<LiveEvent>,
    opening: VecDeque<Bytes>,
    ends_at: Instant,
    stop: CancellationToken,
    _place: StreamPlace,
}

impl EventStream {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(bytes) = self.opening.pop_front() {
            return Some(bytes);
        }
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            () = sleep_until(self.ends_at) => None,
            heard = self.receiver.recv() => match heard {
                Ok(event) => Some(self.live.written(event.topic.name(), event.number)),
                // Slower than what happens: it is told to ask for everything, and goes on from here.
                Err(RecvError::Lagged(_)) => {
                    let newest = self.live.recent().back().map_or(0, |event| event.number);
                    // What is published between these two lines is in the page that is asked for
                    // then.
                    self.receiver = self.live.sender.subscribe();
                    Some(self.live.written("reset", newest))
                }
                Err(RecvError::Closed) => None,
            },
            () = sleep(HEARTBEAT) => Some(Bytes::from_static(b": here\n\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_back_is_told_what_came_since_or_to_ask_for_everything() {
        let live = LiveEvents::new(8);
        for _ in 0..3 {
            live.publish(LiveTopic::Activity);
        }
        live.publish(LiveTopic::Egress);
        let id = |number: u64| format!("{}-{number}", live.run);
        let missed = |last: Option<&str>| live.subscribe(last).0;
        assert_eq!(missed(Some(&id(4))), Some(Vec::new()));
        let since = missed(Some(&id(2))).unwrap();
        let numbers: Vec<_> = since.iter().map(|event| event.number).collect();
        assert_eq!(numbers, [3, 4]);
        assert_eq!(since[1].topic, LiveTopic::Egress);
        assert_eq!(missed(Some(&id(0))).unwrap().len(), 4);
        for unknown in ["", "x", "other-3", "-1", &id(5), &format!("{}-x", live.run)] {
            assert_eq!(missed(Some(unknown)), None, "{unknown}");
        }
        assert_eq!(missed(None), None);
        for _ in 0..REMEMBERED {
            live.publish(LiveTopic::Activity);
        }
        assert_eq!(missed(Some(&id(3))), None, "forgotten by now");
        assert!(missed(Some(&id(4))).is_some());
    }

    #[test]
    fn places_are_bounded_for_each_and_for_all_and_come_back() {
        let places = Arc::new(StreamPlaces {
            most: MOST_EACH + 2,
            open: Mutex::default(),
        });
        let ada: Vec<_> = (0..MOST_EACH).filter_map(|_| places.take("ada")).collect();
        assert_eq!(ada.len(), MOST_EACH);
        assert!(places.take("ada").is_none());
        let bob: Vec<_> = (0..9).filter_map(|_| places.take("bob")).collect();
        assert_eq!(bob.len(), 2);
        assert!(places.take("carol").is_none());
        drop(ada);
        assert!(places.take("carol").is_some());
        drop(bob);
        assert!(places.open().is_empty());
    }
}
