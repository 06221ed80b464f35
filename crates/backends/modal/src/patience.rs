//! Asking again: only what may be asked twice, only after errors that pass, longer each time.

use std::time::Duration;

use prost::Message;
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};

use crate::wire::{ErrorDetails, RetryPolicy};

/// How long one answer may take, and how long it is asked for at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTimeouts {
    pub(crate) answer: Duration,
    pub(crate) whole: Duration,
}

const FIRST_RETRY_WAIT: Duration = Duration::from_millis(100);
const LONGEST_RETRY_WAIT: Duration = Duration::from_secs(3);

impl CallTimeouts {
    /// For what the service knows by heart.
    pub(crate) const QUICK: Self = Self::of(15, 30);
    /// For what takes it a while.
    pub(crate) const LONG: Self = Self::of(60, 120);

    pub(crate) const fn of(answer: u64, whole: u64) -> Self {
        Self {
            answer: Duration::from_secs(answer),
            whole: Duration::from_secs(whole),
        }
    }
}

/// Counts the attempts at one thing.
#[derive(Debug)]
pub(crate) struct RetryAttempts {
    pub(crate) made: u32,
    renewals: u32,
    deadline: Instant,
    wait: Duration,
}

impl RetryAttempts {
    pub(crate) fn within(whole: Duration) -> Self {
        Self {
            made: 0,
            renewals: 0,
            deadline: Instant::now() + whole,
            wait: FIRST_RETRY_WAIT,
        }
    }

    /// A pass that ran out may be changed for a fresh one, and once more; who then still does not
    /// take it does not want us.
    pub(crate) fn renew(&mut self, status: Status) -> Result<(), Status> {
        self.renewals += 1;
        if self.renewals > 2 {
            Err(status)
        } else {
            Ok(())
        }
    }

    /// Waits until it is time for another; the error itself where there is none to be made.
    pub(crate) async fn after(&mut self, status: Status) -> Result<(), Status> {
        let wait = match asked_to_wait(&status) {
            // A service that says "at once" each time is not asked at full speed.
            Some(wait) => wait.max(FIRST_RETRY_WAIT),
            None if passes(&status) => self.wait,
            None => return Err(status),
        };
        // Not the other way round: a service may ask for more time than a clock can show.
        if wait > self.deadline.saturating_duration_since(Instant::now()) {
            return Err(status);
        }
        let (code, wait_ms) = (i32::from(status.code()), wait.as_millis());
        tracing::debug!(code, attempt = self.made, wait_ms, "asked again soon");
        sleep(wait).await;
        self.made += 1;
        self.wait = (self.wait * 2).min(LONGEST_RETRY_WAIT);
        Ok(())
    }
}

/// Whether another attempt may end differently.
pub(crate) fn passes(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::Internal
            | Code::Unknown
    )
}

/// A limit that passes comes with a time; one that does not, without.
fn asked_to_wait(status: &Status) -> Option<Duration> {
    let details = ErrorDetails::decode(status.details()).ok()?.details;
    let policy = details
        .into_iter()
        .find(|any| any.type_url.ends_with(RetryPolicy::TYPE))?;
    let seconds = RetryPolicy::decode(policy.value.as_slice()).ok()?;
    Duration::try_from_secs_f32(seconds.retry_after_secs.max(0.1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Any;

    #[tokio::test(start_paused = true)]
    async fn what_passes_is_asked_again_until_patience_ends() {
        let begun = Instant::now();
        let mut attempts = RetryAttempts::within(Duration::from_secs(30));
        while attempts.after(Status::unavailable("")).await.is_ok() {}
        assert!(attempts.made > 5, "{attempts:?}");
        assert!(begun.elapsed() <= Duration::from_secs(30));
    }

    fn throttled(seconds: f32) -> Status {
        let policy = RetryPolicy {
            retry_after_secs: seconds,
        };
        let details = ErrorDetails {
            details: vec![Any {
                type_url: format!("type.googleapis.com/{}", RetryPolicy::TYPE),
                value: policy.encode_to_vec(),
            }],
        };
        let details = details.encode_to_vec().into();
        Status::with_details(Code::ResourceExhausted, "", details)
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_asks_for_no_pause_is_not_asked_at_full_speed() {
        for seconds in [0.0, -1.0, f32::NAN, 1e-9] {
            let mut attempts = RetryAttempts::within(Duration::from_secs(30));
            while attempts.after(throttled(seconds)).await.is_ok() {
                assert!(attempts.made <= 300, "{seconds}: {attempts:?}");
            }
            assert!(attempts.made > 5, "{seconds}: {attempts:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_asks_for_all_time_there_is_gets_none() {
        for seconds in [1e19, f32::MAX, f32::INFINITY] {
            let mut attempts = RetryAttempts::within(Duration::from_secs(30));
            assert!(attempts.after(throttled(seconds)).await.is_err());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_pass_is_asked_once() {
        for status in [
            Status::unauthenticated(""),
            Status::resource_exhausted(""),
            Status::not_found(""),
            Status::invalid_argument(""),
        ] {
            let mut attempts = RetryAttempts::within(Duration::from_secs(30));
            assert!(attempts.after(status).await.is_err());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_when_is_asked_then() {
        let begun = Instant::now();
        let mut attempts = RetryAttempts::within(Duration::from_secs(10));
        attempts.after(throttled(7.0)).await.unwrap();
        assert_eq!(begun.elapsed(), Duration::from_secs(7));
        assert!(
            attempts.after(throttled(7.0)).await.is_err(),
            "no time is left"
        );
    }
}
