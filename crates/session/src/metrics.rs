//! What is counted about sandboxes.
//!
//! Whoever builds [`crate::Sandboxes`] hands over the place to count in; one that is registered nowhere
//! counts for nobody.

use std::time::Duration;

use hermetic_store::{LedgerEntry, LedgerState};
use hermetic_types::{BackendKind, SandboxId};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::census::SandboxCensus;

/// A native sandbox is there within milliseconds, one at a provider within many seconds.
const CREATE_SECONDS_BUCKETS: [f64; 10] =
    [0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0];

#[derive(Clone, Debug)]
pub struct SandboxMetrics {
    created: Family<BackendLabel, Counter>,
    failed: Family<BackendLabel, Counter>,
    destroyed: Family<BackendLabel, Counter>,
    reaped: Family<BackendLabel, Counter>,
    end_failures: Family<BackendLabel, Counter>,
    create_seconds: Family<BackendLabel, Histogram>,
    census: SandboxCensus,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BackendLabel {
    backend: &'static str,
}

impl Default for SandboxMetrics {
    fn default() -> Self {
        Self {
            created: Family::default(),
            failed: Family::default(),
            destroyed: Family::default(),
            reaped: Family::default(),
            end_failures: Family::default(),
            create_seconds: Family::new_with_constructor(|| Histogram::new(CREATE_SECONDS_BUCKETS)),
            census: SandboxCensus::default(),
        }
    }
}

impl SandboxMetrics {
    pub fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "sandboxes_created",
            "Sandboxes that were made and answered",
            metrics.created.clone(),
        );
        registry.register(
            "sandboxes_failed",
            "Sandboxes that could not be made",
            metrics.failed.clone(),
        );
        registry.register(
            "sandboxes_destroyed",
            "Sandboxes that were seen to be gone",
            metrics.destroyed.clone(),
        );
        registry.register(
            "sandboxes_reaped",
            "Idle sandboxes that were let go: stopped, or destroyed where no files are kept",
            metrics.reaped.clone(),
        );
        registry.register(
            "sandbox_end_failures",
            "Attempts to stop or destroy a sandbox that failed and are tried again",
            metrics.end_failures.clone(),
        );
        registry.register_collector(Box::new(metrics.census.clone()));
        registry.register_with_unit(
            "sandbox_create",
            "Time from the order to the first answer from inside",
            Unit::Seconds,
            metrics.create_seconds.clone(),
        );
        metrics
    }

    /// Sandboxes will come from there. What is counted is there from the first look on, so that a rate is known
    /// after the second.
    pub(crate) fn expect(&self, backend: BackendKind) {
        let label = BackendLabel::of(backend);
        for counter in [
            &self.created,
            &self.failed,
            &self.destroyed,
            &self.reaped,
            &self.end_failures,
        ] {
            drop(counter.get_or_create(&label));
        }
        drop(self.create_seconds.get_or_create(&label));
        self.census.expect(backend);
    }

    pub(crate) fn created(&self, backend: BackendKind, took: Duration) {
        let label = BackendLabel::of(backend);
        self.created.get_or_create(&label).inc();
        let seconds = self.create_seconds.get_or_create(&label);
        seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn failed(&self, backend: BackendKind) {
        self.failed.get_or_create(&BackendLabel::of(backend)).inc();
    }

    pub(crate) fn reaped(&self, backend: BackendKind) {
        self.reaped.get_or_create(&BackendLabel::of(backend)).inc();
    }

    pub(crate) fn end_failed(&self, backend: BackendKind) {
        self.end_failures
            .get_or_create(&BackendLabel::of(backend))
            .inc();
    }

    /// A row of the ledger says so now.
    pub(crate) fn stands(&self, id: &SandboxId, backend: BackendKind, state: LedgerState) {
        self.census.note(id, backend, state);
    }

    /// A row of the ledger is gone.
    pub(crate) fn gone(&self, id: &SandboxId) {
        self.census.strike(id);
    }

    /// These are the rows of the ledger.
    pub(crate) fn counted_anew(&self, entries: &[LedgerEntry]) {
        self.census.replace(entries);
    }

    pub(crate) fn destroyed(&self, backend: BackendKind) {
        self.destroyed
            .get_or_create(&BackendLabel::of(backend))
            .inc();
    }
}

impl BackendLabel {
    fn of(backend: BackendKind) -> Self {
        Self {
            backend: backend.name(),
        }
    }
}
