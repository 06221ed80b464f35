//! Moves a command's output to whoever wants it.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use super::backlog::ReplayChunk;
use super::known_run::KnownRun;
use super::output::{OutputSource, ReadOutcome};
use super::process_tree::ProcessTree;
use crate::mux::MuxStream;
use crate::protocol::frame::{FrameKind, HEADER, header};
use crate::protocol::{CommandEnd, MAX_DATA, WardenFailure, encode};

/// Room for one frame, header first, so that bytes go out from where they were read to.
pub(crate) struct FrameBuffer(Vec<u8>);

/// What happened next to a command and its output.
enum PumpEvent {
    Output(FrameKind, usize),
    /// Every source is at its end.
    Dry,
    /// The command has ended.
    Over,
}

impl FrameBuffer {
    pub(crate) fn new() -> Self {
        Self(vec![0; HEADER + MAX_DATA])
    }

    /// For a trickle.
    pub(crate) fn new_small() -> Self {
        Self(vec![0; HEADER + 4096])
    }

    pub(crate) fn body(&mut self) -> &mut [u8] {
        &mut self.0[HEADER..]
    }
}

/// Pumps until the command has ended and everything it wrote by then is delivered.
pub(crate) async fn until_over(
    run: &Rc<KnownRun>,
    processes: &ProcessTree,
    sources: &mut Vec<OutputSource>,
    buffer: &mut FrameBuffer,
) {
    let mut over = false;
    loop {
        let next = {
            let mut ended = pin!(processes.ended());
            let mut over_now =
                |cx: &mut std::task::Context<'_>| !over && ended.as_mut().poll(cx).is_ready();
            // Output before the end, each time: what was written by then is in the pipes when the
            // end is told.
            poll_fn(|cx| match poll_sources(sources, buffer, cx) {
                Poll::Ready(next) => Poll::Ready(next),
                Poll::Pending if over_now(cx) => Poll::Ready(PumpEvent::Over),
                Poll::Pending => Poll::Pending,
            })
            .await
        };
        match next {
            PumpEvent::Output(kind, length) => deliver(run, kind, buffer, length).await,
            PumpEvent::Over => {
                over = true;
                let shared = processes.exit().is_none_or(|exit| exit.others);
                for source in sources.iter_mut() {
                    source.set_mark(shared);
                }
            }
            PumpEvent::Dry if over => return,
            PumpEvent::Dry => {
                // Its streams are closed, by itself or as a daemon does; that is not yet its end.
                processes.ended().await;
                return;
            }
        }
    }
}

/// Goes on for what was left in the background, so that it does not choke on a closed pipe.
pub(crate) async fn for_leftovers(
    run: &Rc<KnownRun>,
    mut sources: Vec<OutputSource>,
    mut buffer: FrameBuffer,
) {
    for source in &mut sources {
        source.clear_mark();
    }
    loop {
        match poll_fn(|cx| poll_sources(&mut sources, &mut buffer, cx)).await {
            // Kept and sent to nobody: the caller has been told the end, after which nothing may
            // come.
            PumpEvent::Output(kind, length) => run.keep(kind, &buffer.0[HEADER..HEADER + length]),
            PumpEvent::Dry | PumpEvent::Over => return,
        }
    }
}

fn poll_sources(
    sources: &mut Vec<OutputSource>,
    buffer: &mut FrameBuffer,
    cx: &mut std::task::Context<'_>,
) -> Poll<PumpEvent> {
    let mut at = 0;
    let mut waiting = false;
    while let Some(source) = sources.get_mut(at) {
        match source.poll_read(cx, &mut buffer.0[HEADER..]) {
            Poll::Ready(ReadOutcome::Bytes(length)) => {
                let kind = source.kind;
                // The other source goes first next time.
                sources.rotate_left(1);
                return Poll::Ready(PumpEvent::Output(kind, length));
            }
            Poll::Ready(ReadOutcome::Closed) => {
                sources.remove(at);
            }
            Poll::Ready(ReadOutcome::Marked) => at += 1,
            Poll::Pending => {
                waiting = true;
                at += 1;
            }
        }
    }
    if waiting {
        Poll::Pending
    } else {
        Poll::Ready(PumpEvent::Dry)
    }
}

pub(crate) async fn deliver(
    run: &Rc<KnownRun>,
    kind: FrameKind,
    buffer: &mut FrameBuffer,
    length: usize,
) {
    run.keep(kind, &buffer.0[HEADER..HEADER + length]);
    buffer.0[..HEADER].copy_from_slice(&header(kind, length));
    run.send(&buffer.0[..HEADER + length]).await;
}

/// The last word to whoever listens.
pub(crate) async fn tell_end(viewer: &MuxStream, end: &Result<CommandEnd, WardenFailure>) {
    let (kind, payload) = match end {
        Ok(ended) => (FrameKind::Ended, encode(ended)),
        Err(failure) => (FrameKind::Failed, encode(failure)),
    };
    if viewer.send(kind, &payload).await.is_ok() {
        let _ = viewer.close().await;
    }
}

/// What was kept, for somebody who attaches.
pub(crate) async fn replay(viewer: &MuxStream, backlog: Vec<ReplayChunk>) -> bool {
    for item in backlog {
        let sent = match item {
            ReplayChunk::Piece(piece) => viewer.send(piece.kind, &piece.bytes).await,
            ReplayChunk::Skipped(count) => viewer.send(FrameKind::Skipped, &encode(&count)).await,
        };
        if sent.is_err() {
            return false;
        }
    }
    true
}
