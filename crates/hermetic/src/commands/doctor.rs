//! `hermetic doctor`: which layers hold here, and what to do about those that do not.

mod attack;
pub(crate) mod chats;
mod production;

use std::fmt::Write as _;

use hermetic_app::{self as app, BackendCaller};
use hermetic_config::{Config, ConfigProblem, resolve_gateway_backend};
use hermetic_sandbox::{BackendReadiness, LayerState};
use hermetic_types::BackendKind;
use serde_json::{Value, json};

use self::chats::CheckedAccount;
use super::{load, mcp};
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, BOLD, DIM};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Also asks the chat platforms whether they know the configured accounts; not with --backend, --attack \
or --production.

Exits with 1 if a required layer is missing, an account does not work, an attack got through or \
--production found something weak.

Examples:
  hermetic doctor --backend native
  hermetic doctor --attack
  hermetic doctor --production")]
pub(crate) struct DoctorArgs {
    /// Examine this backend instead of the gateway's
    #[arg(long, value_name = "BACKEND")]
    backend: Option<BackendKind>,
    /// Attack a fresh sandbox from inside and report what held
    #[arg(long)]
    attack: bool,
    /// Check this machine and configuration against the production checklist
    #[arg(long, conflicts_with_all = ["attack", "backend"])]
    production: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(cli: &CommandLine, args: &DoctorArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let kind = match args.backend {
        Some(kind) => kind,
        None => resolve_gateway_backend(&config)?.backend,
    };
    if args.production {
        return production::run(&runtime()?, &config, args.json);
    }
    if args.attack {
        return attack::run(&runtime()?, &config, kind, args.json);
    }
    let installation = app::installation(config.home())?;
    let backend = app::backend(&config, &installation, kind, BackendCaller::Onlooker)?;
    let runtime = runtime()?;
    let readiness = runtime.block_on(backend.readiness());
    let accounts = match args.backend {
        Some(_) => Vec::new(),
        None => runtime.block_on(chats::check(&config))?,
    };
    if args.json {
        let chats: Vec<_> = accounts.iter().map(CheckedAccount::as_json).collect();
        output::print_json(&json!({
            "backend": kind,
            "layers": readiness.layers,
            "chats": chats,
            "mcp_servers": server_warnings(&config),
            "mcp_logins": login_states(&config),
            "agents": agent_states(&config),
        }))?;
    } else {
        output::print(&as_text(kind, &readiness))?;
        output::print(&chats::as_text(&accounts))?;
        for warning in server_warnings(&config) {
            output::print(&format!("⚠ {warning}\n"))?;
        }
        for (name, standing) in mcp::standings(&config) {
            let mark = if standing.works() { "✓" } else { "⚠" };
            output::print(&format!("{mark} the MCP server {name}: {standing}\n"))?;
        }
        for agent in app::agent_standings(&config) {
            let (mark, said) = match &agent.wrong {
                None => ("✓", "it is there, and has what it needs".to_owned()),
                Some(wrong) => ("⚠", wrong.to_string()),
            };
            let line = format!("{mark} the agent {} ({}): {said}", agent.name, agent.key);
            output::print(&format!("{}\n", output::printable(&line)))?;
        }
    }
    let fine = readiness.missing().is_none() && accounts.iter().all(CheckedAccount::works);
    Ok(if fine {
        ExitReason::Ok
    } else {
        ExitReason::Failed
    })
}

/// What is to be known about MCP servers: those that are unsealed, and those that are not used.
fn server_warnings(config: &Config) -> Vec<&str> {
    let warnings = config.warnings().iter();
    let about_servers = warnings.filter(|warning| {
        let key = warning.key();
        key.is_some_and(|key| key.starts_with("mcp_servers."))
    });
    about_servers.map(ConfigProblem::what).collect()
}

fn login_states(config: &Config) -> Value {
    let standings = mcp::standings(config).into_iter();
    let named = standings.map(|(name, standing)| (name, standing.as_json()));
    Value::Object(named.collect())
}

/// Agents of others that answer by this configuration.
fn agent_states(config: &Config) -> Value {
    let standings = app::agent_standings(config).into_iter();
    let states = standings.map(|agent| {
        json!({
            "name": agent.name,
            "key": agent.key,
            "missing": agent.wrong.map(|wrong| wrong.to_string()),
        })
    });
    states.collect()
}

fn runtime() -> Result<tokio::runtime::Runtime, CommandFailure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))
}

fn as_text(kind: BackendKind, readiness: &BackendReadiness) -> String {
    let mut text = format!("{BOLD}{kind}{BOLD:#}\n");
    let width = readiness
        .layers
        .iter()
        .map(|layer| layer.name.len())
        .max()
        .unwrap_or(0);
    for layer in &readiness.layers {
        let mark = match layer.state {
            LayerState::Active => "holds  ",
            LayerState::Weaker => "weaker ",
            LayerState::Missing => "missing",
            LayerState::Required => "MISSING",
        };
        let _ = writeln!(text, "  {mark} {:width$}  {}", layer.name, layer.detail);
        if let Some(remedy) = &layer.remedy {
            let _ = writeln!(text, "  {:7} {:width$}  {DIM}= {remedy}{DIM:#}", "", "");
        }
    }
    match readiness.missing() {
        Some(layer) => {
            let _ = writeln!(text, "\nNothing may run here without: {}", layer.name);
        }
        None => text.push_str("\nSandboxes can run here.\n"),
    }
    text
}
