//! Whoever sits there: what they type, when they want it to end, and what they are asked.

use std::collections::VecDeque;
use std::io::{BufRead, Read};
use std::path::PathBuf;
use std::thread;

use hermetic_approvals::{Answerer, ApprovalRegistry};
use hermetic_store::{ApprovalRequest, GivenAnswer};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::keyboard::{PromptSign, answer, choices, question};
use super::line_editor::{self, LineEditor};
use super::screen::TurnScreen;
use crate::by_hand;
use crate::failure::CommandFailure;

pub(super) struct TerminalPerson {
    approvals: ApprovalRegistry,
    interrupts: Signal,
    lines: mpsc::Receiver<PersonInput>,
    /// Where somebody sits at a terminal.
    editor: Option<LineEditor>,
    /// Typed before it was asked for: heard after the turn.
    ahead: VecDeque<String>,
    signs: mpsc::Receiver<PromptSign>,
    /// Questions that wait; the first one is on the screen.
    asked: VecDeque<ApprovalRequest>,
}

/// What somebody did at the prompt.
pub(super) enum PersonInput {
    Line(String),
    /// Ctrl-D.
    End,
    Interrupt,
}

/// How something that can be interrupted ended.
pub(super) enum InterruptibleEnd<T> {
    With(T),
    /// Asked twice.
    Left,
}

/// Of one line. What is longer is cut.
const MOST_LINE_BYTES: u64 = 1 << 20;

impl TerminalPerson {
    pub(super) fn new(
        approvals: ApprovalRegistry,
        signs: mpsc::Receiver<PromptSign>,
    ) -> Result<Self, CommandFailure> {
        let interrupts = signal(SignalKind::interrupt())
            .map_err(|error| CommandFailure::caused(&error, "report this as a bug"))?;
        Ok(Self {
            approvals,
            interrupts,
            // Nobody is listened to before `listen`.
            lines: mpsc::channel(1).1,
            editor: None,
            ahead: VecDeque::new(),
            signs,
            asked: VecDeque::new(),
        })
    }

    /// From now on what is typed is heard: with -q our input may be somebody else's. At a terminal lines can be
    /// edited, and those typed before are in `history`.
    pub(super) fn listen(&mut self, history: PathBuf) {
        if line_editor::is_possible() {
            match LineEditor::start(history) {
                Ok((editor, lines)) => {
                    self.lines = lines;
                    self.editor = Some(editor);
                    return;
                }
                Err(error) => tracing::debug!(%error, "lines cannot be edited here"),
            }
        }
        self.lines = lines();
    }

    /// Whether the prompt is shown by whoever edits the line.
    pub(super) fn edits(&self) -> bool {
        self.editor.is_some()
    }

    pub(super) async fn at_the_prompt(&mut self) -> PersonInput {
        if let Some(line) = self.ahead.pop_front() {
            return PersonInput::Line(line);
        }
        if let Some(editor) = &mut self.editor {
            editor.ask();
        }
        tokio::select! {
            input = self.lines.recv() => {
                self.heard();
                input.unwrap_or(PersonInput::End)
            }
            _ = self.interrupts.recv() => PersonInput::Interrupt,
        }
    }

    fn heard(&mut self) {
        if let Some(editor) = &mut self.editor {
            editor.heard();
        }
    }

    /// Until it is done. The first Ctrl-C asks it to end, the second does not wait for that; questions
    /// that come up meanwhile are shown and answered.
    pub(super) async fn during<T>(
        &mut self,
        work: impl Future<Output = T>,
        stop: &CancellationToken,
        screen: &TurnScreen,
    ) -> InterruptibleEnd<T> {
        tokio::pin!(work);
        // Questions of an earlier turn: nobody waits for their answers any more.
        self.asked.clear();
        loop {
            tokio::select! {
                done = &mut work => return InterruptibleEnd::With(done),
                _ = self.interrupts.recv() => {
                    if stop.is_cancelled() {
                        return InterruptibleEnd::Left;
                    }
                    stop.cancel();
                }
                Some(sign) = self.signs.recv() => self.see(sign, screen),
                // Only while something is asked: whatever else is typed is for after the turn.
                input = self.lines.recv(), if !self.asked.is_empty() => {
                    self.heard();
                    let line = match input {
                        Some(PersonInput::Line(line)) => Some(line),
                        Some(PersonInput::End | PersonInput::Interrupt) | None => None,
                    };
                    self.answer(line.as_deref(), screen).await;
                }
            }
        }
    }

    fn see(&mut self, sign: PromptSign, screen: &TurnScreen) {
        match sign {
            PromptSign::Asked(request) => {
                self.asked.push_back(*request);
                if self.asked.len() == 1 {
                    self.show(screen);
                }
            }
            PromptSign::Settled(id) => {
                let shown = self.asked.front().is_some_and(|first| first.id == id);
                self.asked.retain(|request| request.id != id);
                if shown {
                    self.show(screen);
                }
            }
        }
    }

    fn show(&mut self, screen: &TurnScreen) {
        if self.asked.is_empty() {
            return;
        }
        // What was typed before anybody could read the question does not answer it.
        while let Ok(input) = self.lines.try_recv() {
            self.heard();
            if let PersonInput::Line(line) = input {
                self.ahead.push_back(line);
            }
        }
        if let Some(request) = self.asked.front() {
            screen.ask(&question(request), choices(request));
        }
    }

    /// The end of the input is a no, like silence.
    async fn answer(&mut self, line: Option<&str>, screen: &TurnScreen) {
        let Some(request) = self.asked.front() else {
            return;
        };
        let Some((given, reason)) =
            line.map_or(Some((GivenAnswer::No, None)), |line| answer(line, request))
        else {
            screen.ask("", choices(request));
            return;
        };
        let by = by_hand::who();
        let answerer = Answerer {
            by: &by,
            via: "terminal",
        };
        let answered = self.approvals.answer(&request.id, given, answerer, reason);
        if let Err(error) = answered.await {
            screen.tell(&format!("The answer could not be kept: {error}"));
        }
        self.asked.pop_front();
        self.show(screen);
    }
}

/// Reading blocks in a thread of its own. What is typed during a turn is heard after it.
fn lines() -> mpsc::Receiver<PersonInput> {
    let (typed, lines) = mpsc::channel(64);
    thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = input
                .by_ref()
                .take(MOST_LINE_BYTES)
                .read_until(b'\n', &mut line);
            if !read.is_ok_and(|bytes| bytes > 0) {
                return;
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if typed.blocking_send(PersonInput::Line(line)).is_err() {
                return;
            }
        }
    });
    lines
}
