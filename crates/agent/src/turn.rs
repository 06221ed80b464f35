//! The loop: ask the model, run what it calls, ask again, until it only talks.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use hermetic_redact::{Redacted, Redactor};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::compaction::window_told;
use crate::running::{RunningTurn, UnansweredRequest};
use crate::{
    CompactionSettings, HistoryBudget, HistorySummary, JournalError, LanguageModel, Message,
    MessagePart, ModelError, ModelText, SpendingMeter, SteeringHandle, TokenUsage, ToolCall,
    ToolResult, ToolSet, TurnJournal,
};

/// Takes turns. Holds nothing of a conversation.
#[derive(Clone, Debug)]
pub struct Agent {
    pub(crate) model: Arc<dyn LanguageModel>,
    pub(crate) limits: TurnBounds,
    pub(crate) compaction: CompactionSettings,
    /// The window that the model itself told of, in tokens; 0 where it did not.
    learned_window: Arc<AtomicUsize>,
    media: Arc<MediaExperience>,
    /// For what people say: see [`Redactor::redact_spoken`].
    pub(crate) redactor: Redactor,
}

/// How the model took images and files, as far as this process has seen.
#[derive(Debug, Default)]
struct MediaExperience {
    /// It took some once, so what it refuses is that one request.
    taken: AtomicBool,
    /// Requests that go without them until it is tried again.
    spared: AtomicUsize,
}

/// For so many requests a model that refused images or files is not shown any.
const SPARED_REQUESTS: usize = 20;
/// What is told of smaller windows is taken for a mistake: no turn would fit.
const SMALLEST_WINDOW: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnBounds {
    /// How often the model is asked within one turn.
    pub max_turns: u32,
    /// Tokens that the model can see.
    pub window: usize,
    pub budget: HistoryBudget,
    /// How long a tool may take to end after it was told to.
    pub grace: Duration,
}

impl Default for TurnBounds {
    fn default() -> Self {
        Self {
            max_turns: 90,
            window: USUAL_WINDOW,
            budget: HistoryBudget::for_context(USUAL_WINDOW),
            grace: Duration::from_secs(10),
        }
    }
}

/// The window of a model of which nobody says it.
const USUAL_WINDOW: usize = 128_000;

impl TurnBounds {
    /// The same for a model that can see so many tokens.
    #[must_use]
    pub fn with_window(self, tokens: usize) -> Self {
        Self {
            window: tokens,
            budget: HistoryBudget::for_context(tokens),
            ..self
        }
    }
}

/// Whoever answers: brings one turn from what was said to what the person is told.
///
/// What an implementer promises: what was said and what was answered is in the journal, nothing is spent
/// that the meter refused, and the turn ends soon after `stop` is cancelled, with nothing left at work.
pub trait TurnTaker: Send + Sync {
    /// Whether it calls the tools of the turn. Where not, they need not be prepared.
    fn calls_tools(&self) -> bool {
        true
    }

    fn take_turn<'a>(
        &'a self,
        turn: AgentTurn<'a>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<TurnAnswer, TurnError>>;
}

impl TurnTaker for Agent {
    fn take_turn<'a>(
        &'a self,
        turn: AgentTurn<'a>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<TurnAnswer, TurnError>> {
        Agent::take_turn(self, turn, stop).boxed()
    }
}

/// Everything one turn needs.
#[derive(Clone, Copy)]
pub struct AgentTurn<'a> {
    /// The system prompt, see [`crate::prompt`].
    pub system: &'a Redacted<String>,
    /// What stands for the part of the conversation before `history`.
    pub summary: Option<&'a HistorySummary>,
    /// What was said before: consistent, see [`crate::mend`].
    pub history: &'a [Message],
    pub input: TurnInput<'a>,
    /// Images and files that came along with what was said. A model that does not take them is told of them.
    pub media: &'a [MessagePart],
    pub tools: &'a dyn ToolSet,
    pub journal: &'a dyn TurnJournal,
    pub observer: &'a dyn TurnObserver,
    pub steer: &'a SteeringHandle,
    pub meter: &'a dyn SpendingMeter,
}

