//! `hermetic sandbox exec`: one command in a sandbox that lives already.

use std::time::Duration;

use hermetic_config::Config;
use hermetic_types::{Command, CommandInput};

use super::rows::{ListedSandbox, find};
use super::{living, reach};
use crate::commands::exec::{duration, judging, no_program, relay, terminal, variable};
use crate::exit::ExitReason;
use crate::failure::CommandFailure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The command runs beside what the conversation runs there, with the same files, limits and way out.
Exit codes are those of `hermetic exec`.

Examples:
  hermetic sandbox exec 3f9 -- ls -la
  hermetic sandbox exec telegram:dm:42 -t -- bash")]
pub(crate) struct SandboxExecArgs {
    #[arg(value_name = "SANDBOX")]
    id: String,
    /// Kill the command after this time: 90, 90s, 5m, 2h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Set a variable; may be repeated
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Start in this folder inside
    #[arg(long, short = 'w', value_name = "FOLDER")]
    workdir: Option<String>,
    /// Run it without asking, where local or ssh would ask a person first
    #[arg(long)]
    yes: bool,
    /// Give the command a terminal
    #[arg(long, short = 't')]
    tty: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) async fn run(
    config: &Config,
    rows: &[ListedSandbox],
    args: &SandboxExecArgs,
) -> Result<ExitReason, CommandFailure> {
    let ran = exec(config, rows, args).await;
    let ran = ran.map_err(|failure| match failure.exit() {
        ExitReason::Passed(127) => no_program(&args.command),
        _ => failure,
    });
    ran.map_err(CommandFailure::of_exec)
}

async fn exec(
    config: &Config,
    rows: &[ListedSandbox],
    args: &SandboxExecArgs,
) -> Result<ExitReason, CommandFailure> {
    let row = living(find(rows, &args.id)?)?;
    let mut command = Command::words(args.command.iter().cloned());
    command.workdir = args.workdir.clone();
    command.env = args.env.iter().cloned().collect();
    command.stdin = CommandInput::Open;
    command.pty = args.tty.then(terminal::size);
    command.timeout = args.timeout;
    let cleared = judging::cleared(config, row.kind, command, args.yes)?;
    let sandbox = reach(row).await?;
    relay::run(&sandbox, cleared, args.tty).await
}
