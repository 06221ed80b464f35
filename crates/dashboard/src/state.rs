//! What every page is made from.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use hermetic_access::PairingService;
use hermetic_approvals::ApprovalRegistry;
use hermetic_audit::AuditPaths;
use hermetic_egress::RuleBook;
use hermetic_redact::Redactor;
use hermetic_store::{ActivityRows, LeaseRows, SandboxLedger, Store};
use hermetic_types::{SharedClock, Timestamp};
use tokio::sync::{Mutex, Semaphore};

use crate::access::{AccessSettings, DashboardAccess};
use crate::live::{LiveEvents, LiveTopic};
use crate::sandbox_history::SandboxHistory;
use crate::terminal::{TerminalOpener, TerminalSeats};
use crate::use_sampler::UseSampler;
use crate::{BrowserChat, EgressFeed, GatewayView, SealReport, words};

/// What a dashboard is made of. The app builds them from the configuration.
#[derive(Debug)]
pub struct DashboardParts {
    pub gateway: Arc<dyn GatewayView>,
    pub store: Store,
    pub approvals: ApprovalRegistry,
    pub pairing: PairingService,
    pub audit: AuditPaths,
    pub rules: RuleBook,
    pub egress: EgressFeed,
    /// The chat in the browser, where there is one.
    pub chat: Option<Arc<dyn BrowserChat>>,
    /// Opens shells in sandboxes, where there is a gateway that has some.
    pub terminals: Option<Arc<dyn TerminalOpener>>,
    /// What is shown went through it, whoever wrote it.
    pub redactor: Redactor,
    pub clock: SharedClock,
    pub access: AccessSettings,
    /// Event streams at once. Each of them holds a connection of the port that everybody shares.
    pub most_streams: usize,
}

/// The state of all handlers.
pub(crate) struct DashboardState {
    pub(crate) gateway: Arc<dyn GatewayView>,
    pub(crate) store: Store,
    pub(crate) activity: ActivityRows,
    pub(crate) ledger: SandboxLedger,
    /// Where several gateways may share the store.
    pub(crate) leases: Option<LeaseRows>,
    pub(crate) approvals: ApprovalRegistry,
    pub(crate) pairing: PairingService,
    pub(crate) audit: AuditPaths,
    pub(crate) rules: RuleBook,
    pub(crate) egress: EgressFeed,
    pub(crate) chat: Option<Arc<dyn BrowserChat>>,
    pub(crate) terminals: Option<Arc<dyn TerminalOpener>>,
    pub(crate) terminal_seats: Arc<TerminalSeats>,
    /// Forms with files that are being read: each of them is held in memory.
    pub(crate) uploads: Semaphore,
    pub(crate) access: DashboardAccess,
    pub(crate) live: Arc<LiveEvents>,
    pub(crate) uses: UseSampler,
    pub(crate) history: SandboxHistory,
    /// Walks through the whole record at once: each of them reads all of it.
    pub(crate) walks: Semaphore,
    /// Searches at once: each of them reads megabytes. Who comes later waits.
    pub(crate) searches: Semaphore,
    redactor: Redactor,
    clock: SharedClock,
    seal: Mutex<Option<(Timestamp, SealReport)>>,
    /// Whether the seal is looked at for the next who asks.
    sealing: AtomicBool,
}

/// A shared state, as handlers are given it.
pub(crate) type SharedState = Arc<DashboardState>;

/// How long what was found out about the seal is shown as it is. Finding it out may take a daemon's time.
const SEAL_AGE: Duration = Duration::from_secs(30);

/// Until then it is shown while it is found out anew; what is older is waited for.
const OLDEST_SEAL: Duration = Duration::from_secs(300);

/// Forms with files that are read at once.
const MOST_UPLOADS: usize = 2;

/// Searches that read at once.
const MOST_SEARCHES: usize = 2;

/// The longest wait of a page for it.
const SEAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Said where the backend does not answer in time.
const NOT_KNOWN: &str =
    "The backend does not answer, so how well commands are sealed is not known at this moment.";

