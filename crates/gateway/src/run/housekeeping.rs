//! The tasks that work on no message: health, resending, reaping, tidying.

use std::sync::Arc;
use std::time::Duration;

use hermetic_listen::{BoundedListener, ConnectionBounds, descriptors, serve_http, serve_unix};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::chain_witness::ChainWitness;
use super::{DashboardBuilder, DashboardTerms, Report, TraceExport, health, metrics};
use crate::Gateway;

/// How often what is over for long is forgotten.
const FORGET_EVERY: Duration = Duration::from_secs(3600);

/// How often questions that nobody waits for are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(10);

/// How often it is written down what left sandboxes: so much is forgotten by a crash.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// Connections to one port of ours at once, where there are descriptors enough: each of these ports
/// answers a few clients, and whoever sends nothing whole goes first.
const MOST_PORT_CONNECTIONS: usize = 512;

/// How long answers on these ports may go on when everything else has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

pub(super) struct HousekeepingTasks {
    tasks: TaskTracker,
    stop: CancellationToken,
    /// To each port at once.
    most_connections: usize,
}

/// Where health and pages are answered.
pub(super) struct PagePorts {
    pub(super) port: TcpListener,
    /// For a process of ours that shows the pages elsewhere.
    pub(super) socket: Option<UnixListener>,
    pub(super) dashboard: Option<DashboardBuilder>,
}

impl HousekeepingTasks {
    /// What runs from the first moment: a start that waits for room is seen to do so, and the room is
    /// looked after.
    ///
    /// `intakes` is how many ports of platforms will be listened on besides.
    pub(super) fn start(
        gateway: &Arc<Gateway>,
        pages: PagePorts,
        export: Option<TraceExport>,
        intakes: usize,
        report: Report,
    ) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(Arc::clone(gateway).report(report, stop.clone()));
        let (sandboxes, until) = (gateway.sandboxes.clone(), stop.clone());
        tasks.spawn(async move { sandboxes.guard_disk(until).await });
        // Ends after every turn has: what they tell last is still sent.
        if let Some(export) = export {
            tasks.spawn(export.run(stop.clone()));
        }
        let this = Self {
            tasks,
            stop,
            // For all ports at once and before any is opened: they share the same descriptors, and
            // one that took them all would leave none for the store and the sandboxes.
            most_connections: connections(intakes + 1),
        };
        let routes = health::routes(Arc::clone(gateway));
        let counted = metrics::routes(Arc::clone(&gateway.registry));
        let dashboard = pages.dashboard.map(|dashboard| {
            let terms = DashboardTerms {
                stop: this.stop.clone(),
                most_streams: this.most_connections / 2,
            };
            dashboard.build(gateway, terms)
        });
        let routes = routes.merge(counted).merge(dashboard.unwrap_or_default());
        if let Some(socket) = pages.socket {
            let (most, stop) = (this.most_connections, this.stop.clone());
            let serving = serve_unix(socket, routes.clone(), most, stop, LAST_ANSWERS);
            this.tasks.spawn(serving);
        }
        this.answer_on(pages.port, routes);
        this
    }

    /// The rest, once what an earlier run left is settled.
    pub(super) fn begin(&self, gateway: &Arc<Gateway>, intakes: Vec<(TcpListener, axum::Router)>) {
        let (sandboxes, until) = (gateway.sandboxes.clone(), self.stop.clone());
        self.tasks.spawn(async move { sandboxes.reap(until).await });
        let (resending, until) = (Arc::clone(gateway), self.stop.clone());
        self.tasks
            .spawn(async move { resending.outbox.resend(until).await });
        self.tasks
            .spawn(tidy_questions(Arc::clone(gateway), self.stop.clone()));
        self.tasks
            .spawn(forget_old(Arc::clone(gateway), self.stop.clone()));
        self.tasks
            .spawn(save_outgoing(Arc::clone(gateway), self.stop.clone()));
        if gateway.store.is_shared() {
            let witness = ChainWitness::new(
                gateway.approvals.registry().audit(),
                gateway.store.audit_heads(),
                gateway.redactor.clone(),
                Arc::clone(&gateway.clock),
            );
            self.tasks.spawn(witness.run(self.stop.clone()));
        }
        let (greeting, until) = (Arc::clone(gateway), self.stop.clone());
        self.tasks
            .spawn(async move { greeting.greet_the_paired(until).await });
        for (listener, routes) in intakes {
            self.answer_on(listener, routes);
        }
    }

    fn answer_on(&self, listener: TcpListener, routes: axum::Router) {
        let listener = BoundedListener::new(listener, ConnectionBounds::of(self.most_connections));
        let serving = serve_http(listener, routes, self.stop.clone(), LAST_ANSWERS);
        self.tasks.spawn(serving);
    }

    pub(super) async fn end(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn tidy_questions(gateway: Arc<Gateway>, until: CancellationToken) {
    let approvals = &gateway.approvals;
    while until.run_until_cancelled(approvals.tidy()).await.is_some() {
        if until.run_until_cancelled(sleep(TIDY_EVERY)).await.is_none() {
            return;
        }
    }
}

async fn forget_old(gateway: Arc<Gateway>, until: CancellationToken) {
    while until
        .run_until_cancelled(sleep(FORGET_EVERY))
        .await
        .is_some()
    {
        if let Err(error) = gateway.forget_old().await {
            tracing::error!(%error, "what is over could not be forgotten");
        }
    }
}

/// Writes down what left, now and then and once more at the end.
async fn save_outgoing(gateway: Arc<Gateway>, until: CancellationToken) {
    let Some(day) = &gateway.outgoing else { return };
    // The last save, below the loop, is for what left since: after a restart it would be free.
    while until.run_until_cancelled(sleep(SAVE_EVERY)).await.is_some() {
        day.save().await;
    }
    day.save().await;
}

// Once more, because turns have ended and sandboxes have not: what left since the last look would
// be free after a restart.
/// A sixteenth of all descriptors for each of three ports; where there are more, they share those.
fn connections(ports: usize) -> usize {
    let all = usize::try_from(descriptors::available()).unwrap_or(usize::MAX);
    let share = all / 16 * 3 / ports.max(3);
    share.min(MOST_PORT_CONNECTIONS)
}
