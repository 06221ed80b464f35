//! The gateway's parts, from the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hermetic_agent::NanoDollars;
use hermetic_approvals::ApprovalMetrics;
use hermetic_chat::{AdapterState, Chat};
use hermetic_config::{
    BusyInput, Config, DayBudget, ImageInput, ResetMode, ResolvedBackend, SearchBackend,
    ToolProgressConfig,
};
use hermetic_egress::{Egress, EgressMetrics, OutgoingBudget};
use hermetic_gateway::{
    BusyMode, DayLimits, DelegationSettings, GatewayMetrics, GatewayParts, GatewaySettings,
    LeasedBackend, LeasedChat, ResetSettings, ServicePrices, SpendingLimits, StandByTerms,
    StoredAdapterState, StreamingSettings, ToolProgress, VoiceNotes,
};
use hermetic_redact::Redactor;
use hermetic_sandbox::Backend;
use hermetic_session::{OutgoingDay, OutgoingLimits, SandboxMetrics, Sandboxes, SpendingBook};
use hermetic_store::{Store, StoreMetrics};
use hermetic_types::{AccountId, InstallationId, Platform, SharedClock};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use super::agents::AgentMounts;
use super::dashboard::DashboardSources;
use super::egress::EgressApprovers;
use super::platforms::AdapterSurroundings;
use super::process_metrics::ProcessMetrics;
use super::toolsets::{BackendOverrides, toolsets};
use super::{
    BackendCaller, access, agents, approvals, boundary, dashboard, dashboard_front, model,
    platforms, telemetry, web,
};
use crate::{AppFailure, Surroundings};

/// How often a message is begun: one that kills the gateway each time must not do so for ever.
const TURN_ATTEMPTS: u32 = 3;

