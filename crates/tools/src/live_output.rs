//! What a running call has written so far, for people who look on.
//!
//! Bytes are copied as they come and made legible when somebody asks, once for all who ask: a call that
//! nobody looks at costs a copy, and one that many look at costs no more. When the call ends, what was
//! kept of its output here is gone.
//!
//! Two borders could show half a secret. Where the beginning was dropped, an edge is thrown away with it;
//! at the end, the stream redactor holds back whatever may be the beginning of one until more has come.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_redact::{Redacted, Redactor};
use hermetic_sandbox::{OutputListener, OutputStream};
use hermetic_types::ConversationKey;
use tokio::sync::watch;

use crate::ansi;

/// The output of every call that runs. Clones share it.
#[derive(Clone, Debug)]
pub struct LiveOutputs(Arc<OutputRegistry>);

#[derive(Debug)]
struct OutputRegistry {
    /// One call runs at a time in a conversation, so there are never more than turns at work.
    calls: Mutex<HashMap<ConversationKey, Arc<CallTails>>>,
    changes: watch::Sender<u64>,
    redactor: Redactor,
}

/// A call while it runs. Dropping it forgets its output.
#[derive(Debug)]
pub struct LiveCall {
    outputs: LiveOutputs,
    conversation: ConversationKey,
    tails: Arc<CallTails>,
}

/// The end of what a running call has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningOutput {
    pub text: Redacted<String>,
    /// All that was written, shown or not.
    pub bytes: u64,
    /// Whether there was more before it.
    pub is_cut: bool,
}

#[derive(Debug, Default)]
struct CallTails {
    streams: Mutex<[StreamTail; 2]>,
    /// What was shown last, and how much had been written then.
    shown: Mutex<Option<RunningOutput>>,
}

/// The last bytes of one stream. A stream apart from the other: what one writes may fall into the middle of
/// a secret that the other writes.
#[derive(Clone, Debug, Default)]
struct StreamTail {
    bytes: VecDeque<u8>,
    total: u64,
}

/// Raw bytes that are kept of each stream.
const MOST_KEPT: usize = 48 << 10;
/// Thrown away at the beginning once something was: as far as a rule of the redactor looks ahead.
const EDGE: usize = 16 << 10;
/// Bytes that say nothing of a secret yet.
const ALWAYS_HELD: usize = 2;
/// What is shown of each stream.
const MOST_SHOWN: usize = 8 << 10;

impl LiveOutputs {
    pub fn new(redactor: Redactor) -> Self {
        Self(Arc::new(OutputRegistry {
            calls: Mutex::default(),
            changes: watch::Sender::new(0),
            redactor,
        }))
    }

    /// A call begins. What an earlier one of this conversation wrote is not shown any more.
    pub fn begin(&self, conversation: &ConversationKey) -> LiveCall {
        let tails = Arc::new(CallTails::default());
        self.calls()
            .insert(conversation.clone(), Arc::clone(&tails));
        LiveCall {
            outputs: self.clone(),
            conversation: conversation.clone(),
            tails,
        }
    }

    /// What the call that runs there has written; nothing where none runs or it wrote nothing.
    pub fn of(&self, conversation: &ConversationKey) -> Option<RunningOutput> {
        let tails = self.calls().get(conversation).map(Arc::clone)?;
        tails.shown(&self.0.redactor)
    }

    /// Counts up with whatever a call writes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ConversationKey, Arc<CallTails>>> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputListener for LiveCall {
    fn heard(&self, stream: OutputStream, bytes: &[u8]) {
        let mut streams = self.tails.streams();
        streams[stream as usize].push(bytes);
        // Let go before anybody is told, as whoever is told takes it at once.
        drop(streams);
        self.outputs
            .0
            .changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl Drop for LiveCall {
    fn drop(&mut self) {
        let mut calls = self.outputs.calls();
        // A later call of the conversation may have taken the place.
        if calls
            .get(&self.conversation)
            .is_some_and(|tails| Arc::ptr_eq(tails, &self.tails))
        {
            calls.remove(&self.conversation);
        }
    }
}

impl CallTails {
    fn shown(&self, redactor: &Redactor) -> Option<RunningOutput> {
        // Held while it is made legible: of many who ask one does the work. The call that writes does not
        // wait for this lock.
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let written = |streams: &[StreamTail; 2]| streams.iter().map(|stream| stream.total).sum();
        let now: u64 = written(&self.streams());
        if now == 0 {
            return None;
        }
        if let Some(shown) = shown.as_ref().filter(|shown| shown.bytes == now) {
            return Some(shown.clone());
        }
        // Copied out: making it legible takes long, and the command's reader waits for this lock.
        let streams = self.streams().clone();
        let bytes = written(&streams);
        let [out, err] = streams.map(|stream| stream.legible(redactor));
        let gap = match out.0.is_empty() || err.0.is_empty() || out.0.ends_with('\n') {
            true => "",
            false => "\n",
        };
        let fresh = RunningOutput {
            // The second pass only proves what the first did: there is no other way to a `Redacted`.
            text: redactor.redact(format!("{}{gap}{}", out.0, err.0)),
            bytes,
            is_cut: out.1 || err.1,
        };
        *shown = Some(fresh.clone());
        Some(fresh)
    }

    fn streams(&self) -> MutexGuard<'_, [StreamTail; 2]> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamTail {
    fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let bytes = &bytes[bytes.len().saturating_sub(MOST_KEPT)..];
        let over = (self.bytes.len() + bytes.len()).saturating_sub(MOST_KEPT);
        self.bytes.drain(..over);
        self.bytes.extend(bytes);
    }

    /// Without escapes and secrets, and whether there was more before it.
    fn legible(&self, redactor: &Redactor) -> (String, bool) {
        let (one, two) = self.bytes.as_slices();
        let plain = ansi::plain(&[one, two].concat());
        // What may be the beginning of a secret is held back, and not given out with the end. The last two
        // bytes are always held back, and would be missing from a line that nothing follows.
        let mut stream = redactor.stream();
        let mut redacted = stream.push(&plain).into_inner();
        let rest = stream.finish().into_inner();
        if rest.len() <= ALWAYS_HELD {
            redacted.extend(rest);
        }
        let text = String::from_utf8_lossy(&redacted);
        let was_dropped = self.total > self.bytes.len() as u64;
        let edge = if was_dropped { EDGE } else { 0 };
        let from = edge.max(text.len().saturating_sub(MOST_SHOWN));
        let from = text.ceil_char_boundary(from.min(text.len()));
        let shown = &text[from..];
        // A line that was cut begins nowhere.
        let shown = match shown.split_once('\n') {
            Some((_, rest)) if from > 0 && !rest.is_empty() => rest,
            _ => shown,
        };
        (shown.to_owned(), from > 0)
    }
}

#[cfg(test)]
#[path = "live_output_tests.rs"]
mod tests;
