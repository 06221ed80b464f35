//! `hermetic gateway …`.

pub(crate) mod install;
mod logs;
mod patient_start;
mod room_probe;
mod run;
pub(crate) mod setup;
pub(crate) mod start;
mod state_recorder;
mod status;
pub(crate) mod stop;
mod watchdog;

use clap::Subcommand;

use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;

#[derive(Debug, clap::Args)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    command: GatewayCommand,
}

#[derive(Debug, Subcommand)]
enum GatewayCommand {
    /// Serve the chats in the foreground until a signal arrives
    #[command(after_help = "\
SIGTERM or SIGINT (Ctrl-C) stops it; it then exits with 0. One gateway runs for each home.

Example:
  hermetic gateway run --log-format json")]
    Run(run::GatewayRunArgs),
    /// Start it in the background and wait until it is ready
    Start(start::GatewayStartArgs),
    /// Stop the gateway of this home and wait until it is gone
    Stop(stop::GatewayStopArgs),
    /// Stop, then start
    Restart(stop::GatewayStopArgs),
    /// Show whether it runs and how its platforms are
    #[command(
        after_help = "Exits with 0 if it serves, 3 if it does not, 4 if that cannot be told."
    )]
    Status(status::GatewayStatusArgs),
    /// Show the end of its log
    Logs(logs::GatewayLogsArgs),
    /// Connect a chat platform: asks for its token, tries it, and writes .env
    #[command(after_help = "\
A value that is in .env or the environment already is kept unless you say otherwise. Nothing is written \
before the platform has accepted it, or you have said that it is to be kept all the same.

Examples:
  hermetic gateway setup
  hermetic gateway setup telegram
  TELEGRAM_BOT_TOKEN=... hermetic gateway setup telegram --non-interactive --allow 4711")]
    Setup(setup::GatewaySetupArgs),
    /// Install a systemd unit that starts it with the machine and after a failure
    Install(install::GatewayInstallArgs),
    /// Remove the systemd unit
    Uninstall,
    /// Write the units of a package into a folder
    #[command(hide = true)]
    PackagedUnits { folder: std::path::PathBuf },
}

impl GatewayArgs {
    /// Whether it is the gateway itself, and not somebody who talks about one.
    pub(crate) fn serves(&self) -> bool {
        matches!(self.command, GatewayCommand::Run(_))
    }
}

pub(crate) fn run(cli: &CommandLine, args: &GatewayArgs) -> Result<ExitReason, CommandFailure> {
    match &args.command {
        GatewayCommand::Run(args) => run::run(cli, args),
        GatewayCommand::Start(args) => start::run(cli, args),
        GatewayCommand::Stop(args) => stop::run(cli, args),
        GatewayCommand::Restart(args) => restart(cli, args),
        GatewayCommand::Status(args) => status::run(cli, args),
        GatewayCommand::Logs(args) => logs::run(cli, args),
        GatewayCommand::Setup(args) => setup::run(cli, args),
        GatewayCommand::Install(args) => install::install(cli, args),
        GatewayCommand::Uninstall => install::uninstall(cli),
        GatewayCommand::PackagedUnits { folder } => install::write_packaged(cli, folder),
    }
}

pub(crate) fn restart(
    cli: &CommandLine,
    args: &stop::GatewayStopArgs,
) -> Result<ExitReason, CommandFailure> {
    stop::run(cli, args)?;
    start::run(cli, &start::GatewayStartArgs::default())
}