/// Every part of the gateway that this configuration describes, in these surroundings. What leaves goes
/// through `redactor`.
pub async fn gateway(
    config: &Config,
    resolved: &ResolvedBackend,
    redactor: Redactor,
    surroundings: Surroundings,
) -> Result<GatewayParts, AppFailure> {
    // Before anything is opened, made or asked: a configuration that is refused leaves no trace.
    if let Some(refusal) = super::refusals(config, resolved).into_iter().next() {
        return Err(refusal);
    }
    let kind = resolved.backend;
    let clock = surroundings.clock;
    let installation = super::installation(config.home())?;
    let traced = installation.clone();
    // Both take their time in a new home, and neither needs the other.
    let store = tokio::spawn(super::opened_store::open_store(
        super::StorePlace::of(config)?,
        Arc::clone(&clock),
    ));
    // Looked at first: where no sandbox can be had, nothing else matters.
    let backends = match surroundings.backends {
        Some(given) => given,
        None => open_backends(config, resolved, &installation, &clock).await?,
    };
    let mut shown = Registry::default();
    ProcessMetrics::register(&mut shown);
    let registry = shown.sub_registry_with_prefix("hermetic");
    let store = joined(store.await)?.counting_in(StoreMetrics::registered(registry));
    // Before anything is read: who stood by for a day must not go on with what was true then.
    let (stop, standing_by) = (surroundings.stop, surroundings.standing_by);
    let terms = StandByTerms {
        clock: Arc::clone(&clock),
        // What that takes is among the refusals above.
        shares: config.gateway().share_work,
        stop,
        waits: Box::new({
            let standing_by = standing_by.clone();
            move |_| {
                standing_by.send_replace(true);
            }
        }),
    };
    let home = (&installation, config.home());
    let lease = super::serving::serving_lease(&store, home, &backends, terms).await?;
    standing_by.send_replace(false);
    let backends: Vec<_> = match &lease {
        Some(lease) => backends
            .into_iter()
            .map(|backend| Arc::new(LeasedBackend::new(backend, lease.clock())) as Arc<dyn Backend>)
            .collect(),
        None => backends,
    };
    let store = match &lease {
        // Before any handle is taken from it: those that were taken earlier would write without
        // asking for the lease.
        Some(lease) => super::serving::fenced(store, lease).await?,
        None => store,
    };
    let (chats, intakes) = match surroundings.chats {
        Some(given) => (given, Vec::new()),
        None => configured_chats(config, &store, &clock).await?,
    };
    let browser = platforms::browser_account(config, &store, &clock);
    let own = browser.iter().map(|own| Arc::clone(own) as Arc<dyn Chat>);
    let chats = chats.into_iter().chain(own);
    let chats: Vec<_> = match &lease {
        Some(lease) => chats
            // Around every chat before anybody else gets one: approvals and the outbox hold them
            // too.
            .map(|chat| Arc::new(LeasedChat::new(chat, lease.clock())) as Arc<dyn Chat>)
            .collect(),
        None => chats.collect(),
    };
    let reviewer = match &surroundings.model {
        Some(given) => approvals::reviewer_with(config, Arc::clone(given)),
        None => approvals::reviewer(config, &clock)?,
    };
    let approvals = approvals::approval_service(
        config,
        &store,
        &chats,
        &redactor,
        (reviewer, Arc::clone(&clock)),
        ApprovalMetrics::registered(registry),
    )?;
    let feed = dashboard::egress_feed(config, &clock);
    let people = EgressApprovers {
        hosts: approvals.hosts(super::rule_book(config)),
        record: approvals.egress_record(),
        metrics: EgressMetrics::registered(registry),
        feed: feed.clone(),
    };
    let known = surroundings.agents.unwrap_or_else(|| agents::known(config));
    let programs = agents::programs(config, known);
    let overrides = BackendOverrides::read(config, resolved);
    let mut kinds: Vec<_> = overrides.kinds().map(|(_, kind)| kind).collect();
    kinds.insert(0, kind);
    let foreseen = programs.foreseen(&kinds);
    let gate = super::egress::timed_gate(config, Some(people), &foreseen, &clock)?;
    // Before the sandboxes: whatever leaves from the first of them on is counted.
    let outgoing = outgoing(config, &store, gate.as_ref(), &clock).await?;
    let dashboard = feed.map(|feed| {
        dashboard::dashboard(DashboardSources {
            config,
            resolved,
            backends: &backends,
            gate: gate.clone(),
            store: &store,
            approvals: approvals.registry(),
            redactor: &redactor,
            feed,
            browser,
            clock: &clock,
        })
    });
    let plan = |kind| {
        let lifetime = config.gateway().sandbox_lifetime;
        let mut plan = super::plan(config, kind, lifetime, BackendCaller::Chats);
        plan.network = super::network(config, kind, gate.as_ref());
        plan.mounts.extend(super::memory::skill_mount(config, kind));
        plan
    };
    let usual = plan(kind);
    let apart = overrides.plans(plan);
    let sandboxes = Sandboxes::new(
        usual.clone(),
        installation,
        backends,
        store.ledger(),
        Arc::clone(&clock),
    );
    let metrics = SandboxMetrics::registered(registry);
    let sandboxes = sandboxes
        .counting_in(metrics)
        .apart(apart.clone())
        .with_installed(Arc::new(AgentMounts(Arc::clone(&programs))))
        .with_disk_bounds(super::disk_bounds(config));
    let sandboxes = match &gate {
        Some(gate) => {
            sandboxes.with_egress(Arc::clone(gate), SpendingBook::in_store(store.documents()))
        }
        None => sandboxes,
    };
    let sandboxes = match &lease {
        Some(lease) => sandboxes.serving_since(super::serving::holder_epoch(lease)),
        None => sandboxes,
    };
    let toolsets = toolsets(
        config, &usual, &apart, &redactor, &store, &sandboxes, &clock,
    );
    let is_given = surroundings.model.is_some();
    let model = match surroundings.model {
        Some(given) => given,
        None => model::model(config, &clock)?,
    };
    let metrics = GatewayMetrics::registered(registry, &chats);
    let (traces, trace_export) = telemetry::traces(config, &traced, &clock, registry)?;
    let agent = model::agent(config, model, &redactor, &clock)?;
    let models = match is_given {
        true => BTreeMap::new(),
        false => model::others(config, &agent, &clock)?,
    };
    let vision = model::vision(config, &clock)?;
    let memory = super::memory::personal_memory(config, &store, &redactor);
    Ok(GatewayParts {
        memory,
        access: access::access(config, &store),
        intakes,
        sandboxes,
        settings: settings(config, resolved, agent.model_name())?,
        agent,
        models,
        agents: agents::choices(config, programs),
        toolsets,
        approvals,
        chats,
        redactor,
        clock,
        metrics,
        traces,
        trace_export,
        registry: Arc::new(shown),
        outgoing,
        voice: VoiceNotes::new(web::transcription(config), config.speech().echo_transcripts),
        vision,
        dashboard_socket: dashboard_front::dashboard_socket(config),
        dashboard,
        lease,
        store,
    })
}

