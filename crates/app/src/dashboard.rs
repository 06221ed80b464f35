//! The dashboard, from the configuration: what it is told of a running gateway, and who gets in.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join_all};
use hermetic_agent::NanoDollars;
use hermetic_approvals::ApprovalRegistry;
use hermetic_browser::BrowserAdapter;
use hermetic_config::{
    Config, ConfigInputs, DayBudget, EffectiveSetting, ResolvedBackend, SettingValue,
};
use hermetic_dashboard::{
    AccessSettings, ActFailed, BudgetRow, ConditionReport, DashboardParts, EgressFeed, GatewayView,
    LayerRow, ListedPerson, PartRow, PlatformRow, ProxyAccess, RunningOutput, SandboxUse,
    SealReport, SealedPlace, SettingRow, SettingsReport, dashboard_routes,
};
use hermetic_egress::{Egress, RuleMode};
use hermetic_gateway::{
    ConversationActFailed, DashboardBuilder, DashboardTerms, GatewayHandle, GatewayStage,
    chat_state_words,
};
use hermetic_policy::{VerdictExplanation, explain};
use hermetic_redact::Redactor;
use hermetic_sandbox::{Backend, LayerState, LiveUse, SandboxProcess};
use hermetic_store::Store;
use hermetic_types::{BackendKind, Boundary, Command, ConversationKey, SandboxId, SharedClock};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::warn;

use super::terminal_opener::SandboxTerminals;
use super::{access, boundary, egress, platforms, terminal};

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

/// A backend is not waited for longer to say what a sandbox uses.
const LOOK_TIMEOUT: Duration = Duration::from_millis(1500);

/// Nor longer to count what lies on its disk.
const COUNT_TIMEOUT: Duration = Duration::from_secs(10);

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

/// What the configuration and the backends tell.
#[derive(Debug)]
pub(super) struct ConfiguredView {
    pub(super) config: Config,
    pub(super) resolved: ResolvedBackend,
    pub(super) backends: Vec<Arc<dyn Backend>>,
    pub(super) gate: Option<Arc<Egress>>,
}

/// The same with a gateway that runs.
#[derive(Debug)]
struct RunningView {
    configured: ConfiguredView,
    gateway: GatewayHandle,
}

