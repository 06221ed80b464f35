//! `hermetic policy …`: what would be run, asked about or refused, and why.

use std::env;
use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

use clap::Subcommand;
use hermetic_app as app;
use hermetic_config::Config;
use hermetic_policy::{JudgementContext, VerdictExplanation, explain, judge_line};
use hermetic_types::{BackendDescription, BackendKind, Command};
use serde::Deserialize;
use serde_json::json;

use super::load;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, BOLD, printable};

#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArgs {
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
struct CommandJson {
    cmd: String,
}

pub(crate) fn run(cli: &CommandLine, args: &PolicyArgs) -> Result<ExitReason, CommandFailure> {
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
    Ok(ExitReason::Ok)
}

fn judge(context: &JudgementContext) -> Result<(), CommandFailure> {
    let mut out = io::stdout().lock();
    for (number, line) in io::stdin().lock().lines().enumerate() {
        let line =
            line.map_err(|error| CommandFailure::caused(&error, "check what is piped in"))?;
        if line.trim().is_empty() {
            continue;
        }
        let CommandJson { cmd } = serde_json::from_str(&line).map_err(|error| {
            CommandFailure::new(
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

fn context(config: &Config, backend: BackendKind) -> JudgementContext {
    let mut context = context_here();
    context.backend = backend;
    context.own_home = config.home().root().display().to_string();
    context
}

fn context_here() -> JudgementContext {
    let here = env::current_dir().map_or_else(|_| "/".into(), |path| path.display().to_string());
    let home = env::var("HOME").unwrap_or_else(|_| "/root".to_owned());
    JudgementContext::new(BackendDescription::judged(BackendKind::Local), here, home)
}

fn as_text(explanation: &VerdictExplanation) -> String {
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
