//! `hermetic gateway status`.

use std::fmt::Write as _;

use hermetic_config::HomeFolder;
use serde_json::json;

use super::start::log_path;
use crate::cli::CommandLine;
use crate::commands::inputs;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::gateway_state::{GatewayState, LifeStage, ObservedGateway, look};
use crate::output::{self, BOLD};

#[derive(Debug, clap::Args)]
pub(crate) struct GatewayStatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print nothing; only set the exit code
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
}

/// As systemctl has it.
const NOT_SERVING: u8 = 3;
const UNKNOWN: u8 = 4;

pub(crate) fn run(
    cli: &CommandLine,
    args: &GatewayStatusArgs,
) -> Result<ExitReason, CommandFailure> {
    // The configuration is not read: this works also when it is broken.
    let home = inputs(cli)?.home;
    let seen = look(&home);
    if args.json {
        output::print_json(&as_json(&home, &seen))?;
    } else if !args.quiet {
        output::print(&as_text(&home, &seen))?;
    }
    Ok(match &seen {
        ObservedGateway::Running(Some(state)) if state.stage == LifeStage::Running => {
            ExitReason::Ok
        }
        ObservedGateway::Unknown(_) => ExitReason::Passed(UNKNOWN),
        _ => ExitReason::Passed(NOT_SERVING),
    })
}

fn as_json(home: &HomeFolder, seen: &ObservedGateway) -> serde_json::Value {
    let (running, state) = match seen {
        ObservedGateway::Stopped(state) => (Some(false), state.as_ref()),
        ObservedGateway::Running(state) => (Some(true), state.as_ref()),
        ObservedGateway::Unknown(_) => (None, None),
    };
    json!({
        "home": home.root(),
        "running": running,
        "state": state,
        "log": log_path(home),
    })
}

fn as_text(home: &HomeFolder, seen: &ObservedGateway) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{BOLD}{name:10}{BOLD:#} {value}");
    };
    line("home", home.root().display().to_string());
    match seen {
        ObservedGateway::Unknown(error) => {
            line(
                "gateway",
                format!("unknown: its lock cannot be read ({error})"),
            );
        }
        ObservedGateway::Stopped(last) => {
            line("gateway", "not running".to_owned());
            if let Some(ended) = last.as_ref().map(last_end) {
                line("last end", ended);
            }
        }
        ObservedGateway::Running(None) => line("gateway", "starting".to_owned()),
        ObservedGateway::Running(Some(state)) => {
            let since = GatewayState::now().saturating_sub(state.started);
            line(
                "gateway",
                format!(
                    "{} (pid {}, since {since} s, version {})",
                    state.stage.name(),
                    state.pid,
                    state.version
                ),
            );
            line("backend", state.backend.clone());
            line("at work", state.active_agents.to_string());
            for (name, platform) in &state.platforms {
                let error = platform.error.as_ref();
                let error = error.map_or_else(String::new, |error| format!(": {error}"));
                line(name, format!("{}{error}", platform.state));
            }
            if let Some(service) = &state.service {
                line("service", service.clone());
            }
        }
    }
    text
}

fn last_end(state: &GatewayState) -> String {
    match (state.stage, &state.exit_reason) {
        (LifeStage::StartupFailed, Some(why)) => format!("it did not start: {why}"),
        (LifeStage::Stopped, Some(why)) => why.clone(),
        // It had no time to say anything.
        _ => "killed, or lost with the machine".to_owned(),
    }
}
