//! `hermetic egress verify`: every way out is tried from inside a real sandbox.

mod stage;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use hermetic_app::{self as app, Caller};
use hermetic_config::{Config, EgressMode, resolve_cli_backend, resolve_gateway_backend};
use hermetic_egress::{Egress, client_hello};
use hermetic_policy::{Cleared, EgressProbe, OwnProgram};
use hermetic_sandbox::{Lifeline, Network, PassingSandbox, Persistence, Sandbox, Spec};
use hermetic_session::{Outlet, PROXY_PORT};
use hermetic_types::{BackendKind, Boundary, ConversationKey, SandboxId};
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::stage::{ALLOWED, ELSEWHERE, Stage};
use super::super::load;
use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, BOLD};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is sent to any host: a sandbox that has a route fails at once, and names are answered by this
program. Exit code 0 means that everything held.")]
pub(super) struct Args {
    /// Try this backend, instead of the configured ones
    #[arg(long, value_name = "BACKEND")]
    backend: Option<BackendKind>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const MOST_OUTPUT: usize = 64 << 10;
const LONGEST: Duration = Duration::from_secs(120);

/// Something that was tried.
#[derive(Debug, Serialize)]
struct Row {
    backend: BackendKind,
    tried: String,
    state: State,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Held,
    Open,
    /// Nobody knows, which is no better than open.
    Untried,
}

pub(super) fn run(cli: &Cli, args: &Args) -> Result<Exit, Failure> {
    let config = load(cli)?;
    let rows = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::caused(&error, "free some memory or processes"))?
        .block_on(try_all(&config, args))?;
    let held = rows.iter().all(|row| row.state == State::Held);
    if args.json {
        output::print_json(&json!({ "held": held, "rows": rows }))?;
    } else {
        output::print(&table(&rows))?;
    }
    Ok(if held { Exit::Ok } else { Exit::Failed })
}

async fn try_all(config: &Config, args: &Args) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for kind in kinds(config, args)? {
        if app::boundary(kind) == Boundary::Judged {
            rows.push(Row {
                backend: kind,
                tried: "the seal".to_owned(),
                state: State::Open,
                detail: "commands have the network of the machine they run on".to_owned(),
            });
            continue;
        }
        rows.extend(try_one(config, kind).await?);
    }
    Ok(rows)
}

fn kinds(config: &Config, args: &Args) -> Result<Vec<BackendKind>, Failure> {
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

async fn try_one(config: &Config, kind: BackendKind) -> Result<Vec<Row>, Failure> {
    let installation = app::installation(config.home())?;
    let backend = app::backend(config, &installation, kind, Caller::Chats)?;
    let stage = Stage::build()
        .await
        .map_err(|error| Failure::caused(&error, "free a port on the loopback"))?;
    let gate = match config.egress().mode {
        EgressMode::Closed => None,
        EgressMode::Allowlist | EgressMode::Open => Some(stage.gate(app::rules_text(config))?),
    };
    let spec = Spec {
        installation,
        conversation: ConversationKey::new("hermetic:verify"),
        id: SandboxId::random(),
        system: app::system(config, kind, Caller::Chats),
        limits: config.terminal().limits.clone(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: app::network(config, kind, gate.as_ref()),
        persistence: Persistence::Ephemeral,
        lifeline: Lifeline::Creator,
        lifetime: LONGEST,
    };
    let closed_by = match gate {
        Some(_) => "terminal.docker_network is false",
        None => "gateway.egress.mode is closed",
    };
    let trial = |proxied| trial(stage.port, proxied, closed_by);
    // Made like any other.
    let sandbox = PassingSandbox::create(&backend, &spec).await?;
    let said = said_inside(&sandbox, &spec, gate.as_ref(), trial).await;
    sandbox.destroy().await?;
    let leaves = matches!(spec.network, Network::Proxied { .. });
    Ok(judge(kind, &said?, leaves.then_some(&stage)))
}

/// What the trial prints.
async fn said_inside(
    sandbox: &Sandbox,
    spec: &Spec,
    gate: Option<&Arc<Egress>>,
    trial: impl FnOnce(bool) -> Cleared,
) -> Result<String, Failure> {
    let (works, stop) = (TaskTracker::new(), CancellationToken::new());
    let outlet = match (gate, &spec.network) {
        (Some(gate), Network::Proxied { port }) => Some(
            Outlet::open(
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
        .run(trial(outlet.is_some()), MOST_OUTPUT, &stop)
        .await
        .map_err(|error| Failure::caused(&error, "the image needs bash"));
    if let Some(outlet) = outlet {
        outlet.close().await;
    }
    let finished = ran?;
    if finished.dropped.is_some() {
        return Err(Failure::new(
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

fn judge(kind: BackendKind, said: &str, stage: Option<&Stage>) -> Vec<Row> {
    let row = |tried: &str, state, detail: &str| Row {
        backend: kind,
        tried: tried.to_owned(),
        state,
        detail: detail.to_owned(),
    };
    let mut rows: Vec<Row> = said
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, '\t');
            let (tried, state, detail) = (parts.next()?, parts.next()?, parts.next()?);
            let state = match state {
                "held" => State::Held,
                "open" => State::Open,
                _ => State::Untried,
            };
            Some(row(tried, state, detail))
        })
        .collect();
    if let Some(stage) = stage {
        rows.push(match stage.saw(ELSEWHERE) {
            true => row("another TLS name in a tunnel", State::Open, "it arrived"),
            false => row(
                "another TLS name in a tunnel",
                State::Held,
                "cut before the dial",
            ),
        });
        rows.push(match stage.saw(ALLOWED) {
            true => row("an allowed host, by the proxy", State::Held, "reached"),
            false => row(
                "an allowed host, by the proxy",
                State::Untried,
                "not reached",
            ),
        });
    }
    if rows.is_empty() {
        rows.push(row("the trial", State::Untried, "nothing was said inside"));
    }
    rows
}

fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.tried.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut last = None;
    for row in rows {
        if last != Some(row.backend) {
            let _ = writeln!(text, "{BOLD}{}{BOLD:#}", row.backend);
            last = Some(row.backend);
        }
        let state = match row.state {
            State::Held => "held   ",
            State::Open => "OPEN   ",
            State::Untried => "UNTRIED",
        };
        let _ = writeln!(text, "  {state} {:width$}  {}", row.tried, row.detail);
    }
    let wrong = rows.iter().filter(|row| row.state != State::Held).count();
    let _ = match wrong {
        0 => writeln!(text, "\nEverything held."),
        count => writeln!(text, "\n{count} of {} did not hold.", rows.len()),
    };
    text
}