impl fmt::Debug for AgentTurn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentTurn")
            .field("history", &self.history.len())
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnInput<'a> {
    /// A person said this.
    Says(&'a str),
    /// Nothing new: a turn that a restart cut goes on.
    Resume,
}

/// Watches a turn. Called from within the loop, so it must not block. Nothing here is redacted.
pub trait TurnObserver: Send + Sync {
    fn text(&self, _piece: &str) {}
    /// The text since the last tool call is void; the model begins its answer anew.
    fn restarted(&self) {}
    fn tool_started(&self, _call: &ToolCall) {}
    fn tool_ended(&self, _call: &ToolCall, _result: &ToolResult) {}
    /// More of what it thinks, where somebody wants to see that. It is no part of the answer.
    fn thought(&self, _piece: &str) {}
    /// How far it has come with its plan, in a few words. It is no part of the answer either.
    fn plan(&self, _words: &str) {}
    /// What was said so far is an answer and stays; the same turn goes on with another one.
    fn answered(&self) {}
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentObserver;

impl TurnObserver for SilentObserver {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnAnswer {
    /// What the person is told.
    pub text: String,
    pub ended: TurnEnding,
    /// What the turn added to the conversation, all of it in the journal already.
    pub messages: Vec<Message>,
    pub usage: TokenUsage,
    /// What was said to a turn that had no tool call left to hear it after.
    pub unheard: Vec<String>,
    /// What the person is to know about the length of the conversation.
    pub notes: Vec<LengthNote>,
}

/// What became of a conversation that is long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LengthNote {
    /// Its older part was summarised.
    Summarised { messages: usize },
    /// It should have been, and why it was not. Nothing is lost.
    NotSummarised { why: String },
    /// The model was not shown the oldest part, because it does not fit.
    LeftOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnding {
    Finished,
    /// The model ran out of room or was cut by its provider; `text` says so.
    CutShort,
    /// `max_turns` was reached.
    TurnLimit,
    /// Nothing more may be spent; `text` says so.
    BudgetReached,
    /// `stop` was cancelled.
    Interrupted,
}

/// The conversation is consistent up to what the journal holds.
#[derive(Debug, Error)]
pub enum TurnError {
    #[error("the model gave no answer")]
    Model(#[from] ModelError),
    #[error("the turn could not be recorded")]
    Journal(#[from] JournalError),
}

impl TurnError {
    /// What the person in the chat may read.
    pub fn for_chat(&self) -> &'static str {
        match self {
            Self::Model(error) => error.for_chat(),
            Self::Journal(_) => {
                "Something went wrong here, and nothing more was done. The operator has been told."
            }
        }
    }
}

impl Agent {
    pub fn new(model: Arc<dyn LanguageModel>, limits: TurnBounds, redactor: Redactor) -> Self {
        Self {
            model,
            limits,
            compaction: CompactionSettings::default(),
            learned_window: Arc::default(),
            media: Arc::default(),
            redactor,
        }
    }

    /// The same, which summarises long conversations in this way.
    #[must_use]
    pub fn summarising(mut self, compaction: CompactionSettings) -> Self {
        self.compaction = compaction;
        self
    }

    /// The same with another model. What the first told of its window is not true of this one.
    #[must_use]
    pub fn with_model(&self, model: Arc<dyn LanguageModel>, window: Option<usize>) -> Self {
        let usual = TurnBounds::default().window;
        Self {
            model,
            limits: self.limits.with_window(window.unwrap_or(usual)),
            learned_window: Arc::default(),
            media: Arc::default(),
            ..self.clone()
        }
    }

    /// The same, which asks the model at most so often within one turn.
    #[must_use]
    pub fn with_max_turns(&self, max_turns: u32) -> Self {
        let mut agent = self.clone();
        agent.limits.max_turns = max_turns.min(self.limits.max_turns);
        agent
    }

    /// What people call the model.
    pub fn model_name(&self) -> &str {
        self.model.name()
    }

    /// Whether the model is shown files such as PDFs.
    pub fn takes_files(&self) -> bool {
        self.model.takes_files()
    }

