//! What is counted about questions to people.

use std::time::Duration;

use hermetic_store::{ApprovalRequest, RequestState, StoredSubject};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// People answer within seconds, or after lunch.
const WAIT_SECONDS_BUCKETS: [f64; 9] =
    [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0];

/// Counts questions and how long they waited. Clones share the counts; one that is registered nowhere counts
/// for nobody.
#[derive(Clone, Debug)]
pub struct ApprovalMetrics {
    settled: Family<SettledLabels, Counter>,
    wait_seconds: Histogram,
    waiting: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SettledLabels {
    subject: &'static str,
    outcome: &'static str,
}

impl Default for ApprovalMetrics {
    fn default() -> Self {
        Self {
            settled: Family::default(),
            wait_seconds: Histogram::new(WAIT_SECONDS_BUCKETS),
            waiting: Gauge::default(),
        }
    }
}

impl ApprovalMetrics {
    pub fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "approvals",
            "Questions to people that came to an end",
            metrics.settled.clone(),
        );
        registry.register_with_unit(
            "approval_wait",
            "Time from a question to its end",
            Unit::Seconds,
            metrics.wait_seconds.clone(),
        );
        registry.register(
            "approvals_waiting",
            "Questions that somebody in this process waits for",
            metrics.waiting.clone(),
        );
        // There from the first look, so that a rate is known after the second.
        for subject in [
            StoredSubject::Command,
            StoredSubject::Host,
            StoredSubject::Agent,
        ] {
            for outcome in ["approved", "denied", "expired", "withdrawn"] {
                let subject = subject.name();
                let labels = SettledLabels { subject, outcome };
                drop(metrics.settled.get_or_create(&labels));
            }
        }
        metrics
    }

    /// A question came to its end.
    pub(crate) fn settled(&self, request: &ApprovalRequest, state: RequestState, waited: Duration) {
        let outcome = match state {
            // It goes on, and its end is counted.
            RequestState::Pending => return,
            RequestState::Approved => "approved",
            RequestState::Denied => "denied",
            RequestState::Expired => "expired",
            RequestState::Withdrawn => "withdrawn",
        };
        let subject = request.subject.name();
        let labels = SettledLabels { subject, outcome };
        self.settled.get_or_create(&labels).inc();
        self.wait_seconds.observe(waited.as_secs_f64());
    }

    pub(crate) fn waiting(&self, many: usize) {
        self.waiting.set(i64::try_from(many).unwrap_or(i64::MAX));
    }
}
