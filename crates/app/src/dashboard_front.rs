//! The dashboard as a process of its own: where the gateway answers, and what is shown while it does not.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use futures::future::{self, BoxFuture, FutureExt};
use hermetic_config::Config;
use hermetic_dashboard::{
    ActFailed, BudgetRow, ConditionReport, DashboardParts, EgressFeed, FrontParts, GatewayView,
    ListedPerson, SandboxUse, SealReport, SealedPlace, SettingsReport, dashboard_routes,
    front_routes,
};
use hermetic_listen::bind_private;
use hermetic_policy::VerdictExplanation;
use hermetic_store::LedgerEntry;
use hermetic_types::{BackendKind, Boundary, ConversationKey, SandboxId, SystemClock};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::dashboard::{ConfiguredView, access_settings};
use super::{access, boundary, egress};
use crate::AppFailure;

/// Streams of events while the gateway is away. They only wait for it.
const AWAY_STREAMS: usize = 64;

const AWAY: &str = "The gateway is not running. What is shown is what the store has.";
const NOT_DONE: &str =
    "The gateway is not running, so nothing was done. Start it: hermetic gateway start";

/// Where the gateway of this home answers a dashboard of another process.
pub(super) fn socket_path(config: &Config) -> PathBuf {
    config.home().state().join("dashboard.sock")
}

/// The socket itself, where there are pages. A gateway without it serves its chats all the same.
pub(super) fn dashboard_socket(config: &Config) -> Option<UnixListener> {
    if !config.gateway().dashboard.enabled {
        return None;
    }
    let path = socket_path(config);
    match bind_private(&path) {
        Ok(listener) => Some(listener),
        Err(error) => {
            warn!(path = %path.display(), %error, "`hermetic dashboard serve` will not reach this gateway");
            None
        }
    }
}

/// The pages of a process of its own on this address, before the gateway of this home. Must be called within a
/// runtime.
pub async fn dashboard_front(
    config: &Config,
    host: &str,
    stop: &CancellationToken,
) -> Result<Router, AppFailure> {
    let mut access = access_settings(config);
    // The address that is really listened to decides whether a password is needed, and not the one
    // in the file.
    host.clone_into(&mut access.host);
    let is_open = access.is_open();
    if !is_open {
        warn!(
            host,
            "the dashboard is locked: others can reach this address. Write gateway.dashboard.password, or \
             listen on 127.0.0.1"
        );
    }
    let resolved = hermetic_config::resolve_gateway_backend(config)
        .map_err(|error| AppFailure::caused(&error, "see `hermetic config check`"))?;
    let (store, clock) = (super::store(config).await?, SystemClock::shared());
    let journal = egress::timed_journal(config, &clock);
    let parts = DashboardParts {
        gateway: Arc::new(AwayView(ConfiguredView {
            config: config.clone(),
            resolved,
            backends: Vec::new(),
            gate: None,
        })),
        approvals: super::approvals(config, &store)?,
        pairing: access::pairing(&store),
        audit: super::audit_places(config),
        rules: super::rule_book(config),
        egress: EgressFeed::following(&journal, Arc::clone(&clock)),
        // Both need a gateway: what is said there would wait for one without a word.
        chat: None,
        terminals: None,
        redactor: super::redactor(config),
        clock,
        access,
        most_streams: AWAY_STREAMS,
        store,
    };
    Ok(front_routes(FrontParts {
        socket: socket_path(config),
        away: dashboard_routes(parts, stop),
        is_open,
    }))
}

/// A gateway that is not there. What the configuration says is known all the same.
#[derive(Debug)]
struct AwayView(ConfiguredView);

impl GatewayView for AwayView {
    fn condition(&self) -> ConditionReport {
        ConditionReport {
            stage: "away".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..ConditionReport::default()
        }
    }

    fn seal(&self) -> BoxFuture<'_, SealReport> {
        let places = self.0.kinds().into_values();
        let places = places.map(|(kind, platforms)| SealedPlace {
            backend: kind.to_string(),
            is_sealed: boundary(kind) == Boundary::Sealed,
            // Nobody who could look is there.
            is_known: false,
            platforms,
            layers: Vec::new(),
        });
        let egress = self.0.config.egress();
        let report = SealReport {
            places: places.collect(),
            egress_mode: egress.mode.name().to_owned(),
            egress: "not known while the gateway is away".to_owned(),
            asks: egress.ask,
            warnings: vec![AWAY.to_owned()],
        };
        future::ready(report).boxed()
    }

    fn settings(&self) -> SettingsReport {
        self.0.settings()
    }

    fn listed_people(&self) -> Vec<ListedPerson> {
        self.0.listed_people()
    }

    fn budgets(&self) -> Vec<BudgetRow> {
        self.0.budgets()
    }

    fn explain(
        &self,
        conversation: &ConversationKey,
        command: &str,
    ) -> Option<Box<VerdictExplanation>> {
        self.0.explain(conversation, command)
    }

    fn sandbox_use(
        &self,
        _: Vec<(BackendKind, SandboxId)>,
    ) -> BoxFuture<'_, HashMap<SandboxId, SandboxUse>> {
        future::ready(HashMap::new()).boxed()
    }

    fn stop<'a>(&'a self, _: &'a ConversationKey) -> BoxFuture<'a, Result<(), ActFailed>> {
        not_done()
    }

    fn reset<'a>(&'a self, _: &'a ConversationKey) -> BoxFuture<'a, Result<(), ActFailed>> {
        not_done()
    }

    fn destroy<'a>(&'a self, _: &'a ConversationKey) -> BoxFuture<'a, Result<(), ActFailed>> {
        not_done()
    }

    fn stop_sandbox<'a>(&'a self, _: &'a ConversationKey) -> BoxFuture<'a, Result<(), ActFailed>> {
        not_done()
    }

    fn destroy_sandbox<'a>(&'a self, _: &'a LedgerEntry) -> BoxFuture<'a, Result<(), ActFailed>> {
        not_done()
    }
}

fn not_done<'a>() -> BoxFuture<'a, Result<(), ActFailed>> {
    future::ready(Err(ActFailed(NOT_DONE.to_owned()))).boxed()
}
