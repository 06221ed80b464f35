//! The gateway's parts, from the configuration.

use std::sync::Arc;
use std::time::Duration;

use hermetic_agent::Agent;
use hermetic_chat::{AdapterState, Chat};
use hermetic_config::{BusyInput, Config, ResetMode, Resolved};
use hermetic_egress::EgressMetrics;
use hermetic_gateway::{
    Busy, GatewayMetrics, Parts, Resets, Settings, StoredAdapterState, Streaming,
};
use hermetic_redact::Redactor;
use hermetic_sandbox::Backend;
use hermetic_session::{DiskBounds, SandboxMetrics, Sandboxes, Spending};
use hermetic_store::Store;
use hermetic_types::{AccountId, InstallationId, Platform};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use super::egress::People;
use super::toolsets::{Elsewhere, toolsets};
use super::{Caller, access, approvals, boundary, model, platforms};
use crate::{Failure, Surroundings};

const ATTEMPTS: u32 = 3;

/// Every part of the gateway that this configuration describes, in these surroundings. What leaves goes
/// through `redactor`.
pub async fn gateway(
    config: &Config,
    resolved: &Resolved,
    redactor: Redactor,
    surroundings: Surroundings,
) -> Result<Parts, Failure> {
    if let Some(refusal) = super::refusals(config, resolved).into_iter().next() {
        return Err(refusal);
    }
    let kind = resolved.backend;
    let clock = surroundings.clock;
    let installation = super::installation(config.home())?;
    // Both take their time in a new home, and neither needs the other.
    let store = tokio::spawn(super::open_store(super::store_path(config)));
    // Looked at first: where no sandbox can be had, nothing else matters.
    let backends = match surroundings.backends {
        Some(given) => given,
        None => open_backends(config, resolved, &installation).await?,
    };
    let store = joined(store.await)?;
    let (chats, intakes) = match surroundings.chats {
        Some(given) => (given, Vec::new()),
        None => configured_chats(config, &store).await?,
    };
    let reviewer = match &surroundings.model {
        Some(given) => approvals::reviewer_with(config, Arc::clone(given)),
        None => approvals::reviewer(config)?,
    };
    let approvals = approvals::approval_service(
        config,
        &store,
        &chats,
        &redactor,
        (reviewer, Arc::clone(&clock)),
    )?;
    let mut registry = Registry::with_prefix("hermetic");
    let people = People {
        hosts: approvals.hosts(super::rule_book(config)),
        record: approvals.egress_record(),
        metrics: EgressMetrics::registered(&mut registry),
    };
    let gate = super::gate(config, Some(people))?;
    let plan = |kind| {
        let lifetime = config.gateway().sandbox_lifetime;
        let mut plan = super::plan(config, kind, lifetime, Caller::Chats);
        plan.network = super::network(config, kind, gate.as_ref());
        plan
    };
    let usual = plan(kind);
    let apart = Elsewhere::read(config, resolved).plans(plan);
    let sandboxes = Sandboxes::new(usual.clone(), installation, backends, store.ledger());
    let metrics = SandboxMetrics::registered(&mut registry);
    let sandboxes = sandboxes
        .with_clock(Arc::clone(&clock))
        .counting_in(metrics)
        .apart(apart.clone())
        .with_disk_bounds(DiskBounds {
            folder: config.home().state(),
            reserve_bytes: config.gateway().disk_reserve_bytes,
            most_bytes: config.gateway().sandboxes_disk_bytes,
        });
    let sandboxes = match &gate {
        Some(gate) => sandboxes.leaving_by(Arc::clone(gate), Spending::in_store(store.documents())),
        None => sandboxes,
    };
    let toolsets = toolsets(
        config, &usual, &apart, &redactor, &store, &sandboxes, &clock,
    );
    let model = match surroundings.model {
        Some(given) => given,
        None => model::model(config)?,
    };
    Ok(Parts {
        access: access::access(config, &store),
        intakes,
        sandboxes,
        settings: settings(config, resolved, model.name()),
        agent: Agent::new(model, model::limits(config), redactor.clone()),
        toolsets,
        approvals,
        chats,
        redactor,
        clock,
        metrics: GatewayMetrics::registered(&mut registry),
        registry: Arc::new(registry),
        store,
    })
}