impl DashboardState {
    pub(crate) fn new(parts: DashboardParts) -> SharedState {
        let access = DashboardAccess::new(
            parts.access,
            parts.store.documents(),
            Arc::clone(&parts.clock),
        );
        Arc::new(Self {
            activity: parts.store.activity(),
            ledger: parts.store.ledger(),
            leases: parts.store.is_shared().then(|| parts.store.leases()),
            gateway: parts.gateway,
            store: parts.store,
            approvals: parts.approvals,
            pairing: parts.pairing,
            audit: parts.audit,
            rules: parts.rules,
            egress: parts.egress,
            chat: parts.chat,
            terminals: parts.terminals,
            terminal_seats: Arc::default(),
            uploads: Semaphore::new(MOST_UPLOADS),
            access,
            live: Arc::new(LiveEvents::new(parts.most_streams)),
            uses: UseSampler::default(),
            history: SandboxHistory::default(),
            walks: Semaphore::new(1),
            searches: Semaphore::new(MOST_SEARCHES),
            redactor: parts.redactor,
            clock: parts.clock,
            seal: Mutex::default(),
            sealing: AtomicBool::new(false),
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A text of somebody else, as it may be shown: without secrets, and without characters that show
    /// something else than what is there.
    pub(crate) fn shown(&self, text: &str) -> String {
        words::visible(self.redactor.redact(text).as_str())
    }

    /// The truth about the seal, as it was a moment ago. What is older is shown once more, while it is found
    /// out anew for the next who asks.
    pub(crate) async fn seal(self: &Arc<Self>) -> SealReport {
        // Held while somebody waits for it to be found out: of many who ask at once one goes and looks.
        let mut known = self.seal.lock().await;
        let now = self.now();
        if let Some((at, report)) = &*known
            && now.distance(*at) < OLDEST_SEAL
        {
            // One look at a time: a backend that hangs must not gather tasks.
            if now.distance(*at) >= SEAL_AGE && !self.sealing.swap(true, Ordering::Relaxed) {
                tokio::spawn(Arc::clone(self).look_at_the_seal());
            }
            return report.clone();
        }
        match tokio::time::timeout(SEAL_TIMEOUT, self.gateway.seal()).await {
            Ok(report) => {
                *known = Some((now, report.clone()));
                report
            }
            Err(_) => {
                let report = not_known(known.as_ref());
                // Remembered like an answer: whoever comes next would wait as long, one after the other.
                *known = Some((now, report.clone()));
                report
            }
        }
    }

    /// Finds out about the seal while what is known is shown, and tells browsers if it changed.
    async fn look_at_the_seal(self: Arc<Self>) {
        let found = tokio::time::timeout(SEAL_TIMEOUT, self.gateway.seal()).await;
        let mut known = self.seal.lock().await;
        let report = found.unwrap_or_else(|_| not_known(known.as_ref()));
        let is_new = known.as_ref().is_none_or(|(_, known)| *known != report);
        *known = Some((self.now(), report));
        // Let go first: a browser that is told asks for it at once.
        drop(known);
        if is_new {
            self.live.publish(LiveTopic::Condition);
        }
        self.sealing.store(false, Ordering::Relaxed);
    }
}

/// What was known, with the word that it is not known any more.
fn not_known(known: Option<&(Timestamp, SealReport)>) -> SealReport {
    let mut report = known.map(|(_, report)| report.clone()).unwrap_or_default();
    for place in &mut report.places {
        place.is_known = false;
    }
    report.warnings.retain(|warning| warning != NOT_KNOWN);
    report.warnings.push(NOT_KNOWN.to_owned());
    report
}

impl fmt::Debug for DashboardState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DashboardState").finish_non_exhaustive()
    }
}

/// The most that anybody may send us at once.
pub(crate) const MOST_BODY_BYTES: usize = 16 << 10;

/// Reads a body that is small.
pub(crate) async fn small_body(body: axum::body::Body) -> Option<Bytes> {
    axum::body::to_bytes(body, MOST_BODY_BYTES).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SealedPlace;

    #[test]
    fn what_a_backend_said_before_it_hung_is_not_known_any_more() {
        let place = SealedPlace {
            backend: "docker".to_owned(),
            is_sealed: true,
            is_known: true,
            platforms: Vec::new(),
            layers: Vec::new(),
        };
        let before = SealReport {
            places: vec![place],
            ..SealReport::default()
        };
        let first = not_known(Some(&(Timestamp::from_seconds(1), before)));
        assert!(
            first.places.iter().all(|place| !place.is_known),
            "{first:?}"
        );
        let again = not_known(Some(&(Timestamp::from_seconds(2), first)));
        assert_eq!(again.warnings, [NOT_KNOWN], "said once");
        assert_eq!(not_known(None).places, []);
    }
}
