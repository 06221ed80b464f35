//! The meter of one message's turn.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::{NanoDollars, RequestEstimate, SpendingMeter, SpendingRefused, SpentTokens};
use hermetic_approvals::ApprovalWaits;
use hermetic_store::{MessageRow, SpendingAmounts, SpendingScope};
use tokio::time::Instant;

use super::book::{NotReserved, SpendingBook, difference, sum};
use super::limits::AskedFor;
use crate::run::{MessageStage, SpanNote};
use crate::{GatewayMetrics, MessageTraces};

/// Counts what one turn spends, for whoever asked, for the conversation and for all.
#[derive(Debug)]
pub(crate) struct TurnMeter<'a> {
    book: &'a SpendingBook,
    scopes: [SpendingScope; 3],
    /// A turn makes one request at a time.
    at_hand: Mutex<AtHand>,
    /// The day for which the tool at work is counted. Apart from the request: a tool may make some, and each
    /// that ends takes what is at hand with it.
    tool_date: Mutex<String>,
    /// While people were asked, no tool ran.
    waits: ApprovalWaits,
    metrics: Option<&'a GatewayMetrics>,
    /// The message's trace, by its row.
    traces: Option<(&'a MessageTraces, MessageRow)>,
}

#[derive(Clone, Debug, Default)]
struct AtHand {
    /// The day for which the request is counted.
    date: String,
    /// What is in the book of it already.
    reserved: SpendingAmounts,
    /// Time of tools that is not in the book yet. Where nothing bounds it, it goes there with the next
    /// request.
    tool_ms: i64,
    /// Requests of somebody else's agent that were seen on their way.
    seen_requests: i64,
    /// Since when the model is asked.
    asked: Option<Instant>,
    /// The model that answers; unknown until it has.
    model: String,
}

/// Tokens or nanodollars of one request. No provider means more, and thousands of such fit into a sum.
const MOST_OF_ONE: i64 = 1_000_000_000_000_000;

const PRICE_UNKNOWN: &str = "The model was not asked: there is a budget in dollars, and what this model costs is \
     not known. The operator can write its price into models.txt (`hermetic models --table` shows how).";
const NOT_WRITTEN: &str = "The model was not asked: there is a budget, and what is spent cannot be written down at \
     the moment. Please try again later.";

impl<'a> TurnMeter<'a> {
    pub(crate) fn new(book: &'a SpendingBook, person: String, conversation: String) -> Self {
        Self {
            book,
            scopes: [
                SpendingScope::Person(person),
                SpendingScope::Conversation(conversation),
                SpendingScope::All,
            ],
            at_hand: Mutex::default(),
            tool_date: Mutex::default(),
            waits: ApprovalWaits::default(),
            metrics: None,
            traces: None,
        }
    }

    #[cfg(test)]
    pub(super) fn scopes(&self) -> [SpendingScope; 3] {
        self.scopes.clone()
    }

    /// The same, which does not count as tool time how long people were waited for.
    pub(crate) fn without(mut self, waits: ApprovalWaits) -> Self {
        self.waits = waits;
        self
    }

    /// The same, which counts here what it sees.
    pub(crate) fn counting_in(mut self, metrics: &'a GatewayMetrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// The same, which tells the trace of this message about requests to the model.
    pub(crate) fn traced_in(mut self, traces: &'a MessageTraces, row: MessageRow) -> Self {
        self.traces = Some((traces, row));
        self
    }

    fn trace(&self, at_hand: &AtHand, spent: SpentTokens) {
        let (Some((traces, row)), Some(asked)) = (self.traces, at_hand.asked) else {
            return;
        };
        traces.in_turn(row, || {
            let span = SpanNote::since(MessageStage::Model.name(), asked)
                .text("gen_ai.request.model", &at_hand.model);
            match spent {
                SpentTokens::Nothing => span.failed(true),
                SpentTokens::Counted(usage) => span
                    .number("gen_ai.usage.input_tokens", usage.input_tokens)
                    .number("gen_ai.usage.output_tokens", usage.output_tokens),
            }
        });
    }

    /// Sets aside what is asked for, and says for which day.
    async fn reserve(&self, asked: AskedFor) -> Result<String, SpendingRefused> {
        let date = match self.book.bounds_anything() {
            true => self.book.reserve(&self.scopes, asked).await,
            false => Ok(self.book.date().await),
        };
        date.map_err(|why| SpendingRefused { words: words(why) })
    }

    /// Writes down what is not in the book yet, where no request follows.
    pub(crate) async fn close(&self) {
        let tool_ms = std::mem::take(&mut self.at_hand().tool_ms);
        if tool_ms > 0 {
            let change = SpendingAmounts {
                tool_ms,
                ..SpendingAmounts::default()
            };
            let date = self.book.date().await;
            self.book.settle(&date, &self.scopes, change).await;
        }
    }

    fn at_hand(&self) -> MutexGuard<'_, AtHand> {
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tool_date(&self) -> MutexGuard<'_, String> {
        self.tool_date
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpendingMeter for TurnMeter<'_> {
    fn before_request(
        &self,
        estimate: RequestEstimate,
    ) -> BoxFuture<'_, Result<(), SpendingRefused>> {
        async move {
            // Refused, not let through: a model whose price nobody knows would pass any budget in
            // dollars.
            if estimate.cost.is_none() && self.book.bounds_money() {
                let words = PRICE_UNKNOWN.to_owned();
                return Err(SpendingRefused { words });
            }
            let estimate = estimated(estimate);
            let date = self.reserve(AskedFor::Request(estimate)).await?;
            let mut at_hand = self.at_hand();
            at_hand.date = date;
            at_hand.reserved = match self.book.bounds_anything() {
                true => estimate,
                false => SpendingAmounts::default(),
            };
            at_hand.asked = Some(Instant::now());
            Ok(())
        }
        .boxed()
    }

