//! `hermetic gateway status`.

use std::fmt::Write as _;

use hermetic_config::Home;
use serde_json::json;

use super::start::log_path;
use crate::cli::Cli;
use crate::commands::inputs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gateway_state::{GatewayState, Seen, Stage, look};
use crate::output::{self, BOLD};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
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

pub(crate) fn run(cli: &Cli, args: &Args) -> Result<Exit, Failure> {
    // The configuration is not read: this works also when it is broken.
    let home = inputs(cli)?.home;
    let seen = look(&home);
    if args.json {
        output::print_json(&as_json(&home, &seen))?;
    } else if !args.quiet {
        output::print(&as_text(&home, &seen))?;
    }
    Ok(match &seen {
        Seen::Running(Some(state)) if state.stage == Stage::Running => Exit::Ok,
        Seen::Unknown(_) => Exit::Passed(UNKNOWN),
        _ => Exit::Passed(NOT_SERVING),
    })
}

fn as_json(home: &Home, seen: &Seen) -> serde_json::Value {
    let (running, state) = match seen {
        Seen::Stopped(state) => (Some(false), state.as_ref()),
        Seen::Running(state) => (Some(true), state.as_ref()),
        Seen::Unknown(_) => (None, None),
    };
    json!({
        "home": home.root(),
        "running": running,
        "state": state,
        "log": log_path(home),
    })
}

fn as_text(home: &Home, seen: &Seen) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{BOLD}{name:10}{BOLD:#} {value}");
    };
    line("home", home.root().display().to_string());
    match seen {
        Seen::Unknown(error) => {
            line(
                "gateway",
                format!("unknown: its lock cannot be read ({error})"),
            );
        }
        Seen::Stopped(last) => {
            line("gateway", "not running".to_owned());
            if let Some(ended) = last.as_ref().map(last_end) {
                line("last end", ended);
            }
        }
        Seen::Running(None) => line("gateway", "starting".to_owned()),
        Seen::Running(Some(state)) => {
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
        (Stage::StartupFailed, Some(why)) => format!("it did not start: {why}"),
        (Stage::Stopped, Some(why)) => why.clone(),
        // It had no time to say anything.
        _ => "killed, or lost with the machine".to_owned(),
    }
}
