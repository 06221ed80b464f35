//! `hermetic gateway …`.

mod run;

use clap::Subcommand;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: GatewayCommand,
}

#[derive(Debug, Subcommand)]
enum GatewayCommand {
    /// Serve the chats in the foreground, until a signal
    #[command(after_help = "\
Ends on SIGTERM or SIGINT (Ctrl-C) with 0. One gateway runs for each home.

Example:
  hermetic gateway run --log-format json")]
    Run,
}

pub(crate) fn run(cli: &Cli, args: &Args) -> Result<Exit, Failure> {
    match args.command {
        GatewayCommand::Run => run::run(cli),
    }
}
