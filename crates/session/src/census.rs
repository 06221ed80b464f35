//! How many sandboxes there are, by backend and state.
//!
//! Kept in memory as rows of the ledger are written, so that whoever looks at `/metrics` reads no table; put
//! right by each look of the reaper, because the command line changes rows too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_store::{LedgerEntry, LedgerState};
use hermetic_types::{BackendKind, SandboxId};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

/// The sandboxes of this gateway, each with where it is and how it stands. Clones share one list.
#[derive(Clone, Debug, Default)]
pub(crate) struct SandboxCensus(Arc<Mutex<CensusList>>);

#[derive(Debug, Default)]
struct CensusList {
    sandboxes: HashMap<SandboxId, (BackendKind, LedgerState)>,
    /// Shown also where none is there.
    backends: BTreeSet<&'static str>,
}

impl SandboxCensus {
    /// Sandboxes will come from there.
    pub(crate) fn expect(&self, backend: BackendKind) {
        self.list().backends.insert(backend.name());
    }

    /// Notes how a sandbox stands.
    pub(crate) fn note(&self, id: &SandboxId, backend: BackendKind, state: LedgerState) {
        let mut list = self.list();
        list.sandboxes.insert(id.clone(), (backend, state));
    }

    /// Strikes one out that is gone.
    pub(crate) fn strike(&self, id: &SandboxId) {
        self.list().sandboxes.remove(id);
    }

    /// Puts the list right.
    pub(crate) fn replace(&self, entries: &[LedgerEntry]) {
        let entries = entries.iter();
        self.list().sandboxes = entries
            .map(|entry| (entry.id.clone(), (entry.backend, entry.state)))
            .collect();
    }

    fn counts(&self) -> BTreeMap<(&'static str, &'static str), i64> {
        let list = self.list();
        let running = LedgerState::Running.name();
        let backends = list.backends.iter();
        let mut counts: BTreeMap<_, _> = backends.map(|name| ((*name, running), 0)).collect();
        for (backend, state) in list.sandboxes.values() {
            *counts.entry((backend.name(), state.name())).or_default() += 1;
        }
        counts
    }

    fn list(&self) -> MutexGuard<'_, CensusList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for SandboxCensus {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let mut sandboxes = encoder.encode_descriptor(
            "sandboxes",
            "Sandboxes that exist or are on their way in or out.",
            None,
            MetricType::Gauge,
        )?;
        for ((backend, state), count) in self.counts() {
            let labels = [("backend", backend), ("state", state)];
            ConstGauge::new(count).encode(sandboxes.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn a_sandbox_is_counted_where_it_stands_now() {
        let census = SandboxCensus::default();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(census.clone()));
        let (one, other) = (SandboxId::random(), SandboxId::random());
        census.note(&one, BackendKind::Native, LedgerState::Creating);
        census.note(&one, BackendKind::Native, LedgerState::Running);
        census.note(&other, BackendKind::Native, LedgerState::Running);
        let shown = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        let running = "sandboxes{backend=\"native\",state=\"running\"}";
        assert!(shown().contains(&format!("{running} 2\n")), "{}", shown());
        assert!(!shown().contains("creating"));
        census.strike(&one);
        assert!(shown().contains(&format!("{running} 1\n")));
        census.replace(&[]);
        assert!(!shown().contains(running));
    }
}
