//! One trace for the life of a message.
//!
//! The names of a trace and of its root follow from the message's row, so every stage finds them without being
//! handed anything, in this process and in the next one. What a span says is from lists of ours, or a number, or
//! the name of a model or tool; never what somebody wrote, and people and chats only as a keyed hash. Where nobody
//! wants traces there is no sink, and a stage costs one look at that.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use hermetic_store::MessageRow;
use hermetic_types::{ConversationKey, RunId, SharedClock};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Where finished spans go. Clones share one queue; the usual one has none, and drops what it is told.
#[derive(Clone, Debug, Default)]
pub struct MessageTraces(Option<Arc<TraceSink>>);

struct TraceSink {
    spans: mpsc::Sender<FinishedSpan>,
    dropped: Counter,
    clock: SharedClock,
    /// Keys the hashes, so that nobody finds a chat by trying its number.
    salt: String,
    /// Sets the spans of this process apart from those of an earlier one.
    process: RunId,
    next: AtomicU64,
    /// A moment on both clocks.
    anchor: Mutex<(Instant, u128)>,
}

/// Sends finished spans away, until it is told to stop. The app knows where to.
pub struct TraceExport(Box<ExportSpans>);

type ExportSpans = dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send + Sync;

/// A stage of a message's life that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedSpan {
    pub trace: [u8; 16],
    pub id: [u8; 8],
    pub parent: Option<[u8; 8]>,
    pub name: &'static str,
    /// Nanoseconds since 1970.
    pub began: u64,
    pub ended: u64,
    pub attributes: Vec<(&'static str, SpanValue)>,
    pub failed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanValue {
    Text(String),
    Number(i64),
}

/// A stage, while it is told about.
#[derive(Debug)]
pub(crate) struct SpanNote {
    name: &'static str,
    began: Instant,
    /// Where it was over before now.
    took: Option<Duration>,
    attributes: Vec<(&'static str, SpanValue)>,
    failed: bool,
}

/// Names of models and tools come from elsewhere.
const LONGEST_TEXT: usize = 96;

/// The wall clock may be set; a difference beyond this is believed.
const MOST_DRIFT: Duration = Duration::from_secs(1);

impl MessageTraces {
    /// Puts finished spans into this queue. What finds no room there is dropped and counted in the registry.
    pub fn into_queue(
        spans: mpsc::Sender<FinishedSpan>,
        clock: SharedClock,
        salt: String,
        registry: &mut Registry,
    ) -> Self {
        let dropped = Counter::default();
        registry.register(
            "trace_spans_dropped",
            "Spans that found no room on their way to the collector",
            dropped.clone(),
        );
        let anchor = (Instant::now(), wall(&clock));
        Self(Some(Arc::new(TraceSink {
            spans,
            dropped,
            clock,
            salt,
            process: RunId::random(),
            next: AtomicU64::new(0),
            anchor: Mutex::new(anchor),
        })))
    }

    /// A whole life, or as much of it as this process saw. The root of its trace.
    pub(crate) fn message(
        &self,
        row: MessageRow,
        conversation: &ConversationKey,
        note: impl FnOnce() -> SpanNote,
    ) {
        let Some(sink) = &self.0 else { return };
        let hashed = hex(&sink.digest(&["conversation", conversation.as_str()])[..8]);
        let note = note().with("hermetic.conversation", SpanValue::Text(hashed));
        sink.send(row, sink.root(row), None, note);
    }

    /// A stage right below the message.
    pub(crate) fn stage(&self, row: MessageRow, note: impl FnOnce() -> SpanNote) {
        let Some(sink) = &self.0 else { return };
        sink.send(row, sink.fresh(), Some(sink.root(row)), note());
    }

    /// The turn, which has stages of its own.
    pub(crate) fn turn(&self, row: MessageRow, note: impl FnOnce() -> SpanNote) {
        let Some(sink) = &self.0 else { return };
        sink.send(row, sink.turn(row), Some(sink.root(row)), note());
    }

    /// A stage of the turn.
    pub(crate) fn in_turn(&self, row: MessageRow, note: impl FnOnce() -> SpanNote) {
        let Some(sink) = &self.0 else { return };
        sink.send(row, sink.fresh(), Some(sink.turn(row)), note());
    }
}

impl TraceSink {
    fn send(&self, row: MessageRow, id: [u8; 8], parent: Option<[u8; 8]>, note: SpanNote) {
        let (began, now) = self.times(note.began);
        let nanos = |took: Duration| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let ended = note
            .took
            .map_or(now, |took| began.saturating_add(nanos(took)).min(now));
        let span = FinishedSpan {
            trace: first(&self.digest(&["trace", &row.0.to_string()])),
            id,
            parent,
            name: note.name,
            began,
            ended,
            attributes: note.attributes,
            failed: note.failed,
        };
        // Never waits: a collector that is slow must not slow down a turn.
        if self.spans.try_send(span).is_err() {
            self.dropped.inc();
        }
    }

    /// From a moment on the runtime's clock until now, on the wall's.
    fn times(&self, began: Instant) -> (u64, u64) {
        let (now, wall) = (Instant::now(), wall(&self.clock));
        // How long something took comes from the clock that nobody sets; the wall's says only when
        // in the day it was.
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = anchor.1 + now.saturating_duration_since(anchor.0).as_nanos();
        let ended = match ended.abs_diff(wall) > MOST_DRIFT.as_nanos() {
            true => {
                *anchor = (now, wall);
                wall
            }
            false => ended,
        };
        let began = ended.saturating_sub(now.saturating_duration_since(began).as_nanos());
        let bounded = |nanos: u128| u64::try_from(nanos).unwrap_or(u64::MAX);
        (bounded(began), bounded(ended))
    }

    fn root(&self, row: MessageRow) -> [u8; 8] {
        first(&self.digest(&["root", &row.0.to_string()]))
    }

    fn turn(&self, row: MessageRow) -> [u8; 8] {
        // With the process: a turn that goes on after a restart is a second span below the same
        // message.
        let process = self.process.as_str();
        first(&self.digest(&["turn", process, &row.0.to_string()]))
    }

    fn fresh(&self) -> [u8; 8] {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        first(&self.digest(&["span", self.process.as_str(), &number.to_string()]))
    }

    fn digest(&self, words: &[&str]) -> [u8; 32] {
        let mut hash = Sha256::new();
        for word in [self.salt.as_str()].iter().chain(words) {
            // With their lengths, or two words that are parted elsewhere would be one name.
            hash.update((word.len() as u64).to_be_bytes());
            hash.update(word.as_bytes());
        }
        hash.finalize().into()
    }
}

impl SpanNote {
    /// A stage of this name that began then and is over now.
    pub(crate) fn since(name: &'static str, began: Instant) -> Self {
        Self {
            name,
            began,
            took: None,
            attributes: Vec::new(),
            failed: false,
        }
    }

    /// The same, which was over after so long.
    pub(crate) fn lasting(mut self, took: Duration) -> Self {
        self.took = Some(took);
        self
    }

    pub(crate) fn text(self, key: &'static str, text: &str) -> Self {
        let kept = text.chars().take(LONGEST_TEXT).collect();
        self.with(key, SpanValue::Text(kept))
    }

    pub(crate) fn number(self, key: &'static str, number: u64) -> Self {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.with(key, SpanValue::Number(number))
    }

    pub(crate) fn failed(mut self, failed: bool) -> Self {
        self.failed = failed;
        self
    }

    fn with(mut self, key: &'static str, value: SpanValue) -> Self {
        self.attributes.push((key, value));
        self
    }
}

impl TraceExport {
    pub fn new(
        export: impl FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self(Box::new(export))
    }

    pub(super) fn run(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        (self.0)(stop)
    }
}

impl fmt::Debug for TraceExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TraceExport")
    }
}