    /// Tokens that the model can see, by its own word where that is less than what was thought.
    pub fn window(&self) -> usize {
        match self.learned_window.load(Ordering::Relaxed) {
            0 => self.limits.window,
            learned => learned.min(self.limits.window),
        }
    }

    /// How much of a conversation the model is shown.
    pub(crate) fn budget(&self) -> HistoryBudget {
        match self.window() {
            window if window < self.limits.window => {
                HistoryBudget::for_context(window).min(self.limits.budget)
            }
            _ => self.limits.budget,
        }
    }

    /// Whether the next request with images or files is to go without them. Each question counts as one.
    pub(crate) fn spares_media(&self) -> bool {
        // One step, because several conversations count on the same figure. It is a habit and
        // guards nothing, so no order with anything else is needed.
        let one_less = |left: usize| left.checked_sub(1);
        let spared = &self.media.spared;
        spared
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
    }

    /// The model took a request with images or files.
    pub(crate) fn media_taken(&self) {
        self.media.taken.store(true, Ordering::Relaxed);
        self.media.spared.store(0, Ordering::Relaxed);
    }

    /// The model refused a request with images or files, and took it without.
    pub(crate) fn media_refused(&self) {
        if !self.media.taken.load(Ordering::Relaxed) {
            self.media.spared.store(SPARED_REQUESTS, Ordering::Relaxed);
        }
    }

    /// A model said that a conversation is too long, and perhaps what it can see. What another says than
    /// this agent's own, to which that one gave way, is not true of it.
    pub(crate) fn learn_window(&self, model: &str, detail: &str) {
        if model != self.model.name() {
            return;
        }
        let Some(told) = window_told(detail).map(|told| told.max(SMALLEST_WINDOW)) else {
            return;
        };
        if told < self.window() {
            tracing::info!(
                model = self.model.name(),
                tokens = told,
                "the model tells of a smaller window; this holds until the next start"
            );
            self.learned_window.store(told, Ordering::Relaxed);
        }
    }

    pub async fn take_turn(
        &self,
        turn: AgentTurn<'_>,
        stop: CancellationToken,
    ) -> Result<TurnAnswer, TurnError> {
        let mut running = RunningTurn::new(self, turn, stop);
        if let TurnInput::Says(text) = turn.input {
            let mut message = self.user(text);
            if let Message::User { parts } = &mut message {
                parts.extend_from_slice(turn.media);
            }
            running.say(message).await?;
        }
        for _ in 0..self.limits.max_turns {
            let reply = match running.ask().await {
                Ok(reply) => reply,
                Err(UnansweredRequest::Stopped { so_far }) => {
                    return running.interrupted(so_far).await;
                }
                Err(UnansweredRequest::TooDear(refused)) => {
                    return running.out_of_budget(refused).await;
                }
                Err(UnansweredRequest::Failed(error)) => return Err(error.into()),
            };
            running.usage.add(reply.usage());
            let finish = reply.finish.clone();
            let parts = reply.into_parts(&mut running.taken);
            let message = Message::Assistant { parts };
            let calls: Vec<_> = message.tool_calls().cloned().collect();
            if calls.is_empty() {
                return running.finished(message, finish).await;
            }
            // In the journal before the first of them runs: whoever goes on after a crash has to
            // see that they were asked for, and perhaps done.
            running.say(message).await?;
            // One after the other, in the model's order: it may count on the first having happened
            // before the second, and a person who reads along can follow.
            for call in &calls {
                running.run(call).await?;
            }
            // Only now: each call needs its answer in the history, also one that was not run, or
            // every later request is refused.
            if running.stop.is_cancelled() {
                return running.interrupted(String::new()).await;
            }
            // Behind the answers and never between them: no provider takes words between a call and
            // its answer.
            for text in turn.steer.take() {
                running.say(self.user(&text)).await?;
            }
        }
        running.out_of_turns().await
    }

    fn user(&self, words: &str) -> Message {
        Message::user(ModelText::spoken(words, &self.redactor))
    }
}