/// Aside, because some of them ask a daemon and wait for it.
async fn open_backends(
    config: &Config,
    resolved: &ResolvedBackend,
    installation: &InstallationId,
    clock: &SharedClock,
) -> Result<Vec<Arc<dyn Backend>>, AppFailure> {
    let (config, installation) = (config.clone(), installation.clone());
    let clock = Arc::clone(clock);
    let (usual, elsewhere) = (resolved.backend, BackendOverrides::read(&config, resolved));
    let open = move || elsewhere.open(&config, &installation, usual, &clock);
    joined(tokio::task::spawn_blocking(open).await)
}

/// The accounts that are configured, and the ports on which platforms call us.
async fn configured_chats(
    config: &Config,
    store: &Store,
    clock: &SharedClock,
) -> Result<(Vec<Arc<dyn Chat>>, PlatformIntakes), AppFailure> {
    let states = |account: &AccountId| -> Arc<dyn AdapterState> {
        Arc::new(StoredAdapterState::new(store, account))
    };
    let around = AdapterSurroundings {
        clock: Arc::clone(clock),
        states: &states,
    };
    let accounts = platforms::accounts(config, &around)?;
    let intakes = platforms::listen(&accounts).await?;
    let chats = accounts.into_iter().map(|account| account.chat);
    Ok((chats.collect(), intakes))
}

type PlatformIntakes = Vec<(TcpListener, axum::Router)>;

/// What a task of ours came to. One that panicked is a mistake in this program.
fn joined<T>(task: Result<Result<T, AppFailure>, tokio::task::JoinError>) -> Result<T, AppFailure> {
    task.map_err(|error| AppFailure::caused(&error, "report this as a bug"))?
}

fn settings(
    config: &Config,
    resolved: &ResolvedBackend,
    model: &str,
) -> Result<GatewaySettings, AppFailure> {
    Ok(GatewaySettings {
        busy: match config.agent().busy_input {
            BusyInput::Interrupt => BusyMode::Interrupt,
            BusyInput::Queue => BusyMode::Queue,
            BusyInput::Steer => BusyMode::Steer,
        },
        resets: resets(config),
        command_access: access::command_access(config),
        max_concurrent_sessions: config.sessions().max_concurrent_sessions,
        max_turns_per_user: config.gateway().max_turns_per_user,
        memory: match config.sessions().max_age_days {
            0 => None,
            days => Some(Duration::from_secs(u64::from(days) * 24 * 3600)),
        },
        max_inbound_media_bytes: config.gateway().max_inbound_media_bytes.unwrap_or(u64::MAX),
        streaming: streaming(config),
        typing_off: typing_off(config),
        attempts: TURN_ATTEMPTS,
        grace: config.agent().drain_timeout,
        confirm_destructive: config.approvals().confirm_destructive_slash,
        model: model.to_owned(),
        models: model::told(config, model),
        show_media: config.agent().image_input != ImageInput::Text,
        checkpoints: config.agent().checkpoints,
        clarify_timeout: config.agent().clarify_timeout,
        spending: spending(config),
        prices: prices(config),
        schedules: super::schedules(config)?,
        delegation: DelegationSettings {
            max_concurrent_children: config.delegation().max_concurrent_children,
            max_iterations: config.delegation().max_iterations,
            ..DelegationSettings::default()
        },
        warnings: resolved.warnings(boundary),
    })
}

