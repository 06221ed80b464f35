//! The running gateway.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hermetic_types::{BackendKind, Secret};
use hermetic_upstream::{ProxyExceptions, UpstreamProxy};

use super::pick::SettingPicker;
use super::{proxy, traces};
use crate::problem::ConfigProblem;

#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Where chats run their commands, spelled out. See [`crate::resolve_gateway_backend`].
    pub terminal_backend: Option<BackendKind>,
    pub sandbox_image: Option<String>,
    /// A conversation's sandbox is let go after so long without use.
    pub sandbox_lifetime: Duration,
    /// Sandboxes kept ready.
    pub sandbox_pool: usize,
    /// `None` for as many as the machine can take.
    pub max_sandboxes: Option<usize>,
    /// Of these, one person's. `None` for a share of all.
    pub max_sandboxes_per_user: Option<usize>,
    /// Turns of one person at work at once, in all their conversations.
    pub max_turns_per_user: usize,
    /// Kept free for the store.
    pub disk_reserve_bytes: u64,
    /// All sandboxes together.
    pub sandboxes_disk_bytes: Option<u64>,
    /// A `postgres://` address; a file in the state folder where there is none.
    pub store: Option<Secret>,
    /// Whether all gateways on that store serve, instead of one.
    pub share_work: bool,
    pub delivery_ledger: bool,
    /// `None` waits forever.
    pub platform_connect_timeout: Option<Duration>,
    /// `None` for no bound.
    pub max_inbound_media_bytes: Option<u64>,
    pub strict_media: bool,
    pub media_folders: Vec<PathBuf>,
    pub message_timestamps: bool,
    pub max_api_runs: usize,
    /// For the gateway's own requests; sandboxes have [`crate::EgressConfig::upstream_proxy`].
    pub proxy: Option<UpstreamProxy>,
    /// The hosts that are reached without any proxy.
    pub no_proxy: ProxyExceptions,
    pub dashboard: DashboardConfig,
    /// Where traces go; nowhere by default.
    pub traces: Option<TraceConfig>,
}

/// A collector of traces.
#[derive(Clone, Debug)]
pub struct TraceConfig {
    /// The whole address that traces are posted to.
    pub address: String,
    pub headers: BTreeMap<String, Secret>,
    pub service_name: String,
}

#[derive(Clone, Debug)]
pub struct DashboardConfig {
    pub host: String,
    pub port: u16,
    /// Whether there are pages at all.
    pub enabled: bool,
    pub password: Option<Secret>,
    pub proxy_secret: Option<Secret>,
    pub proxy_user_header: String,
    pub proxy_operators: Vec<String>,
    pub names: Vec<String>,
}

impl GatewayConfig {
    pub(super) fn build(pick: &SettingPicker<'_>, problems: &mut Vec<ConfigProblem>) -> Self {
        Self {
            terminal_backend: pick.maybe_choice("gateway.terminal_backend"),
            sandbox_image: pick.maybe_text("gateway.sandbox_image"),
            sandbox_lifetime: pick.seconds("gateway.sandbox_lifetime"),
            sandbox_pool: pick.count("gateway.sandbox_pool"),
            max_sandboxes: pick.maybe_count("gateway.max_sandboxes"),
            max_sandboxes_per_user: pick.maybe_count("gateway.max_sandboxes_per_user"),
            max_turns_per_user: pick.count("gateway.max_turns_per_user"),
            disk_reserve_bytes: pick.bytes("gateway.disk_reserve"),
            sandboxes_disk_bytes: pick.maybe_bytes("gateway.sandboxes_disk"),
            store: pick.secret("gateway.store"),
            share_work: pick.flag("gateway.share_work"),
            delivery_ledger: pick.flag("gateway.delivery_ledger"),
            platform_connect_timeout: pick.seconds_or_never("gateway.platform_connect_timeout"),
            max_inbound_media_bytes: Some(pick.bytes("gateway.max_inbound_media_bytes"))
                .filter(|bytes| *bytes > 0),
            strict_media: pick.flag("gateway.strict"),
            media_folders: pick
                .texts("gateway.media_delivery_allow_dirs")
                .iter()
                .map(|text| pick.path_of(text))
                .collect(),
            message_timestamps: pick.flag("gateway.message_timestamps.enabled"),
            max_api_runs: pick.count("gateway.api_server.max_concurrent_runs"),
            proxy: proxy::own(pick, problems),
            no_proxy: proxy::exceptions(pick),
            traces: traces::build(pick, problems),
            dashboard: DashboardConfig {
                host: pick.text("gateway.dashboard.host"),
                port: pick.count("gateway.dashboard.port"),
                enabled: pick.flag("gateway.dashboard.enabled"),
                password: pick.secret("gateway.dashboard.password"),
                proxy_secret: pick.secret("gateway.dashboard.proxy_secret"),
                proxy_user_header: pick.text("gateway.dashboard.proxy_user_header"),
                proxy_operators: pick.texts("gateway.dashboard.proxy_operators"),
                names: pick.texts("gateway.dashboard.names"),
            },
        }
    }
}
