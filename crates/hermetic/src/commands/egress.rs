//! `hermetic egress …`: the way out, its rules, its record, and the proof that there is no other.

mod log;
mod presets;
mod rules;
mod serve;
mod verify;

use clap::Subcommand;

pub(super) use rules::note_change;

use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;

#[derive(Debug, clap::Args)]
pub(crate) struct EgressArgs {
    #[command(subcommand)]
    command: EgressCommand,
}

#[derive(Debug, Subcommand)]
enum EgressCommand {
    /// Run an allowlist proxy on a port: HTTP CONNECT, plain HTTP and SOCKS5
    #[command(after_help = serve::HELP)]
    Serve(serve::EgressServeArgs),
    /// Let sandboxes reach a host; a running gateway applies it at once
    #[command(after_help = rules::HELP)]
    Allow(rules::RuleChangeArgs),
    /// Forbid a host, whatever else is allowed
    Deny(rules::RuleChangeArgs),
    /// Remove a rule that `allow` or `deny` added
    Forget(rules::RuleChangeArgs),
    /// List every rule and where it is written
    Rules(rules::RuleListArgs),
    /// Show which hosts were reached and refused
    Log(log::EgressLogArgs),
    /// Try every way out, from inside a real sandbox of each configured backend
    Verify(verify::EgressVerifyArgs),
    /// Show the named lists of hosts
    Presets(presets::EgressPresetsArgs),
    /// Print the configured rules as an allowlist for Squid
    Squid,
}

impl EgressArgs {
    /// Whether it goes on by itself and its log is what a person has of it.
    pub(crate) fn serves(&self) -> bool {
        matches!(self.command, EgressCommand::Serve(_))
    }
}

pub(crate) fn run(cli: &CommandLine, args: &EgressArgs) -> Result<ExitReason, CommandFailure> {
    match &args.command {
        EgressCommand::Serve(args) => serve::run(args)?,
        EgressCommand::Allow(change) => rules::allow(cli, change)?,
        EgressCommand::Deny(change) => rules::deny(cli, change)?,
        EgressCommand::Forget(change) => rules::forget(cli, change)?,
        EgressCommand::Rules(list) => rules::list(cli, list)?,
        EgressCommand::Log(args) => log::run(cli, args)?,
        EgressCommand::Verify(args) => return verify::run(cli, args),
        EgressCommand::Presets(args) => presets::run(args)?,
        EgressCommand::Squid => rules::squid(cli)?,
    }
    Ok(ExitReason::Ok)
}
