//! `hermetic egress verify`: every way out is tried from inside a real sandbox.

mod stage;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use hermetic_app::{self as app, BackendCaller};
use hermetic_config::{Config, EgressMode, resolve_cli_backend, resolve_gateway_backend};
use hermetic_egress::{Egress, client_hello};
use hermetic_policy::{Cleared, EgressProbe, OwnProgram};
use hermetic_sandbox::{
    NetworkMode, PassingSandbox, Sandbox, SandboxLifeline, SandboxPersistence, SandboxSpec,
};
use hermetic_session::{EgressPort, PROXY_PORT};
use hermetic_types::{BackendKind, Boundary, ConversationKey, SandboxId};
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::stage::{ALLOWED, ELSEWHERE, VerifyStage};
use super::super::load;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, BOLD};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is sent to any host: a sandbox that has a route fails at once, and names are answered by this \
program. Exit code 0 means that everything held.")]
pub(super) struct EgressVerifyArgs {
    /// Try this backend, instead of the configured ones
    #[arg(long, value_name = "BACKEND")]
    backend: Option<BackendKind>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const MOST_OUTPUT: usize = 64 << 10;
const TRIAL_TIME_LIMIT: Duration = Duration::from_secs(120);

/// Something that was tried.
#[derive(Debug, Serialize)]
struct VerifyRow {
    backend: BackendKind,
    tried: String,
    state: VerifyState,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum VerifyState {
    Held,
    Open,
    /// Nobody knows, which is no better than open.
    Untried,
}

pub(super) fn run(
    cli: &CommandLine,
    args: &EgressVerifyArgs,
) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let rows = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))?
        .block_on(try_all(&config, args))?;
    let held = rows.iter().all(|row| row.state == VerifyState::Held);
    if args.json {
        output::print_json(&json!({ "held": held, "rows": rows }))?;
    } else {
        output::print(&table(&rows))?;
    }
    Ok(if held {
        ExitReason::Ok
    } else {
        ExitReason::Failed
    })
}

async fn try_all(
    config: &Config,
    args: &EgressVerifyArgs,
) -> Result<Vec<VerifyRow>, CommandFailure> {
    let mut rows = Vec::new();
    for kind in kinds(config, args)? {
        if app::boundary(kind) == Boundary::Judged {
            rows.push(VerifyRow {
                backend: kind,
                tried: "the seal".to_owned(),
                state: VerifyState::Open,
                detail: "commands have the network of the machine they run on".to_owned(),
            });
            continue;
        }
        rows.extend(try_one(config, kind).await?);
    }
    Ok(rows)
}

