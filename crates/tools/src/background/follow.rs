//! The task that stays with one process.

use std::sync::PoisonError;
use std::time::Duration;

use hermetic_redact::Redacted;
use hermetic_warden::client::{RunEvent, RunningCommand, WardenCallError};
use hermetic_warden::protocol::FailureKind;
use tokio::time::{Instant, sleep, sleep_until};

use super::BackgroundState;
use super::notice::{NoticeKind, ProcessNotice};
use super::process::{BackgroundProcess, ProcessEnd};
use super::watch::{PatternHit, PatternWatch};
use crate::{Held, ProcessTell, ansi};

/// A process that floods is slowed down to this: what it writes is read by us, and thrown away.
const BURST: usize = 4 << 20;
const BURST_TAKES: Duration = Duration::from_millis(200);

/// Between two tries to reach a process whose link breaks again and again.
const LONGEST_REACH_PAUSE: Duration = Duration::from_secs(30);

/// How much of the output a notice shows.
const SHOWN: usize = 2000;

/// Until its end. Dropping this lets the process be; it goes on in its sandbox.
pub(super) async fn follow(
    shared: &BackgroundState,
    process: &BackgroundProcess,
    link: Option<(RunningCommand, Held)>,
) {
    let mut watch = match &process.terms.tell {
        ProcessTell::Matches(patterns) => Some(PatternWatch::new(patterns.clone())),
        ProcessTell::Nothing | ProcessTell::End => None,
    };
    let mut tells_end = process.terms.tell == ProcessTell::End;
    let mut link = link;
    let mut pause = Duration::ZERO;
    let end = loop {
        let followed = match link.take() {
            Some((running, held)) => {
                follow_link(shared, process, running, held, &mut watch, &mut tells_end).await
            }
            None => FollowOutcome::Broken,
        };
        match followed {
            FollowOutcome::End(end) => break end,
            FollowOutcome::Broken => {
                sleep(pause).await;
                pause = (pause * 2).clamp(Duration::from_millis(100), LONGEST_REACH_PAUSE);
                match reach(shared, process).await {
                    Ok(Some(again)) => link = Some(again),
                    // The link broke again. One that never holds keeps its sandbox no longer than others.
                    Ok(None) if process.age() < shared.settings.longest_hold => {}
                    Ok(None) => break ProcessEnd::Lost("its sandbox does not answer"),
                    Err(end) => break end,
                }
            }
        }
    };
    process.ended(end);
    let code = end.code();
    tracing::info!(process = %process.row.id, code, "a background process has ended");
    if tells_end && process.terms.origin.is_some() {
        tell(
            shared,
            process,
            "end".to_owned(),
            NoticeKind::Ended { code },
        )
        .await;
    } else {
        shared.strike_out(&process.row.id).await;
    }
}

enum FollowOutcome {
    End(ProcessEnd),
    /// The link is gone; the process may live.
    Broken,
}

async fn follow_link(
    shared: &BackgroundState,
    process: &BackgroundProcess,
    mut running: RunningCommand,
    held: Held,
    watch: &mut Option<PatternWatch>,
    tells_end: &mut bool,
) -> FollowOutcome {
    let hold = shared.settings.longest_hold.saturating_sub(process.age());
    let mut let_go = std::pin::pin!(sleep(hold));
    let mut held = Some(held);
    let mut pace = FollowPace::begin();
    loop {
        // Begun anew each time, which is safe: `next` loses nothing when it is dropped.
        let event = tokio::select! {
            event = running.next() => event,
            () = &mut let_go, if held.is_some() => {
                held = None;
                continue;
            }
        };
        match event {
            Ok(Some(RunEvent::Started { pid })) => process.set_pid(pid),
            Ok(Some(RunEvent::Out(bytes) | RunEvent::Err(bytes))) => {
                let total = process.wrote(&bytes);
                if let Some(hit) = watch.as_mut().and_then(|watch| look(shared, watch, &bytes)) {
                    *tells_end |= hit == PatternHit::Enough;
                    tell_hit(shared, process, total, hit).await;
                }
                pace.took(bytes.len()).await;
            }
            Ok(Some(RunEvent::Skipped(count))) => process.lost_output(count),
            Ok(Some(RunEvent::Ended(ended))) => {
                return FollowOutcome::End(ProcessEnd::from(&ended));
            }
            // Somebody else looks at it just now; it is taken up again like after a broken link.
            Err(WardenCallError::Failed(failure)) if failure.kind != FailureKind::Superseded => {
                return FollowOutcome::End(ProcessEnd::Lost(
                    "its sandbox does not know it any more",
                ));
            }
            Ok(None) | Err(_) => {
                // At once: whoever writes to its stdin meanwhile is told that it cannot be reached.
                process.unplugged();
                return FollowOutcome::Broken;
            }
        }
    }
}