impl ConfiguredView {
    /// Each backend that conversations run on, with the platforms that have it for themselves.
    pub(super) fn kinds(&self) -> BTreeMap<&'static str, (BackendKind, Vec<String>)> {
        let usual = self.resolved.backend;
        let mut kinds = BTreeMap::from([(usual.name(), (usual, Vec::new()))]);
        let enabled = self.config.platforms().enabled();
        for platform in enabled {
            if let Some(own) = self.resolved.platforms.get(platform.name) {
                let (_, platforms) = kinds.entry(own.name()).or_insert((*own, Vec::new()));
                platforms.push(platform.name.to_owned());
            }
        }
        kinds
    }

    async fn place(&self, kind: BackendKind, platforms: Vec<String>) -> SealedPlace {
        let backend = self.backends.iter().find(|open| open.kind() == kind);
        let layers = match backend {
            Some(backend) => backend.readiness().await.layers,
            None => Vec::new(),
        };
        let rows = layers.into_iter().map(|layer| LayerRow {
            name: layer.name.to_owned(),
            state: match layer.state {
                LayerState::Active => "active",
                LayerState::Weaker => "weaker",
                LayerState::Missing => "missing",
                LayerState::Required => "required",
            }
            .to_owned(),
            detail: layer.detail,
            remedy: layer.remedy,
        });
        SealedPlace {
            backend: kind.to_string(),
            is_sealed: boundary(kind) == Boundary::Sealed,
            platforms,
            layers: rows.collect(),
        }
    }

    /// What sandboxes of everybody's can reach, in words.
    fn reach(&self) -> String {
        if boundary(self.resolved.backend) == Boundary::Judged {
            return "not filtered: commands have the network of the machine".to_owned();
        }
        let Some(gate) = &self.gate else {
            return "closed: sandboxes reach nothing".to_owned();
        };
        let reach = gate.reach(&ConversationKey::new("hermetic:dashboard"));
        let asks = match self.config.egress().ask {
            true => "; people are asked about others",
            false => "",
        };
        match (reach.mode, reach.allowed.len()) {
            (RuleMode::Open, _) => "open: public hosts, through the proxy".to_owned(),
            (RuleMode::Closed, _) => "closed: egress.rules cannot be understood".to_owned(),
            (RuleMode::Allowlist, 0) => format!("an allowlist that is empty{asks}"),
            (RuleMode::Allowlist, 1) => format!("an allowlist of one host{asks}"),
            (RuleMode::Allowlist, count) => format!("an allowlist of {count} hosts{asks}"),
        }
    }

    fn backend_of(&self, conversation: &ConversationKey) -> BackendKind {
        let platform = conversation.platform();
        let own = platform.and_then(|platform| self.resolved.platforms.get(platform.name()));
        own.copied().unwrap_or(self.resolved.backend)
    }

    pub(super) fn settings(&self) -> SettingsReport {
        let used = self.config.settings();
        let (now, unreadable) = match self.settings_now() {
            Ok(now) => (Some(now), None),
            Err(why) => (None, Some(why)),
        };
        let now: HashMap<&str, &EffectiveSetting> = now
            .iter()
            .flat_map(|config| config.settings())
            .map(|setting| (setting.name(), setting))
            .collect();
        let rows = used.iter().map(|setting| {
            let value = setting.value();
            let next = now.get(setting.name());
            let differs = next.filter(|next| is_other(value, next.value()));
            SettingRow {
                key: setting.name().to_owned(),
                value: value.map(SettingValue::shown),
                origin: setting.origin().to_string(),
                is_written: setting.origin().is_written(),
                about: setting.about().to_owned(),
                changed_to: differs.map(|next| {
                    let shown = next.value().map(SettingValue::shown);
                    shown.unwrap_or_else(|| "not set".to_owned())
                }),
                no_effect: setting.why_without_effect().map(str::to_owned),
            }
        });
        SettingsReport {
            settings: rows.collect(),
            unreadable,
        }
    }

    pub(super) fn listed_people(&self) -> Vec<ListedPerson> {
        let config = &self.config;
        let mut people: Vec<ListedPerson> = Vec::new();
        for (account, user) in access::approvers(config) {
            people.push(ListedPerson {
                platform: account.to_string(),
                user: user.to_string(),
                role: "operator".to_owned(),
            });
        }
        for section in config.platforms().enabled() {
            for user in &section.allowed_users {
                let is_there = |one: &ListedPerson| {
                    one.user == *user && one.platform.split('/').next() == Some(section.name)
                };
                if !people.iter().any(is_there) {
                    people.push(ListedPerson {
                        platform: section.name.to_owned(),
                        user: user.clone(),
                        role: "user".to_owned(),
                    });
                }
            }
        }
        people
    }

    pub(super) fn budgets(&self) -> Vec<BudgetRow> {
        let budgets = self.config.budgets();
        let row = |scope: &str, budget: DayBudget| BudgetRow {
            scope: scope.to_owned(),
            nanodollars: budget
                .dollars
                .and_then(NanoDollars::from_dollars)
                .map(|amount| i64::try_from(amount.get()).unwrap_or(i64::MAX)),
            tokens: budget.tokens,
            tool_seconds: budget.tool_seconds,
        };
        vec![
            row("all", budgets.all),
            row("person", budgets.person),
            row("conversation", budgets.conversation),
        ]
    }

    pub(super) fn explain(
        &self,
        conversation: &ConversationKey,
        command: &str,
    ) -> Option<Box<VerdictExplanation>> {
        let config = &self.config;
        let context = terminal::context(config, self.backend_of(conversation));
        let policy = terminal::policy(config);
        let explained = explain(&policy, &Command::script(command), &context);
        Some(Box::new(explained))
    }

    /// As the files and variables are at this moment.
    fn settings_now(&self) -> Result<Config, String> {
        let inputs = ConfigInputs::of_process(Some(self.config.home().root()));
        let inputs = inputs.map_err(|error| error.to_string())?;
        hermetic_config::load(&inputs).map_err(|problems| problems.to_string())
    }
}

impl GatewayView for RunningView {
    fn condition(&self) -> ConditionReport {
        let condition = self.gateway.condition();
        let parts = condition.parts.into_iter().map(|part| PartRow {
            name: part.name,
            health: part.health,
        });
        let platforms = condition.accounts.iter().map(|(account, state)| {
            let (backend, boundary) = self.gateway.backend_of(account.platform());
            let (words, why) = chat_state_words(state);
            PlatformRow {
                account: account.to_string(),
                state: words.to_owned(),
                why: why.map(str::to_owned),
                backend: backend.to_string(),
                is_sealed: boundary == Boundary::Sealed,
            }
        });
        ConditionReport {
            stage: match condition.stage {
                GatewayStage::Starting => "starting",
                GatewayStage::Serving => "serving",
                GatewayStage::Draining => "draining",
            }
            .to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            active: condition.active,
            platforms: platforms.collect(),
            parts: parts.collect(),
        }
    }