/// Aside, because some of them ask a daemon and wait for it.
async fn open_backends(
    config: &Config,
    resolved: &Resolved,
    installation: &InstallationId,
) -> Result<Vec<Arc<dyn Backend>>, Failure> {
    let (config, installation) = (config.clone(), installation.clone());
    let (usual, elsewhere) = (resolved.backend, Elsewhere::read(&config, resolved));
    let open = move || elsewhere.open(&config, &installation, usual);
    joined(tokio::task::spawn_blocking(open).await)
}

/// The accounts that are configured, and the ports on which platforms call us.
async fn configured_chats(
    config: &Config,
    store: &Store,
) -> Result<(Vec<Arc<dyn Chat>>, Intakes), Failure> {
    let states = |account: &AccountId| -> Arc<dyn AdapterState> {
        Arc::new(StoredAdapterState::new(store, account))
    };
    let accounts = platforms::accounts(config, &states)?;
    let intakes = platforms::listen(&accounts).await?;
    let chats = accounts.into_iter().map(|account| account.chat);
    Ok((chats.collect(), intakes))
}

type Intakes = Vec<(TcpListener, axum::Router)>;

/// What a task of ours came to. One that panicked is a mistake in this program.
fn joined<T>(task: Result<Result<T, Failure>, tokio::task::JoinError>) -> Result<T, Failure> {
    task.map_err(|error| Failure::caused(&error, "report this as a bug"))?
}

fn settings(config: &Config, resolved: &Resolved, model: &str) -> Settings {
    Settings {
        busy: match config.agent().busy_input {
            BusyInput::Interrupt => Busy::Interrupt,
            BusyInput::Queue => Busy::Queue,
            BusyInput::Steer => Busy::Steer,
        },
        resets: resets(config),
        command_access: access::command_access(config),
        max_concurrent_sessions: config.sessions().max_concurrent_sessions,
        max_turns_per_user: config.gateway().max_turns_per_user,
        memory: match config.sessions().max_age_days {
            0 => None,
            days => Some(Duration::from_secs(u64::from(days) * 24 * 3600)),
        },
        inbound_bytes: config.gateway().max_inbound_media_bytes.unwrap_or(u64::MAX),
        streaming: streaming(config),
        typing_off: typing_off(config),
        attempts: ATTEMPTS,
        grace: config.agent().drain_timeout,
        confirm_destructive: config.approvals().confirm_destructive_slash,
        model: model.to_owned(),
        warnings: resolved.warnings(boundary),
    }
}

fn resets(config: &Config) -> Resets {
    let sessions = config.sessions();
    let (daily, idle) = match sessions.reset {
        ResetMode::None => (false, false),
        ResetMode::Daily => (true, false),
        ResetMode::Idle => (false, true),
        ResetMode::Both => (true, true),
    };
    let silent_on = sessions.reset_notify_exclude.iter();
    Resets {
        daily_at: daily.then_some(sessions.reset_hour),
        idle: idle.then_some(sessions.reset_idle),
        silent: !sessions.reset_notify,
        silent_on: silent_on.filter_map(|name| name.parse().ok()).collect(),
        triggers: sessions.reset_triggers.clone(),
    }
}

fn streaming(config: &Config) -> Option<Streaming> {
    let wanted = &config.agent().streaming;
    let on = wanted.enabled && wanted.transport != "off";
    on.then(|| Streaming {
        every: wanted.edit_interval,
        threshold: wanted.buffer_threshold,
        cursor: wanted.cursor.clone(),
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
