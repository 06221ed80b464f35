//! The loop: ask the model, run what it calls, ask again, until it only talks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hermetic_redact::{Redacted, Redactor};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::running::{Running, Unanswered};
use crate::{
    Budget, Journal, JournalError, Message, Model, ModelError, ModelText, Steer, ToolCall,
    ToolResult, Tools, Usage,
};

/// Takes turns. Holds nothing of a conversation.
#[derive(Clone, Debug)]
pub struct Agent {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) limits: Limits,
    /// For what people say: see [`Redactor::redact_spoken`].
    redactor: Redactor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often the model is asked within one turn.
    pub max_turns: u32,
    pub budget: Budget,
    /// How long a tool may take to end after it was told to.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 90,
            budget: Budget::for_context(128_000),
            grace: Duration::from_secs(10),
        }
    }
}

/// Everything one turn needs.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    /// The system prompt, see [`crate::prompt`].
    pub system: &'a Redacted<String>,
    /// What was said before: consistent, see [`crate::mend`].
    pub history: &'a [Message],
    pub input: Input<'a>,
    pub tools: &'a dyn Tools,
    pub journal: &'a dyn Journal,
    pub observer: &'a dyn Observer,
    pub steer: &'a Steer,
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("history", &self.history.len())
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A person said this.
    Says(&'a str),
    /// Nothing new: a turn that a restart cut goes on.
    Resume,
}

/// Watches a turn. Called from within the loop, so it must not block. Nothing here is redacted.
pub trait Observer: Send + Sync {
    fn text(&self, _piece: &str) {}
    /// The text since the last tool call is void; the model begins its answer anew.
    fn restarted(&self) {}
    fn tool_started(&self, _call: &ToolCall) {}
    fn tool_ended(&self, _call: &ToolCall, _result: &ToolResult) {}
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What the person is told.
    pub text: String,
    pub ended: Ended,
    /// What the turn added to the conversation, all of it in the journal already.
    pub messages: Vec<Message>,
    pub usage: Usage,
    /// What was said to a turn that had no tool call left to hear it after.
    pub unheard: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Finished,
    /// The model ran out of room or was cut by its provider; `text` says so.
    CutShort,
    /// `max_turns` was reached.
    TurnLimit,
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
    pub fn new(model: Arc<dyn Model>, limits: Limits, redactor: Redactor) -> Self {
        Self {
            model,
            limits,
            redactor,
        }
    }

    pub async fn take_turn(
        &self,
        turn: Turn<'_>,
        stop: CancellationToken,
    ) -> Result<Answer, TurnError> {
        let mut running = Running::new(self, turn, stop);
        if let Input::Says(text) = turn.input {
            running.say(self.user(text)).await?;
        }
        for _ in 0..self.limits.max_turns {
            let reply = match running.ask().await {
                Ok(reply) => reply,
                Err(Unanswered::Stopped { so_far }) => return running.interrupted(so_far).await,
                Err(Unanswered::Failed(error)) => return Err(error.into()),
            };
            running.usage.add(reply.usage);
            let finish = reply.finish.clone();
            let parts = reply.into_parts(&mut running.taken);
            let message = Message::Assistant { parts };
            let calls: Vec<_> = message.tool_calls().cloned().collect();
            if calls.is_empty() {
                return running.finished(message, finish).await;
            }
            running.say(message).await?;
            // One after the other, in the model's order: it may count on the first having happened
            // before the second, and a person who reads along can follow.
            for call in &calls {
                running.run(call).await?;
            }
            if running.stop.is_cancelled() {
                return running.interrupted(String::new()).await;
            }
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
