//! Asking a person about a host no rule speaks of, while the connection waits.
//!
//! All connections that wait for the same host and port share one question. What a person allowed for
//! longer than once is kept by whoever asks them, and asked for again: by every new connection, and by
//! those that stand, so that a permission ends for all of them when it ends.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use hermetic_types::ConversationKey;
use tokio::time::{Instant, timeout};

use crate::rules::Authority;

/// Decides about hosts that no rule speaks of, usually by asking a person.
///
/// An implementer promises that silence is [`HostAnswer::Deny`] and that dropping the future withdraws the
/// question.
pub trait HostApprover: Send + Sync {
    fn ask(&self, question: HostQuestion) -> BoxFuture<'static, HostAnswer>;

    /// Whether an [`HostAnswer::Kept`] still counts. Doubt is no.
    fn still_holds(&self, question: HostQuestion) -> BoxFuture<'static, bool>;
}

/// The question whether a conversation may reach a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostQuestion {
    pub conversation: ConversationKey,
    pub target: Authority,
}

/// What the approver decided about one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostAnswer {
    /// The connections that wait now, for as long as they stand.
    Once,
    /// For as long as [`HostApprover::still_holds`] says so.
    Kept,
    Deny,
}

/// The way in which a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionOutcome {
    Granted(GrantLifetime),
    Denied,
    NoAnswer,
    TooManyQuestions,
}

/// The time for which a person's yes counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantLifetime {
    ForThisConnection,
    WhileItHolds,
}

/// The questions of one conversation that wait for an answer, and the refusals it got.
#[derive(Clone, Default)]
pub(crate) struct OpenQuestions(Arc<Mutex<HashMap<Authority, QuestionState>>>);

/// A question that waits, or a refusal that is remembered.
#[derive(Clone)]
enum QuestionState {
    /// Weak: a question that nobody waits for any more is withdrawn.
    Asking(WeakShared<BoxFuture<'static, QuestionOutcome>>),
    Denied(Instant),
}

/// Questions that may wait at a time: a sandbox cannot flood the people it depends on.
const MOST_QUESTIONS: usize = 8;
/// How long a no is remembered before the question may come up again.
const DENIAL_MEMORY: Duration = Duration::from_secs(600);
/// Waiting questions and remembered refusals together: a bound on the memory of one conversation.
const MOST_STANDING: usize = 4096;

impl OpenQuestions {
    pub(crate) async fn ask(
        &self,
        asker: &Arc<dyn HostApprover>,
        question: HostQuestion,
        wait: Duration,
    ) -> QuestionOutcome {
        let asking = match self.standing(asker, question, wait) {
            Ok(asked) => return asked,
            // The lock is gone by now: a question waits for minutes, and others ask meanwhile.
            Err(asking) => asking,
        };
        asking.await
    }

    fn standing(
        &self,
        asker: &Arc<dyn HostApprover>,
        question: HostQuestion,
        wait: Duration,
    ) -> Result<QuestionOutcome, Shared<BoxFuture<'static, QuestionOutcome>>> {
        let now = Instant::now();
        let mut standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match standing.get(&question.target) {
            Some(QuestionState::Denied(until)) if now < *until => {
                return Ok(QuestionOutcome::Denied);
            }
            Some(QuestionState::Asking(asking)) => {
                if let Some(asking) = asking.upgrade() {
                    return Err(asking);
                }
            }
            Some(QuestionState::Denied(_)) | None => {}
        }
        // Only when something is added: the count below is right then, and the map is bounded
        // either way.
        standing.retain(|_, standing| standing.counts(now));
        let open = standing
            .values()
            .filter(|s| matches!(s, QuestionState::Asking(_)))
            .count();
        if open >= MOST_QUESTIONS || standing.len() >= MOST_STANDING {
            return Ok(QuestionOutcome::TooManyQuestions);
        }
        let target = question.target.clone();
        let asking = self
            .clone()
            .put(Arc::clone(asker), question, wait)
            .boxed()
            // Whoever came first may leave; those who share the question go on polling it.
            .shared();
        if let Some(weak) = asking.downgrade() {
            standing.insert(target, QuestionState::Asking(weak));
        }
        Err(asking)
    }

    async fn put(
        self,
        asker: Arc<dyn HostApprover>,
        question: HostQuestion,
        wait: Duration,
    ) -> QuestionOutcome {
        let target = question.target.clone();
        let answer = timeout(wait, asker.ask(question)).await;
        let now = Instant::now();
        let (asked, next) = match answer {
            Ok(HostAnswer::Once) => (
                QuestionOutcome::Granted(GrantLifetime::ForThisConnection),
                None,
            ),
            Ok(HostAnswer::Kept) => (QuestionOutcome::Granted(GrantLifetime::WhileItHolds), None),
            Ok(HostAnswer::Deny) => (
                QuestionOutcome::Denied,
                Some(QuestionState::Denied(now + DENIAL_MEMORY)),
            ),
            Err(_) => (QuestionOutcome::NoAnswer, None),
        };
        // Put in the place of the question itself, under one lock: a connection that comes now
        // finds the refusal and does not ask again.
        let mut standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match next {
            Some(next) => standing.insert(target, next),
            None => standing.remove(&target),
        };
        asked
    }
}

impl QuestionState {
    fn counts(&self, now: Instant) -> bool {
        match self {
            Self::Asking(asking) => asking.upgrade().is_some(),
            Self::Denied(until) => now < *until,
        }
    }
}

impl fmt::Debug for OpenQuestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("OpenQuestions")
            .field("standing", &standing.len())
            .finish()
    }
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
