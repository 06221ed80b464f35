//! What is counted about sandboxes.
//!
//! Whoever builds [`crate::Sandboxes`] hands over the place to count in; one that is registered nowhere
//! counts for nobody.

use std::time::Duration;

use hermetic_types::BackendKind;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// A native sandbox is there within milliseconds, one at a provider within many seconds.
const CREATE_SECONDS_BUCKETS: [f64; 10] =
    [0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0];

#[derive(Clone, Debug)]
pub struct SandboxMetrics {
    created: Family<BackendLabel, Counter>,
    failed: Family<BackendLabel, Counter>,
    destroyed: Family<BackendLabel, Counter>,
    create_seconds: Family<BackendLabel, Histogram>,
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
            create_seconds: Family::new_with_constructor(|| Histogram::new(CREATE_SECONDS_BUCKETS)),
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
        registry.register_with_unit(
            "sandbox_create",
            "Time from the order to the first answer from inside",
            Unit::Seconds,
            metrics.create_seconds.clone(),
        );
        metrics
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
