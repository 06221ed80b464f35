//! The seam to whoever counts what a turn spends.

use std::io;
use std::time::Duration;

use futures::future::{self, BoxFuture, FutureExt};
use serde_json::Value;
use thiserror::Error;

use crate::{Message, ModelRequest, NanoDollars, TokenPrice, TokenUsage};

/// Asked before anything is spent, and told afterwards what it was.
///
/// What an implementer promises: what it lets through is counted before it returns, so that many turns
/// at once overrun a bound by no more than what is under way; and a doubt is a refusal.
pub trait SpendingMeter: Send + Sync {
    /// Sets `estimate` aside for one request to the model.
    fn before_request(
        &self,
        estimate: RequestEstimate,
    ) -> BoxFuture<'_, Result<(), SpendingRefused>>;

    /// Sets more aside for the request that was let through: it turns out to be so many more, of so many tokens
    /// more. For those that ask their model by themselves and are seen from outside.
    fn request_grew(
        &self,
        _requests: u64,
        _tokens: u64,
    ) -> BoxFuture<'_, Result<(), SpendingRefused>> {
        future::ready(Ok(())).boxed()
    }

    /// Which model answered the request that is about to be told of: the one that was asked, or one that it
    /// gave way to.
    fn answered_by(&self, _model: &str) {}

    /// What the request came to. Called once for each that was let through.
    fn after_request(&self, estimate: RequestEstimate, spent: SpentTokens) -> BoxFuture<'_, ()>;

    /// Asked before a tool runs.
    fn before_tool(&self) -> BoxFuture<'_, Result<(), SpendingRefused>>;

    fn after_tool(&self, took: Duration) -> BoxFuture<'_, ()>;
}

/// What a request is thought to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestEstimate {
    pub tokens: u64,
    /// Unknown where the model's price is.
    pub cost: Option<NanoDollars>,
}

/// What a request took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpentTokens {
    /// It failed before the provider worked on it.
    Nothing,
    /// What the provider said that a finished answer took; of one that did not finish, or has no figures,
    /// no less than what was estimated and what was seen of it.
    Counted(TokenUsage),
}

/// Why nothing may be spent, in words for the person who asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{words}")]
pub struct SpendingRefused {
    pub words: String,
}

/// Counts nothing and refuses nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMeter;

/// What an answer is thought to be long. Most are shorter; what is longer is settled afterwards.
const USUAL_ANSWER: u64 = 1000;

/// Bytes of text in a token, as [`HistoryBudget`](crate::HistoryBudget) counts too.
const BYTES_IN_A_TOKEN: usize = 3;

impl RequestEstimate {
    pub(crate) fn of(ask: ModelRequest<'_>, price: Option<TokenPrice>) -> Self {
        let usage = usage_of(ask, price);
        Self {
            tokens: usage.tokens(),
            cost: usage.cost,
        }
    }
}

/// What a request is thought to take, by its kinds.
pub(crate) fn usage_of(ask: ModelRequest<'_>, price: Option<TokenPrice>) -> TokenUsage {
    let said: usize = ask.messages.iter().map(Message::size).sum();
    let offered = ask
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + length(&tool.schema));
    let bytes = said + offered.sum::<usize>();
    let usage = TokenUsage {
        input_tokens: tokens_in(bytes),
        output_tokens: USUAL_ANSWER,
        ..TokenUsage::default()
    };
    TokenUsage {
        cost: price.map(|price| price.of(usage)),
        ..usage
    }
}

/// The bytes of a schema as it is sent, without making the text: each request asks for it.
fn length(schema: &Value) -> usize {
    let mut counted = CountedBytes(0);
    // Nothing in a value can fail to be written.
    let _ = serde_json::to_writer(&mut counted, schema);
    counted.0
}

struct CountedBytes(usize);

impl io::Write for CountedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The tokens that so many bytes of text are thought to be.
pub(crate) fn tokens_in(bytes: usize) -> u64 {
    (bytes / BYTES_IN_A_TOKEN) as u64
}

impl SpendingMeter for NoMeter {
    fn before_request(&self, _: RequestEstimate) -> BoxFuture<'_, Result<(), SpendingRefused>> {
        future::ready(Ok(())).boxed()
    }

    fn after_request(&self, _: RequestEstimate, _: SpentTokens) -> BoxFuture<'_, ()> {
        future::ready(()).boxed()
    }

    fn before_tool(&self) -> BoxFuture<'_, Result<(), SpendingRefused>> {
        future::ready(Ok(())).boxed()
    }

    fn after_tool(&self, _: Duration) -> BoxFuture<'_, ()> {
        future::ready(()).boxed()
    }
}