impl fmt::Debug for TraceSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceSink").finish_non_exhaustive()
    }
}

/// Nanoseconds since 1970, as far as the clock tells them.
fn wall(clock: &SharedClock) -> u128 {
    let millis = u128::try_from(clock.now().millis()).unwrap_or_default();
    millis * 1_000_000
}

fn first<const N: usize>(digest: &[u8; 32]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&digest[..N]);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use hermetic_types::SystemClock;

    use super::*;

    fn traces(room: usize) -> (MessageTraces, mpsc::Receiver<FinishedSpan>) {
        let (sender, spans) = mpsc::channel(room);
        let mut registry = Registry::default();
        let salt = "salt".to_owned();
        let traces = MessageTraces::into_queue(sender, SystemClock::shared(), salt, &mut registry);
        (traces, spans)
    }

    #[tokio::test(start_paused = true)]
    async fn stages_of_one_message_are_one_trace_with_one_root() {
        let (traces, mut spans) = traces(8);
        let began = Instant::now();
        tokio::time::advance(Duration::from_millis(250)).await;
        let key = ConversationKey::new("agent:main:telegram:dm:7");
        let (row, other) = (MessageRow(1), MessageRow(2));
        traces.stage(row, || SpanNote::since("queue", began));
        traces.in_turn(row, || {
            SpanNote::since("tool", began).text("tool", &"x".repeat(500))
        });
        traces.in_turn(row, || SpanNote::since("tool", began));
        traces.turn(row, || SpanNote::since("turn", began));
        traces.message(row, &key, || SpanNote::since("message", began).failed(true));
        traces.stage(other, || SpanNote::since("queue", began));
        let mut next = || spans.try_recv().unwrap();
        let (queue, tool, again, turn, root, others) =
            (next(), next(), next(), next(), next(), next());
        assert_eq!(root.parent, None);
        assert!(root.failed && !turn.failed);
        assert_eq!([queue.parent, turn.parent], [Some(root.id); 2]);
        assert_eq!([tool.parent, again.parent], [Some(turn.id); 2]);
        assert_ne!(tool.id, again.id);
        assert!(
            [&queue, &tool, &turn]
                .iter()
                .all(|span| span.trace == root.trace)
        );
        assert_ne!(others.trace, root.trace);
        assert_eq!(queue.ended - queue.began, 250_000_000);
        let SpanValue::Text(text) = &tool.attributes[0].1 else {
            panic!("a text");
        };
        assert_eq!(text.len(), LONGEST_TEXT);
        let said = format!("{root:?}");
        assert!(
            !said.contains("telegram") && said.contains("hermetic.conversation"),
            "{said}"
        );
    }

    #[tokio::test]
    async fn what_finds_no_room_is_dropped_and_counted_and_nobody_waits() {
        let (traces, spans) = traces(2);
        for number in 0..5 {
            traces.stage(MessageRow(number), || {
                SpanNote::since("queue", Instant::now())
            });
        }
        assert_eq!(spans.len(), 2);
        assert_eq!(traces.0.as_ref().unwrap().dropped.get(), 3);
        drop(spans);
        traces.stage(MessageRow(9), || SpanNote::since("queue", Instant::now()));
        assert_eq!(traces.0.as_ref().unwrap().dropped.get(), 4);
    }

    #[test]
    fn nothing_is_made_where_nobody_wants_traces() {
        let none = MessageTraces::default();
        none.stage(MessageRow(1), || unreachable!("nobody asked for it"));
        none.message(MessageRow(1), &ConversationKey::new("x"), || {
            unreachable!("nobody asked for it")
        });
    }
}
