//! The seam to whoever thinks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::{Message, NanoDollars, OpaquePart, TokenPrice, ToolSpec};

/// A language model that answers in pieces.
///
/// What an implementer promises:
/// - the stream ends with [`ReplyDelta::Finish`] or with an error, and nothing follows either;
/// - cancelling `stop` ends it soon with [`ModelError::Stopped`], wherever it waits;
/// - no error holds a credential.
pub trait LanguageModel: Send + Sync + fmt::Debug {
    /// What people call it.
    fn name(&self) -> &str;

    fn complete<'a>(&'a self, ask: ModelRequest<'a>, stop: CancellationToken) -> Deltas<'a>;

    /// What its tokens cost, for an estimate before it is asked.
    fn price(&self) -> Option<TokenPrice> {
        None
    }

    /// Whether it is shown files such as PDFs. Where it is not they are named, and their words have to be read.
    fn takes_files(&self) -> bool {
        true
    }
}

pub type Deltas<'a> = BoxStream<'a, Result<ReplyDelta, ModelError>>;

/// What the model is given. All of its text has a proof: see [`ModelText`](crate::ModelText).
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    pub messages: &'a [Message],
    pub tools: &'a [ToolSpec],
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyDelta {
    Text(String),
    ToolCall(CallFragment),
    /// What the provider wants back at this place.
    Opaque(OpaquePart),
    /// So many bytes of thought came, which are paid for and shown to nobody.
    Thinking(usize),
    /// Figures of the answer so far. They are whole only once it has finished.
    Usage(TokenUsage),
    /// Another model than the first is asked from here on. What attempts took that broke off before is told
    /// with what this one takes.
    GaveWay(Arc<str>),
    /// What came so far is void: the answer starts anew after a failure.
    Restarted,
    Finish(FinishReason),
}

/// A piece of a tool call. Those with one `index` belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFragment {
    pub index: usize,
    pub id: Option<String>,
    pub name: Option<String>,
    pub arguments: String,
}

/// What an answer took. Every dialect's figures are brought to this form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// All that was read, the cached part included.
    pub input_tokens: u64,
    /// All that was written, thoughts included.
    pub output_tokens: u64,
    /// The part of the input that came from the provider's cache.
    pub cached_tokens: u64,
    /// The part of the input that was written into the provider's cache.
    pub cache_write_tokens: u64,
    /// The part of the output that was thought.
    pub reasoning_tokens: u64,
    /// What it cost, by the provider's own word or by our table; unknown where neither says.
    pub cost: Option<NanoDollars>,
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// It said what it had to say, or called tools.
    Done,
    /// It ran out of room.
    Length,
    /// The provider withheld the rest.
    Filtered,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModelError {
    #[error("cannot reach {model}: {what}")]
    Unreachable { model: String, what: String },
    #[error("{model} is busy or broken (status {status}): {detail}")]
    Busy {
        model: String,
        status: u16,
        detail: String,
        /// How long it asked us to wait.
        retry_after: Option<Duration>,
    },
    #[error("{model} did not accept the key (status {status}): {detail}")]
    KeyRejected {
        model: String,
        status: u16,
        detail: String,
    },
    #[error("the account at the provider of {model} is out of credit (status {status}): {detail}")]
    OutOfCredit {
        model: String,
        status: u16,
        detail: String,
    },
    #[error("the conversation is too long for {model}: {detail}")]
    ContextTooLong { model: String, detail: String },
    #[error("{model} refused the request (status {status}): {detail}")]
    Refused {
        model: String,
        status: u16,
        detail: String,
    },
    #[error("{model} broke off in the middle of an answer")]
    Cut { model: String },
    #[error("{model} sent nothing for {} seconds", waited.as_secs())]
    Silent { model: String, waited: Duration },
    #[error("{model} answered with something unreadable: {what}")]
    Unreadable { model: String, what: String },
    #[error("{model} answered with more than {limit} bytes")]
    TooLarge { model: String, limit: usize },
    #[error("the request for {model} would be {size} bytes, the limit is {limit}")]
    AskTooLarge {
        model: String,
        size: usize,
        limit: usize,
    },
    #[error("interrupted")]
    Stopped,
}

impl ModelError {
    /// Whether the same request may succeed a little later.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Busy { .. }
                | Self::Cut { .. }
                | Self::Silent { .. }
                | Self::Unreadable { .. }
        )
    }

    /// Whether the provider may have worked on the request, and so charges for it.
    pub fn may_be_billed(&self) -> bool {
        match self {
            Self::Cut { .. }
            | Self::Silent { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::Stopped => true,
            Self::Unreachable { .. }
            | Self::Busy { .. }
            | Self::KeyRejected { .. }
            | Self::OutOfCredit { .. }
            | Self::ContextTooLong { .. }
            | Self::Refused { .. }
            | Self::AskTooLarge { .. } => false,
        }
    }

    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// What the person in the chat may read.
    pub fn for_chat(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } | Self::Cut { .. } | Self::Silent { .. } => {
                "The model cannot be reached at the moment. Please try again later."
            }
            Self::Busy { .. } => "The model is overloaded at the moment. Please try again later.",
            Self::KeyRejected { .. } => {
                "The model did not accept this gateway's key. The operator has to look at it."
            }
            Self::OutOfCredit { .. } => {
                "This gateway's account with the model's provider is out of credit. The operator has to look at it."
            }
            Self::ContextTooLong { .. } | Self::AskTooLarge { .. } => {
                "This conversation has become too long for the model. /new starts a fresh one."
            }
            Self::Refused { .. } => "The model refused this request.",
            Self::Unreadable { .. } | Self::TooLarge { .. } => {
                "The model answered with something that could not be read."
            }
            Self::Stopped => "Interrupted.",
        }
    }
}

impl TokenUsage {
    /// Both together. A cost is unknown as soon as one of two is that was not for nothing.
    pub fn add(&mut self, other: Self) {
        let sum = |one: u64, two: u64| one.saturating_add(two);
        *self = Self {
            cost: match (self.cost, other.cost) {
                (Some(one), Some(two)) => Some(one.plus(two)),
                (one, None) if other.is_nothing() => one,
                (None, two) if self.is_nothing() => two,
                _ => None,
            },
            input_tokens: sum(self.input_tokens, other.input_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
            cached_tokens: sum(self.cached_tokens, other.cached_tokens),
            cache_write_tokens: sum(self.cache_write_tokens, other.cache_write_tokens),
            reasoning_tokens: sum(self.reasoning_tokens, other.reasoning_tokens),
        };
    }

    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    fn is_nothing(&self) -> bool {
        self.tokens() == 0
    }
}