/// To the same sandbox once more, and to the process in it. Nothing where the sandbox lives and did not
/// answer this time.
async fn reach(
    shared: &BackgroundState,
    process: &BackgroundProcess,
) -> Result<Option<(RunningCommand, Held)>, ProcessEnd> {
    let row = &process.row;
    let living = shared.reach.living(&row.conversation, &row.sandbox).await;
    let held = living.ok_or(ProcessEnd::Lost("its sandbox is gone"))?;
    let attached = held.warden().attach(row.id.clone(), process.read_so_far());
    let running = match attached.await {
        Ok(running) => running,
        Err(WardenCallError::Failed(_)) => {
            return Err(ProcessEnd::Lost("its sandbox does not know it any more"));
        }
        Err(error) => {
            tracing::debug!(process = %row.id, %error, "a background process was not reached");
            return Ok(None);
        }
    };
    process.started(None, running.stdin(), held.warden().clone());
    Ok(Some((running, held)))
}

fn look(shared: &BackgroundState, watch: &mut PatternWatch, bytes: &[u8]) -> Option<PatternHit> {
    watch.look(bytes, Instant::now(), |line| {
        let plain = ansi::plain(line);
        let text = String::from_utf8_lossy(&plain);
        shared.redactor.redact(text).into_inner()
    })
}

async fn tell_hit(
    shared: &BackgroundState,
    process: &BackgroundProcess,
    total: u64,
    hit: PatternHit,
) {
    let rings = shared
        .alarm
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .may_ring(Instant::now());
    if !rings || process.terms.origin.is_none() {
        return;
    }
    let (mark, what) = match hit {
        PatternHit::Tell { pattern, untold } => (
            format!("match-{total}"),
            NoticeKind::Matched { pattern, untold },
        ),
        PatternHit::Enough => ("enough".to_owned(), NoticeKind::WatchedEnough),
    };
    tell(shared, process, mark, what).await;
}

async fn tell(
    shared: &BackgroundState,
    process: &BackgroundProcess,
    mark: String,
    what: NoticeKind,
) {
    let Some(origin) = process.terms.origin.clone() else {
        return;
    };
    let notice = ProcessNotice {
        conversation: process.row.conversation.clone(),
        process: process.row.id.clone(),
        mark,
        origin,
        command: shared.redactor.redact(&process.terms.command),
        what,
        output: last_of(shared, process),
    };
    // Nobody listens any more: the next start tells it.
    let _ = shared.notices.send(notice).await;
}

fn last_of(shared: &BackgroundState, process: &BackgroundProcess) -> Redacted<String> {
    let text = process.output(&shared.redactor);
    let from = text.as_str().len().saturating_sub(SHOWN);
    let last = &text.as_str()[text.as_str().ceil_char_boundary(from)..];
    shared.redactor.redact(last.trim())
}

/// Keeps a flood from costing a whole core here.
struct FollowPace {
    since: Instant,
    taken: usize,
}

impl FollowPace {
    fn begin() -> Self {
        Self {
            since: Instant::now(),
            taken: 0,
        }
    }

    async fn took(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken >= BURST {
            sleep_until(self.since + BURST_TAKES).await;
            *self = Self::begin();
        }
    }
}
