//! `hermetic policy …`: what would be run, asked about or refused, and why.

use std::env;
use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

use clap::Subcommand;
use hermetic_app as app;
use hermetic_config::Config;
use hermetic_policy::{Context, Explanation, explain, judge_line};
use hermetic_types::{BackendDescription, BackendKind, Command};
use serde::Deserialize;
use serde_json::json;

use super::load;
use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, BOLD, printable};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Show how a command is read and judged
    #[command(after_help = "\
Example:
  hermetic policy explain 'r=rm; $r -rf /'")]
    Explain {
        /// The shell text
        command: String,
        /// Judge it as this backend would
        #[arg(long, default_value = "local")]
        backend: BackendKind,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Judge many commands, as the local backend would
    #[command(after_help = "\
Reads lines of {\"cmd\": …} and writes {\"cmd\": …, \"verdict\": \"safe\"|\"dangerous\"|\"hardline\", \"why\": …}.

Example:
  echo '{\"cmd\": \"ls\"}' | hermetic policy judge --jsonl")]
    Judge {
        /// Read and write JSON lines (the only format)
        #[arg(long, required = true)]
        jsonl: bool,
    },
}

#[derive(Deserialize)]
struct Line {
    cmd: String,
}

pub(crate) fn run(cli: &Cli, args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        PolicyCommand::Explain {
            command,
            backend,
            json,
        } => {
            let config = load(cli)?;
            let context = context(&config, *backend);
            let explanation = explain(&app::policy(&config), &Command::script(command), &context);
            if *json {
                output::print_json(&explanation)?;
            } else {
                output::print(&as_text(&explanation))?;
            }
        }
        PolicyCommand::Judge { .. } => judge(&context_here())?,
    }
    Ok(Exit::Ok)
}

fn judge(context: &Context) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for (number, line) in io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| Failure::caused(&error, "check what is piped in"))?;
        if line.trim().is_empty() {
            continue;
        }
        let Line { cmd } = serde_json::from_str(&line).map_err(|error| {
            Failure::new(
                format!("line {} is not {{\"cmd\": …}}: {error}", number + 1),
                "write one JSON object a line",
            )
        })?;
        let judged = judge_line(&cmd, context);
        let said = json!({ "cmd": cmd, "verdict": judged.verdict, "why": judged.why });
        // Whoever waits for this answer before asking again gets it now.
        let line = format!("{said}\n");
        if out
            .write_all(line.as_bytes())
            .and_then(|()| out.flush())
            .is_err()
        {
            // A reader who has gone away is no failure of ours.
            return Ok(());
        }
    }
    Ok(())
}

fn context(config: &Config, backend: BackendKind) -> Context {
    let mut context = context_here();
    context.backend = backend;
    context.own_home = config.home().root().display().to_string();
    context
}

fn context_here() -> Context {
    let here = env::current_dir().map_or_else(|_| "/".into(), |path| path.display().to_string());
    let home = env::var("HOME").unwrap_or_else(|_| "/root".to_owned());
    Context::new(BackendDescription::judged(BackendKind::Local), here, home)
}

fn as_text(explanation: &Explanation) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{BOLD}{}{BOLD:#} on {}: {}",
        explanation.verdict, explanation.backend, explanation.rule
    );
    for command in &explanation.effective {
        let via = command.via.join(" > ");
        let arrow = if via.is_empty() {
            String::new()
        } else {
            format!("  ({via})")
        };
        let _ = writeln!(text, "  runs     {}{arrow}", printable(&command.line));
    }
    for finding in &explanation.findings {
        let _ = writeln!(text, "  because  {}", printable(&finding.reason));
    }
    for doubt in &explanation.doubts {
        let _ = writeln!(text, "  unclear  {}", printable(doubt));
    }
    text
}
