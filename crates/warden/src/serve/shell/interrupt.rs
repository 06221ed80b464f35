//! Ending a command in a shell while the shell stays.
//!
//! bash leaves a loop on SIGINT only if the child it waits for died of SIGINT as well, so both get
//! it, the shell first: a shell that saw its child die before it knew of the interrupt goes round
//! the loop and waits for the next. What ignores that is ended harder, step by step, and the pair is
//! tried again in between; jobs of earlier commands are left alone. A shell that does not come back
//! at all is given up.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep, sleep_until};

use super::bash::BashProcess;
use crate::serve::tree;

/// A shell that has only just been told of the command must not lose half of the line.
const HEAD_START: Duration = Duration::from_millis(20);
const AFTER_INTERRUPT: Duration = Duration::from_millis(500);
const AFTER_TERM: Duration = Duration::from_millis(500);
const ROUNDS: u32 = 30;
const ROUND: Duration = Duration::from_millis(50);
/// Rounds in which no process is met, before there is taken to be none: one that was just handed to a new
/// parent is met in the next round.
const EMPTY_ROUNDS: u32 = 3;

/// The steps towards the end of a command, from a polite signal to a hard one. The caller stops asking for
/// steps when the shell has told its status.
#[derive(Debug)]
pub(super) struct InterruptSequence {
    step: u32,
    due: Instant,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterruptStep {
    Taken,
    /// Nothing helps; the shell itself has to go.
    Hopeless,
}

impl InterruptSequence {
    pub(super) fn of_command_begun(begun: Instant) -> Self {
        let now = Instant::now();
        Self {
            step: 0,
            due: now.max(begun + HEAD_START),
        }
    }

    /// Waits until the next step is due. May be dropped and called again.
    pub(super) async fn due(&self) {
        sleep_until(self.due).await;
    }

    pub(super) fn take(&mut self, bash: &BashProcess) -> InterruptStep {
        let newer = bash.newer();
        let pause = match self.step {
            0 => {
                bash.signal(Signal::INT);
                tree::signal(&newer, Signal::INT);
                AFTER_INTERRUPT
            }
            1 => {
                tree::signal(&newer, Signal::TERM);
                bash.signal(Signal::INT);
                AFTER_TERM
            }
            step if step < ROUNDS && step % 2 == 0 => {
                bash.signal(Signal::INT);
                tree::signal(&newer, Signal::INT);
                ROUND
            }
            step if step < ROUNDS => {
                // Stopped first and looked for again: those that were forked meanwhile are killed
                // with the rest.
                tree::signal(&newer, Signal::STOP);
                tree::signal(&bash.newer(), Signal::KILL);
                bash.signal(Signal::INT);
                ROUND
            }
            _ => return InterruptStep::Hopeless,
        };
        if bash.has_read_all() {
            // Interrupted between the command and the telling of its status.
            bash.ask_again();
        }
        self.step += 1;
        self.due = Instant::now() + pause;
        InterruptStep::Taken
    }
}

/// Everything the command started, gone; without waiting for more than a moment.
pub(super) async fn sweep_newer(bash: &BashProcess) {
    let mut missed = 0;
    for _ in 0..100 {
        let newer = bash.newer();
        // Who was just handed to a new parent is met in the next round; the dead are not.
        match tree::signal(&newer, Signal::KILL) {
            true => missed = 0,
            false => missed += 1,
        }
        if newer.is_empty() || missed == EMPTY_ROUNDS {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
}
