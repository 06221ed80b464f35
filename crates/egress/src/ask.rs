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

/// Someone who can be asked.
///
/// An implementer promises that silence is [`Answer::Deny`] and that dropping the future withdraws the
/// question.
pub trait Asker: Send + Sync {
    fn ask(&self, question: Question) -> BoxFuture<'static, Answer>;

    /// Whether an [`Answer::Kept`] still counts. Doubt is no.
    fn still_holds(&self, question: Question) -> BoxFuture<'static, bool>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub conversation: ConversationKey,
    pub target: Authority,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The connections that wait now, for as long as they stand.
    Once,
    /// For as long as [`Asker::still_holds`] says so.
    Kept,
    Deny,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Granted(Word),
    Denied,
    NoAnswer,
    TooManyQuestions,
}

/// How long a person's yes counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    ForThisConnection,
    WhileItHolds,
}

/// The questions of one conversation, and the noes it got.
#[derive(Clone, Default)]
pub(crate) struct Questions(Arc<Mutex<HashMap<Authority, Standing>>>);

#[derive(Clone)]
enum Standing {
    /// Weak: a question that nobody waits for any more is withdrawn.
    Asking(WeakShared<BoxFuture<'static, Asked>>),
    Denied(Instant),
}

/// Questions that may wait at a time: a sandbox cannot flood the people it depends on.
const MOST_QUESTIONS: usize = 8;
/// How long a no is remembered before the question may come up again.
const DENIAL: Duration = Duration::from_secs(600);
const MOST_STANDING: usize = 4096;

impl Questions {
    pub(crate) async fn ask(
        &self,
        asker: &Arc<dyn Asker>,
        question: Question,
        wait: Duration,
    ) -> Asked {
        let asking = match self.standing(asker, question, wait) {
            Ok(asked) => return asked,
            Err(asking) => asking,
        };
        asking.await
    }

    fn standing(
        &self,
        asker: &Arc<dyn Asker>,
        question: Question,
        wait: Duration,
    ) -> Result<Asked, Shared<BoxFuture<'static, Asked>>> {
        let now = Instant::now();
        let mut standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match standing.get(&question.target) {
            Some(Standing::Denied(until)) if now < *until => return Ok(Asked::Denied),
            Some(Standing::Asking(asking)) => {
                if let Some(asking) = asking.upgrade() {
                    return Err(asking);
                }
            }
            Some(Standing::Denied(_)) | None => {}
        }
        standing.retain(|_, standing| standing.counts(now));
        let open = standing
            .values()
            .filter(|s| matches!(s, Standing::Asking(_)))
            .count();
        if open >= MOST_QUESTIONS || standing.len() >= MOST_STANDING {
            return Ok(Asked::TooManyQuestions);
        }
        let target = question.target.clone();
        let asking = self
            .clone()
            .put(Arc::clone(asker), question, wait)
            .boxed()
            .shared();
        if let Some(weak) = asking.downgrade() {
            standing.insert(target, Standing::Asking(weak));
        }
        Err(asking)
    }

    async fn put(self, asker: Arc<dyn Asker>, question: Question, wait: Duration) -> Asked {
        let target = question.target.clone();
        let answer = timeout(wait, asker.ask(question)).await;
        let now = Instant::now();
        let (asked, next) = match answer {
            Ok(Answer::Once) => (Asked::Granted(Word::ForThisConnection), None),
            Ok(Answer::Kept) => (Asked::Granted(Word::WhileItHolds), None),
            Ok(Answer::Deny) => (Asked::Denied, Some(Standing::Denied(now + DENIAL))),
            Err(_) => (Asked::NoAnswer, None),
        };
        let mut standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match next {
            Some(next) => standing.insert(target, next),
            None => standing.remove(&target),
        };
        asked
    }
}

impl Standing {
    fn counts(&self, now: Instant) -> bool {
        match self {
            Self::Asking(asking) => asking.upgrade().is_some(),
            Self::Denied(until) => now < *until,
        }
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Questions")
            .field("standing", &standing.len())
            .finish()
    }
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