fn kinds(config: &Config, args: &EgressVerifyArgs) -> Result<Vec<BackendKind>, CommandFailure> {
    if let Some(kind) = args.backend {
        return Ok(vec![kind]);
    }
    let gateway = resolve_gateway_backend(config)?;
    let mut kinds = vec![gateway.backend];
    let others = gateway.platforms.values().copied();
    for kind in others.chain([resolve_cli_backend(config)?]) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

async fn try_one(config: &Config, kind: BackendKind) -> Result<Vec<VerifyRow>, CommandFailure> {
    let installation = app::installation(config.home())?;
    let backend = app::backend(config, &installation, kind, BackendCaller::Chats)?;
    let stage = VerifyStage::build()
        .await
        .map_err(|error| CommandFailure::caused(&error, "free a port on the loopback"))?;
    let gate = match config.egress().mode {
        EgressMode::Closed => None,
        EgressMode::Allowlist | EgressMode::Open => Some(stage.gate(app::rules_text(config))?),
    };
    let spec = SandboxSpec {
        installation,
        conversation: ConversationKey::new("hermetic:verify"),
        id: SandboxId::random(),
        system: app::system(config, kind, BackendCaller::Chats),
        limits: config.terminal().limits.clone(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: app::network(config, kind, gate.as_ref()),
        persistence: SandboxPersistence::Ephemeral,
        lifeline: SandboxLifeline::Creator,
        lifetime: TRIAL_TIME_LIMIT,
    };
    let closed_by = match gate {
        Some(_) => "terminal.docker_network is false",
        None => "gateway.egress.mode is closed",
    };
    let trial = |proxied| trial(stage.port, proxied, closed_by);
    // Made like any other.
    let sandbox = PassingSandbox::create(&backend, &spec).await?;
    let said = said_inside(&sandbox, &spec, gate.as_ref(), trial).await;
    // Before what was said is looked at: one that said nothing has to go as well.
    sandbox.destroy().await?;
    let leaves = matches!(spec.network, NetworkMode::Proxied { .. });
    Ok(judge(kind, &said?, leaves.then_some(&stage)))
}

/// What the trial prints.
async fn said_inside(
    sandbox: &Sandbox,
    spec: &SandboxSpec,
    gate: Option<&Arc<Egress>>,
    trial: impl FnOnce(bool) -> Cleared,
) -> Result<String, CommandFailure> {
    let (works, stop) = (TaskTracker::new(), CancellationToken::new());
    let egress_port = match (gate, &spec.network) {
        (Some(gate), NetworkMode::Proxied { port }) => Some(
            EgressPort::open(
                sandbox,
                &spec.conversation,
                gate,
                None,
                *port,
                &works,
                &stop,
            )
            .await,
        ),
        _ => None,
    };
    let ran = sandbox
        .run(trial(egress_port.is_some()), MOST_OUTPUT, &stop)
        .await
        .map_err(|error| CommandFailure::caused(&error, "the image needs bash"));
    if let Some(egress_port) = egress_port {
        egress_port.close().await;
    }
    let finished = ran?;
    if finished.dropped.is_some() {
        return Err(CommandFailure::new(
            "the sandbox ended before everything was tried",
            "try again; if it persists, report it",
        ));
    }
    Ok(String::from_utf8_lossy(&finished.stdout.into_bytes()).into_owned())
}

fn trial(origin: u16, proxied: bool, closed_by: &'static str) -> Cleared {
    Cleared::own_program(OwnProgram::ProbeEgress(EgressProbe {
        proxy: proxied.then_some(PROXY_PORT),
        origin,
        closed_by,
        right_hello: client_hello(ALLOWED),
        wrong_hello: client_hello(ELSEWHERE),
    }))
}

fn judge(kind: BackendKind, said: &str, stage: Option<&VerifyStage>) -> Vec<VerifyRow> {
    let row = |tried: &str, state, detail: &str| VerifyRow {
        backend: kind,
        tried: tried.to_owned(),
        state,
        detail: detail.to_owned(),
    };
    let mut rows: Vec<VerifyRow> = said
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, '\t');
            let (tried, state, detail) = (parts.next()?, parts.next()?, parts.next()?);
            let state = match state {
                "held" => VerifyState::Held,
                "open" => VerifyState::Open,
                _ => VerifyState::Untried,
            };
            Some(row(tried, state, detail))
        })
        .collect();
    if let Some(stage) = stage {
        rows.push(match stage.saw(ELSEWHERE) {
            true => row(
                "another TLS name in a tunnel",
                VerifyState::Open,
                "it arrived",
            ),
            false => row(
                "another TLS name in a tunnel",
                VerifyState::Held,
                "cut before the dial",
            ),
        });
        rows.push(match stage.saw(ALLOWED) {
            true => row(
                "an allowed host, by the proxy",
                VerifyState::Held,
                "reached",
            ),
            false => row(
                "an allowed host, by the proxy",
                VerifyState::Untried,
                "not reached",
            ),
        });
    }
    if rows.is_empty() {
        rows.push(row(
            "the trial",
            VerifyState::Untried,
            "nothing was said inside",
        ));
    }
    rows
}

fn table(rows: &[VerifyRow]) -> String {
    let width = rows.iter().map(|row| row.tried.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut last = None;
    for row in rows {
        if last != Some(row.backend) {
            let _ = writeln!(text, "{BOLD}{}{BOLD:#}", row.backend);
            last = Some(row.backend);
        }
        let state = match row.state {
            VerifyState::Held => "held   ",
            VerifyState::Open => "OPEN   ",
            VerifyState::Untried => "UNTRIED",
        };
        let _ = writeln!(text, "  {state} {:width$}  {}", row.tried, row.detail);
    }
    let wrong = rows
        .iter()
        .filter(|row| row.state != VerifyState::Held)
        .count();
    let _ = match wrong {
        0 => writeln!(text, "\nEverything held."),
        count => writeln!(text, "\n{count} of {} did not hold.", rows.len()),
    };
    text
}
