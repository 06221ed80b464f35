//! What is counted about connections. Hosts are not labels: a sandbox could make up as many as it likes.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};

use crate::audit::{EgressDecision, EgressEntry, EgressRecorder};

/// Counts connections and bytes for `/metrics`.
#[derive(Clone, Debug, Default)]
pub struct EgressMetrics {
    connections: Family<DecisionLabel, Counter>,
    bytes: Family<DirectionLabel, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabel {
    decision: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabel {
    direction: &'static str,
}

impl EgressMetrics {
    pub fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "egress_connections",
            "Connections that sandboxes asked for, by what was decided",
            metrics.connections.clone(),
        );
        registry.register_with_unit(
            "egress",
            "Bytes of connections that have ended, out of sandboxes and into them",
            Unit::Bytes,
            metrics.bytes.clone(),
        );
        // There from the first look, so that a rate is known after the second.
        for decision in ["opened", "refused"] {
            drop(
                metrics
                    .connections
                    .get_or_create(&DecisionLabel { decision }),
            );
        }
        for direction in ["out", "in"] {
            drop(metrics.bytes.get_or_create(&DirectionLabel { direction }));
        }
        metrics
    }

    fn decided(&self, decision: &'static str) {
        self.connections
            .get_or_create(&DecisionLabel { decision })
            .inc();
    }

    fn carried(&self, direction: &'static str, bytes: u64) {
        self.bytes
            .get_or_create(&DirectionLabel { direction })
            .inc_by(bytes);
    }
}

impl EgressRecorder for EgressMetrics {
    fn write(&self, entry: &EgressEntry) {
        match &entry.verdict {
            EgressDecision::Opened => self.decided("opened"),
            EgressDecision::Refused { .. } => self.decided("refused"),
            EgressDecision::Closed { .. } => {
                self.carried("out", entry.bytes_up);
                self.carried("in", entry.bytes_down);
            }
        }
    }
}
