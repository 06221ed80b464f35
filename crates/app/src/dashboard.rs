//! The dashboard, from the configuration: what it is told of a running gateway, and who gets in.

mod configured_view;
mod running_view;

use std::sync::Arc;

use hermetic_approvals::ApprovalRegistry;
use hermetic_browser::BrowserAdapter;
use hermetic_config::{Config, ResolvedBackend};
use hermetic_dashboard::{
    AccessSettings, DashboardParts, EgressFeed, ProxyAccess, dashboard_routes,
};
use hermetic_egress::Egress;
use hermetic_gateway::{DashboardBuilder, DashboardTerms};
use hermetic_redact::Redactor;
use hermetic_sandbox::Backend;
use hermetic_store::Store;
use hermetic_types::SharedClock;
use tracing::warn;

use self::running_view::RunningView;
use super::terminal_opener::SandboxTerminals;
use super::{access, egress, platforms};

pub(super) use self::configured_view::ConfiguredView;

/// What the dashboard is built from.
pub(super) struct DashboardSources<'a> {
    pub(super) config: &'a Config,
    pub(super) resolved: &'a ResolvedBackend,
    pub(super) backends: &'a [Arc<dyn Backend>],
    pub(super) gate: Option<Arc<Egress>>,
    pub(super) store: &'a Store,
    pub(super) approvals: &'a ApprovalRegistry,
    pub(super) redactor: &'a Redactor,
    pub(super) feed: EgressFeed,
    pub(super) browser: Option<Arc<BrowserAdapter>>,
    pub(super) clock: &'a SharedClock,
}

/// Where connections are remembered to be shown; nothing where there are no pages.
pub(super) fn egress_feed(config: &Config, clock: &SharedClock) -> Option<EgressFeed> {
    let wanted = config.gateway().dashboard.enabled;
    let journal = || egress::timed_journal(config, clock);
    wanted.then(|| EgressFeed::after(&journal(), Arc::clone(clock)))
}

/// Makes the pages once there is a gateway to show.
pub(super) fn dashboard(sources: DashboardSources<'_>) -> DashboardBuilder {
    let config = sources.config;
    let access = access_settings(config);
    if !access.is_open() {
        warn!(
            host = access.host,
            "the dashboard is locked: others can reach this address. Write gateway.dashboard.password, or \
             listen on 127.0.0.1"
        );
    }
    let view = ConfiguredView {
        config: config.clone(),
        resolved: sources.resolved.clone(),
        backends: sources.backends.to_vec(),
        gate: sources.gate,
    };
    let (store, approvals) = (sources.store.clone(), sources.approvals.clone());
    let (redactor, clock) = (sources.redactor.clone(), Arc::clone(sources.clock));
    let (audit, rules) = (super::audit_places(config), super::rule_book(config));
    let feed = sources.feed;
    let chat = sources
        .browser
        .map(|account| platforms::browser_chat(config, &store, &clock, account));
    DashboardBuilder::new(move |gateway, terms: DashboardTerms| {
        let parts = DashboardParts {
            terminals: Some(Arc::new(SandboxTerminals::new(gateway.clone()))),
            gateway: Arc::new(RunningView {
                configured: view,
                gateway,
            }),
            pairing: access::pairing(&store),
            store,
            approvals,
            audit,
            rules,
            egress: feed,
            chat,
            redactor,
            clock,
            access,
            most_streams: terms.most_streams,
        };
        dashboard_routes(parts, &terms.stop)
    })
}

pub(super) fn access_settings(config: &Config) -> AccessSettings {
    let dashboard = &config.gateway().dashboard;
    let written = |secret: &&hermetic_types::Secret| !secret.is_empty();
    let secret = dashboard.proxy_secret.as_ref().filter(written);
    AccessSettings {
        state: config.home().state(),
        host: dashboard.host.clone(),
        password: dashboard.password.as_ref().filter(written).cloned(),
        proxy: secret.map(|secret| ProxyAccess {
            secret: secret.clone(),
            user_header: dashboard.proxy_user_header.clone(),
            operators: dashboard.proxy_operators.clone(),
        }),
        names: dashboard.names.clone(),
    }
}