    fn seal(&self) -> BoxFuture<'_, SealReport> {
        async move {
            let configured = &self.configured;
            let places = configured.kinds().into_values();
            let places = places.map(|(kind, platforms)| configured.place(kind, platforms));
            let mut warnings = configured.resolved.warnings(boundary);
            warnings.extend(super::notices(&configured.config));
            SealReport {
                places: join_all(places).await,
                egress_mode: configured.config.egress().mode.name().to_owned(),
                egress: configured.reach(),
                asks: configured.config.egress().ask,
                warnings,
            }
        }
        .boxed()
    }

    fn settings(&self) -> SettingsReport {
        self.configured.settings()
    }

    fn listed_people(&self) -> Vec<ListedPerson> {
        self.configured.listed_people()
    }

    fn budgets(&self) -> Vec<BudgetRow> {
        self.configured.budgets()
    }

    fn explain(
        &self,
        conversation: &ConversationKey,
        command: &str,
    ) -> Option<Box<VerdictExplanation>> {
        self.configured.explain(conversation, command)
    }

    fn sandbox_use(
        &self,
        sandboxes: Vec<(BackendKind, SandboxId)>,
    ) -> BoxFuture<'_, HashMap<SandboxId, SandboxUse>> {
        async move {
            // Beside each other: one that lets us wait holds up no other.
            let looks = self.configured.backends.iter().map(|backend| {
                let own = sandboxes.iter().filter(|(kind, _)| *kind == backend.kind());
                let ids: Vec<SandboxId> = own.map(|(_, id)| id.clone()).collect();
                async move {
                    match ids.is_empty() {
                        true => HashMap::new(),
                        false => timeout(COUNT_TIMEOUT, backend.disk_use(&ids))
                            .await
                            .unwrap_or_default(),
                    }
                }
            });
            let counted = join_all(looks).await.into_iter().flatten();
            let uses = counted.map(|(id, bytes)| {
                let disk_bytes = Some(bytes);
                (id, SandboxUse { disk_bytes })
            });
            uses.collect()
        }
        .boxed()
    }

    fn live_use(
        &self,
        sandboxes: Vec<(BackendKind, SandboxId)>,
    ) -> BoxFuture<'_, HashMap<SandboxId, LiveUse>> {
        async move {
            // Beside each other: one that lets us wait holds up no other.
            let looks = self.configured.backends.iter().map(|backend| {
                let own = sandboxes.iter().filter(|(kind, _)| *kind == backend.kind());
                let ids: Vec<SandboxId> = own.map(|(_, id)| id.clone()).collect();
                async move {
                    match ids.is_empty() {
                        true => HashMap::new(),
                        false => timeout(LOOK_TIMEOUT, backend.live_use(&ids))
                            .await
                            .unwrap_or_default(),
                    }
                }
            });
            join_all(looks).await.into_iter().flatten().collect()
        }
        .boxed()
    }

    fn processes(
        &self,
        backend: BackendKind,
        sandbox: SandboxId,
        most: usize,
    ) -> BoxFuture<'_, Option<Vec<SandboxProcess>>> {
        async move {
            let mut backends = self.configured.backends.iter();
            let backend = backends.find(|open| open.kind() == backend)?;
            let looked = timeout(LOOK_TIMEOUT, backend.processes(&sandbox, most));
            looked.await.ok().flatten()
        }
        .boxed()
    }

    fn running_output(&self, conversation: &ConversationKey) -> Option<RunningOutput> {
        let output = self.gateway.outputs().of(conversation)?;
        Some(RunningOutput {
            text: output.text,
            bytes: output.bytes,
            is_cut: output.is_cut,
        })
    }

    fn output_changes(&self) -> watch::Receiver<u64> {
        self.gateway.outputs().changes()
    }

    fn stop<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), ActFailed>> {
        async move {
            self.gateway
                .stop(conversation)
                .await
                .map_err(|error| failed(&error))
        }
        .boxed()
    }

    fn reset<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), ActFailed>> {
        async move {
            self.gateway
                .reset(conversation)
                .await
                .map_err(|error| failed(&error))
        }
        .boxed()
    }

    fn destroy<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), ActFailed>> {
        async move {
            self.gateway
                .destroy(conversation)
                .await
                .map_err(|error| failed(&error))
        }
        .boxed()
    }

    fn stop_sandbox<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), ActFailed>> {
        async move {
            let stopped = self.gateway.stop_sandbox(conversation).await;
            stopped.map_err(|error| failed(&error))
        }
        .boxed()
    }
}

fn failed(error: &ConversationActFailed) -> ActFailed {
    ActFailed(error.to_string())
}

/// Whether two values differ, also secrets, which are compared and never shown.
fn is_other(one: Option<&SettingValue>, other: Option<&SettingValue>) -> bool {
    match (one, other) {
        (Some(SettingValue::Secret(one)), Some(SettingValue::Secret(other))) => one != other,
        (one, other) => one.map(SettingValue::shown) != other.map(SettingValue::shown),
    }
}
