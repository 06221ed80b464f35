//! The tasks that work on no message: health, resending, reaping, tidying.

use std::sync::Arc;
use std::time::Duration;

use hermetic_listen::{BoundedListener, ConnectionBounds, descriptors, serve_http};
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Report, health};
use crate::Gateway;

/// How often what is over for long is forgotten.
const FORGET_EVERY: Duration = Duration::from_secs(3600);

/// How often questions that nobody waits for are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(10);

/// Connections to one port of ours at once, where there are descriptors enough: each of these ports
/// answers a few clients, and whoever sends nothing whole goes first.
const MOST_CONNECTIONS: usize = 512;

/// How long answers on these ports may go on when everything else has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

pub(super) struct Housekeeping {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Housekeeping {
    pub(super) fn start(
        gateway: &Arc<Gateway>,
        health: TcpListener,
        intakes: Vec<(TcpListener, axum::Router)>,
        report: Report,
    ) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(Arc::clone(gateway).report(report, stop.clone()));
        let (sandboxes, until) = (gateway.sandboxes.clone(), stop.clone());
        tasks.spawn(async move { sandboxes.keep_house(until).await });
        let (sandboxes, until) = (gateway.sandboxes.clone(), stop.clone());
        tasks.spawn(async move { sandboxes.guard_disk(until).await });
        let (resending, until) = (Arc::clone(gateway), stop.clone());
        tasks.spawn(async move { resending.outbox.resend(until).await });
        tasks.spawn(tidy_questions(Arc::clone(gateway), stop.clone()));
        tasks.spawn(forget_old(Arc::clone(gateway), stop.clone()));
        let routes = health::routes(Arc::clone(gateway));
        let most = connections(intakes.len() + 1);
        for (listener, routes) in intakes.into_iter().chain([(health, routes)]) {
            let listener = BoundedListener::new(listener, ConnectionBounds::of(most));
            tasks.spawn(serve_http(listener, routes, stop.clone(), LAST_ANSWERS));
        }
        Self { tasks, stop }
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

/// A sixteenth of all descriptors for each of three ports; where there are more, they share those.
fn connections(ports: usize) -> usize {
    let all = usize::try_from(descriptors::available()).unwrap_or(usize::MAX);
    let share = all / 16 * 3 / ports.max(3);
    share.min(MOST_CONNECTIONS)
}