    fn request_grew(
        &self,
        requests: u64,
        tokens: u64,
    ) -> BoxFuture<'_, Result<(), SpendingRefused>> {
        async move {
            self.at_hand().seen_requests += i64::try_from(requests).unwrap_or(MOST_OF_ONE);
            if !self.book.bounds_anything() {
                return Ok(());
            }
            let more = SpendingAmounts {
                requests: 0,
                ..amounts(tokens, None)
            };
            let reserved = self
                .book
                .reserve(&self.scopes, AskedFor::Request(more))
                .await;
            reserved.map_err(|why| SpendingRefused { words: words(why) })?;
            let mut at_hand = self.at_hand();
            at_hand.reserved = sum(at_hand.reserved, more);
            Ok(())
        }
        .boxed()
    }

    fn answered_by(&self, model: &str) {
        model.clone_into(&mut self.at_hand().model);
    }

    fn after_request(&self, _: RequestEstimate, spent: SpentTokens) -> BoxFuture<'_, ()> {
        async move {
            let mut took = match spent {
                SpentTokens::Nothing => SpendingAmounts {
                    requests: 1,
                    ..SpendingAmounts::default()
                },
                SpentTokens::Counted(usage) => amounts(usage.tokens(), usage.cost),
            };
            let at_hand = std::mem::take(&mut *self.at_hand());
            took.requests = took.requests.max(at_hand.seen_requests);
            if let Some(metrics) = self.metrics {
                let waited = at_hand.asked.map(|asked| asked.elapsed());
                metrics.stage_ended(MessageStage::Model, waited.unwrap_or_default());
                metrics.requested(&at_hand.model, spent);
            }
            self.trace(&at_hand, spent);
            let of_model = (SpendingScope::Model(at_hand.model), took);
            took.tool_ms = at_hand.tool_ms;
            // For the day on which it was reserved: settled on the next one, midnight would give
            // back what that day never took.
            let change = difference(took, at_hand.reserved);
            self.book
                .settle_request(&at_hand.date, &self.scopes, change, of_model)
                .await;
        }
        .boxed()
    }

    fn before_tool(&self) -> BoxFuture<'_, Result<(), SpendingRefused>> {
        async move {
            if !self.book.bounds_tools() {
                return Ok(());
            }
            let date = self.reserve(AskedFor::Tool).await?;
            *self.tool_date() = date;
            Ok(())
        }
        .boxed()
    }

    fn after_tool(&self, took: Duration) -> BoxFuture<'_, ()> {
        async move {
            let took = took.saturating_sub(self.waits.take());
            if let Some(metrics) = self.metrics {
                metrics.stage_ended(MessageStage::Tool, took);
            }
            let tool_ms = i64::try_from(took.as_millis()).unwrap_or(MOST_OF_ONE);
            if !self.book.bounds_tools() {
                self.at_hand().tool_ms += tool_ms;
                return;
            }
            let date = self.tool_date().clone();
            let change = SpendingAmounts {
                tool_ms,
                ..SpendingAmounts::default()
            };
            self.book.settle(&date, &self.scopes, change).await;
        }
        .boxed()
    }
}

fn estimated(estimate: RequestEstimate) -> SpendingAmounts {
    amounts(estimate.tokens, estimate.cost)
}

fn amounts(tokens: u64, cost: Option<NanoDollars>) -> SpendingAmounts {
    let bounded = |amount: u64| {
        i64::try_from(amount)
            .unwrap_or(MOST_OF_ONE)
            .min(MOST_OF_ONE)
    };
    let tokens = bounded(tokens);
    SpendingAmounts {
        requests: 1,
        tokens,
        nanodollars: cost.map_or(0, |cost| bounded(cost.get())),
        unpriced: if cost.is_none() { tokens } else { 0 },
        tool_ms: 0,
    }
}

pub(super) fn words(why: NotReserved) -> String {
    let (scope, reached) = match why {
        NotReserved::Reached { scope, reached } => (scope, reached),
        NotReserved::Store(error) => {
            tracing::error!(%error, "a budget could not be read or written, so nothing is spent");
            return NOT_WRITTEN.to_owned();
        }
    };
    let whose = match &scope {
        SpendingScope::Person(_) => "your budget",
        SpendingScope::Conversation(_) => "the budget of this conversation",
        SpendingScope::Model(_) | SpendingScope::All => "the budget of everybody here",
    };
    let command = lift_command(&scope);
    format!(
        "I stop here: {whose} for today is reached ({} of {}). It begins anew at midnight. Somebody who may \
         approve can lift it once for today: {command}",
        reached.used, reached.limit
    )
}

/// What an approver writes to lift a budget.
pub(super) fn lift_command(scope: &SpendingScope) -> String {
    match scope {
        SpendingScope::Person(name) => format!("/lift person {name}"),
        SpendingScope::Conversation(name) => format!("/lift conversation {name}"),
        SpendingScope::Model(_) | SpendingScope::All => "/lift all".to_owned(),
    }
}
