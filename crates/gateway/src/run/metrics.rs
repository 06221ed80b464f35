//! What is counted about messages and turns, and `GET /metrics` for Prometheus.
//!
//! Each part is handed its place to count when it is built; this page only shows what the registry
//! holds. Labels come from lists of ours, never from what somebody wrote: everything counted is kept for
//! the life of the process.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hermetic_types::Platform;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A slash command takes milliseconds, a turn with tools minutes.
const TURN_SECONDS_BUCKETS: [f64; 11] = [
    0.01, 0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0,
];

#[derive(Clone, Debug)]
pub struct GatewayMetrics {
    messages: Family<PlatformLabel, Counter>,
    turns: Family<OutcomeLabel, Counter>,
    turn_seconds: Histogram,
}

/// How a turn ended, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    Answered,
    Failed,
    /// It waits for a person, over a restart.
    Deferred,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PlatformLabel {
    platform: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

impl Default for GatewayMetrics {
    fn default() -> Self {
        Self {
            messages: Family::default(),
            turns: Family::default(),
            turn_seconds: Histogram::new(TURN_SECONDS_BUCKETS),
        }
    }
}

impl GatewayMetrics {
    pub fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "messages_accepted",
            "Messages that were let in and written down",
            metrics.messages.clone(),
        );
        registry.register("turns", "Turns that ended", metrics.turns.clone());
        registry.register_with_unit(
            "turn",
            "Time from the beginning of a turn to its end",
            Unit::Seconds,
            metrics.turn_seconds.clone(),
        );
        metrics
    }

    pub(crate) fn accepted(&self, platform: Platform) {
        let label = PlatformLabel {
            platform: platform.name(),
        };
        self.messages.get_or_create(&label).inc();
    }

    pub(crate) fn turn_ended(&self, end: TurnEnd, took: Duration) {
        let outcome = match end {
            TurnEnd::Answered => "answered",
            TurnEnd::Failed => "failed",
            TurnEnd::Deferred => "deferred",
        };
        self.turns.get_or_create(&OutcomeLabel { outcome }).inc();
        self.turn_seconds.observe(took.as_secs_f64());
    }
}

pub(crate) fn routes(registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .with_state(registry)
}

async fn metrics(State(registry): State<Arc<Registry>>) -> Response {
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => ([(CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "what was counted cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_shown_under_the_names_that_dashboards_use() {
        let mut registry = Registry::with_prefix("hermetic");
        let counted = GatewayMetrics::registered(&mut registry);
        counted.accepted(Platform::Telegram);
        counted.turn_ended(TurnEnd::Answered, Duration::from_millis(20));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "hermetic_messages_accepted_total{platform=\"telegram\"} 1",
            "hermetic_turns_total{outcome=\"answered\"} 1",
            "hermetic_turn_seconds_bucket{le=\"0.05\"} 1",
            "hermetic_turn_seconds_count 1",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
        }
    }
}
