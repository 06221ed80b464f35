//! How often Discord may be asked.
//!
//! Discord counts requests in buckets, which it names in its answers, and all of them together. Whoever
//! asks takes a place first; what a bucket has left is known from its last answer. Answers to interactions
//! have their buckets alone. Refused requests are
//! counted too, because ten thousand of them in ten minutes close Discord to our whole address.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use tokio::time::Instant;

use crate::route::RouteKey;

/// Requests of one second, over all buckets; Discord allows 50.
const MOST_IN_A_SECOND: u32 = 45;
/// Refused requests within [`REFUSALS_COUNTED`]; a tenth of what Discord bears.
const MOST_REFUSALS: u32 = 1000;
const REFUSALS_COUNTED: Duration = Duration::from_secs(600);
/// Nobody waits longer because an answer says so.
const LONGEST_RATE_WAIT: Duration = Duration::from_secs(3600);
/// Buckets that are over are forgotten once there are so many.
const MOST_BUCKETS: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct RateLimits(Mutex<LimitCounts>);

#[derive(Debug, Default)]
struct LimitCounts {
    /// Everybody waits until then.
    held_until: Option<Instant>,
    this_second: Option<CountWindow>,
    refusals: Option<CountWindow>,
    /// The bucket of a route, as Discord names it.
    names: HashMap<RouteKey, String>,
    buckets: HashMap<BucketKey, RateBucket>,
}

/// A bucket's name, and the channel or webhook that it is counted for.
type BucketKey = (String, String);

#[derive(Debug)]
struct RateBucket {
    limit: u32,
    left: u32,
    resets: Instant,
}

#[derive(Debug)]
struct CountWindow {
    ends: Instant,
    count: u32,
}

/// What a 429 says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TooMany {
    pub(crate) retry_after: Duration,
    /// Meant for every request, not for this bucket alone.
    pub(crate) global: bool,
}

impl RateLimits {
    /// Takes a place for one request, or says how long there is none.
    pub(crate) fn take(&self, route: &RouteKey) -> Result<(), Duration> {
        let now = Instant::now();
        let mut counts = self.lock();
        let bucket = counts.bucket_key(route);
        let counts = &mut *counts;
        let second = running(&mut counts.this_second, now, Duration::from_secs(1));
        let refusals = running(&mut counts.refusals, now, REFUSALS_COUNTED);
        let is_shared = !route.answers_interaction();
        let waits = [
            counts.held_until,
            (second.count >= MOST_IN_A_SECOND).then_some(second.ends),
            (refusals.count >= MOST_REFUSALS).then_some(refusals.ends),
        ];
        // Somebody waits three seconds for an answer to an interaction, and only its own bucket binds it.
        let waits = waits.map(|wait| wait.filter(|_| is_shared));
        let mut bucket = counts.buckets.get_mut(&bucket);
        if let Some(bucket) = bucket.as_mut().filter(|bucket| bucket.resets <= now) {
            bucket.left = bucket.limit;
            // The next answer tells the true time.
            bucket.resets = now + Duration::from_secs(1);
        }
        let full = bucket.as_ref().filter(|bucket| bucket.left == 0);
        let until = waits.into_iter().flatten();
        let until = until.chain(full.map(|bucket| bucket.resets)).max();
        match until.map(|until| until.saturating_duration_since(now)) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => {
                second.count += u32::from(is_shared);
                if let Some(bucket) = bucket {
                    // Counted when it is asked and not when it is answered: ten that ask at once
                    // must not all find the last place.
                    bucket.left = bucket.left.saturating_sub(1);
                }
                Ok(())
            }
        }
    }

    /// Learns from an answer.
    pub(crate) fn note(
        &self,
        route: &RouteKey,
        status: StatusCode,
        headers: &HeaderMap,
        too_many: Option<TooMany>,
    ) {
        let now = Instant::now();
        let mut counts = self.lock();
        if matches!(status.as_u16(), 401 | 403 | 429) {
            running(&mut counts.refusals, now, REFUSALS_COUNTED).count += 1;
        }
        if let Some(name) = text(headers, "x-ratelimit-bucket") {
            // Several routes may share one bucket, which only the answer tells.
            counts.names.insert(route.clone(), name.to_owned());
        }
        let key = counts.bucket_key(route);
        counts.forget_what_is_over(now);
        match too_many {
            Some(TooMany {
                retry_after,
                global: true,
            }) => counts.held_until = counts.held_until.max(Some(now + bounded(retry_after))),
            Some(TooMany { retry_after, .. }) => {
                let bucket = RateBucket {
                    limit: number(headers, "x-ratelimit-limit").unwrap_or(1).max(1),
                    left: 0,
                    resets: now + bounded(retry_after),
                };
                counts.buckets.insert(key, bucket);
            }
            None => {
                let left = number(headers, "x-ratelimit-remaining");
                let after = text(headers, "x-ratelimit-reset-after").and_then(seconds);
                if let (Some(left), Some(after)) = (left, after) {
                    let bucket = RateBucket {
                        limit: number(headers, "x-ratelimit-limit").unwrap_or(1).max(1),
                        left,
                        resets: now + bounded(after),
                    };
                    counts.buckets.insert(key, bucket);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, LimitCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LimitCounts {
    fn bucket_key(&self, route: &RouteKey) -> BucketKey {
        // Until its name is known, a route is a bucket of its own.
        let name = self.names.get(route).cloned();
        let name = name.unwrap_or_else(|| format!("{} {}", route.method, route.template));
        (name, route.major.clone())
    }

    fn forget_what_is_over(&mut self, now: Instant) {
        if self.buckets.len() >= MOST_BUCKETS {
            self.buckets.retain(|_, bucket| bucket.resets > now);
        }
        if self.names.len() >= MOST_BUCKETS {
            self.names.clear();
        }
    }
}

/// Seconds as Discord writes them, with a fraction.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn running(window: &mut Option<CountWindow>, now: Instant, length: Duration) -> &mut CountWindow {
    if window.as_ref().is_some_and(|window| window.ends <= now) {
        *window = None;
    }
    window.get_or_insert(CountWindow {
        ends: now + length,
        count: 0,
    })
}

fn bounded(wait: Duration) -> Duration {
    wait.min(LONGEST_RATE_WAIT)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn number(headers: &HeaderMap, name: &str) -> Option<u32> {
    text(headers, name)?.parse().ok()
}

#[cfg(test)]
#[path = "rate_limits_tests.rs"]
mod tests;