fn prices(config: &Config) -> ServicePrices {
    let of = |dollars: Option<f64>| dollars.and_then(NanoDollars::from_dollars);
    let prices = config.budgets().prices;
    // A search engine of one's own costs nothing by the search.
    let search = config.web().search.as_ref();
    let is_own = search.is_some_and(|search| search.backend == SearchBackend::SearXng);
    ServicePrices {
        search: of(prices.search).or(is_own.then(NanoDollars::default)),
        picture: of(prices.picture),
        transcript: of(prices.transcript),
        speech: of(prices.speech),
    }
}

fn spending(config: &Config) -> SpendingLimits {
    let of = |budget: DayBudget| DayLimits {
        // An amount that cannot be is refused when the file is read.
        dollars: budget.dollars.and_then(NanoDollars::from_dollars),
        tokens: budget.tokens,
        tool_seconds: budget.tool_seconds,
    };
    let budgets = config.budgets();
    SpendingLimits {
        person: of(budgets.person),
        conversation: of(budgets.conversation),
        all: of(budgets.all),
    }
}

/// What leaves on a day, where that is bounded. What left before has to be known, or nothing is bounded.
async fn outgoing(
    config: &Config,
    store: &Store,
    gate: Option<&Arc<Egress>>,
    clock: &SharedClock,
) -> Result<Option<Arc<OutgoingDay>>, AppFailure> {
    let budgets = config.budgets();
    let limits = OutgoingLimits {
        person: budgets.person.bytes_out,
        conversation: budgets.conversation.bytes_out,
        all: budgets.all.bytes_out,
    };
    let Some(gate) = gate.filter(|_| !limits.is_none()) else {
        return Ok(None);
    };
    let loaded = OutgoingDay::load(store.documents(), limits, Arc::clone(clock)).await;
    let day = Arc::new(loaded.map_err(|error| AppFailure::caused(&error, error.remedy()))?);
    // Only with the sums of before: a budget that began at zero with each restart would be none.
    gate.bound_outgoing(Arc::clone(&day) as Arc<dyn OutgoingBudget>);
    Ok(Some(day))
}

fn resets(config: &Config) -> ResetSettings {
    let sessions = config.sessions();
    let (daily, idle) = match sessions.reset {
        ResetMode::None => (false, false),
        ResetMode::Daily => (true, false),
        ResetMode::Idle => (false, true),
        ResetMode::Both => (true, true),
    };
    let silent_on = sessions.reset_notify_exclude.iter();
    ResetSettings {
        daily_at: daily.then_some(sessions.reset_hour),
        idle: idle.then_some(sessions.reset_idle),
        silent: !sessions.reset_notify,
        silent_on: silent_on.filter_map(|name| name.parse().ok()).collect(),
        triggers: sessions.reset_triggers.clone(),
    }
}

fn streaming(config: &Config) -> Option<StreamingSettings> {
    let wanted = &config.agent().streaming;
    let on = wanted.enabled && wanted.transport != "off";
    on.then(|| StreamingSettings {
        every: wanted.edit_interval,
        threshold: wanted.buffer_threshold,
        cursor: wanted.cursor.clone(),
        progress: match config.agent().tool_progress {
            ToolProgressConfig::Off => ToolProgress::Off,
            ToolProgressConfig::New => ToolProgress::New,
            ToolProgressConfig::All => ToolProgress::All,
            ToolProgressConfig::Verbose => ToolProgress::Verbose,
        },
    })
}

/// Platforms whose people are not shown that an answer is coming.
fn typing_off(config: &Config) -> Vec<Platform> {
    let platforms = config.platforms().all().into_iter();
    platforms
        .filter(|platform| !platform.typing_indicator)
        .filter_map(|platform| platform.name.parse().ok())
        .collect()
}
