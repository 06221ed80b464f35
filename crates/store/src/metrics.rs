//! How long the store takes.
//!
//! Whoever opens a [`Store`](crate::Store) hands over the place to count in; one that is registered nowhere
//! counts for nobody.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// A read takes a fraction of a millisecond, a commit as long as the disk does.
const STORE_SECONDS_BUCKETS: [f64; 10] = [
    0.0001, 0.00025, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5,
];

/// Counts reads and commits for `/metrics`. Clones share the counts.
#[derive(Clone, Debug)]
pub struct StoreMetrics {
    seconds: Family<OperationLabel, Histogram>,
    failures: Family<OperationLabel, Counter>,
}

/// What was asked of the store, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreOperation {
    Read,
    /// From handing it in to the commit, with the wait for others.
    Write,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabel {
    operation: &'static str,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        Self {
            seconds: Family::new_with_constructor(|| Histogram::new(STORE_SECONDS_BUCKETS)),
            failures: Family::default(),
        }
    }
}

impl StoreMetrics {
    pub fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register_with_unit(
            "store",
            "Time that reads and commits of the store took",
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        registry.register(
            "store_failures",
            "Reads and commits of the store that failed",
            metrics.failures.clone(),
        );
        // There from the first look, so that a rate is known after the second.
        for operation in [StoreOperation::Read, StoreOperation::Write] {
            let label = operation.label();
            drop(metrics.seconds.get_or_create(&label));
            drop(metrics.failures.get_or_create(&label));
        }
        metrics
    }

    pub(crate) fn took(&self, operation: StoreOperation, took: Duration, failed: bool) {
        let label = operation.label();
        let seconds = self.seconds.get_or_create(&label);
        seconds.observe(took.as_secs_f64());
        if failed {
            self.failures.get_or_create(&label).inc();
        }
    }
}

impl StoreOperation {
    fn label(self) -> OperationLabel {
        OperationLabel {
            operation: match self {
                Self::Read => "read",
                Self::Write => "write",
            },
        }
    }
}
