//! The commands. A new one is a file, a line in [`Command`] and a line in [`run`].

mod approvals;
mod audit;
mod backends;
mod chat;
mod completions;
mod compose;
mod config;
mod doctor;
mod egress;
mod exec;
mod gateway;
mod man;
mod mcp;
mod pairing;
mod policy;
mod probe;
mod sandbox;
mod status;

use clap::Subcommand;
use hermetic_config::{Config, Inputs};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run, start, stop or install the gateway that serves the chats
    Gateway(gateway::Args),
    /// Talk to the agent in this terminal; its commands run in a sandbox
    Chat(chat::Args),
    /// Run one command in a sandbox
    Exec(exec::Args),
    /// List, inspect, stop and destroy the sandboxes of this home
    Sandbox(sandbox::Args),
    /// Show where commands can run, and what the other backends lack
    Backends(backends::Args),
    /// Check which layers of the seal hold on this machine
    Doctor(doctor::Args),
    /// Offer the sandboxed tools to other agents over MCP
    Mcp(mcp::Args),
    /// Show whether a command would be run, asked about or refused
    Policy(policy::Args),
    /// Manage what sandboxes may reach on the network, and verify it
    Egress(egress::Args),
    /// Write the files for a deployment in containers
    Compose(compose::Args),
    /// Check that a server answers; for health checks of containers
    Probe(probe::Args),
    /// Show what runs and how well it is sealed
    Status(status::Args),
    /// Let people in by the code they were given, and put them out again
    Pairing(pairing::Args),
    /// List and answer the questions that wait for a person
    Approvals(approvals::Args),
    /// Show and verify the record of what was decided and run
    Audit(audit::Args),
    /// Show, check or create the configuration
    Config(config::Args),
    /// Print the completion script for a shell
    Completions(completions::Args),
    /// Write the manual pages into a folder
    Man(man::Args),
}

impl Command {
    /// Whether it goes on by itself and its log is what a person has of it.
    pub(crate) fn serves(&self) -> bool {
        match self {
            Self::Gateway(args) => args.serves(),
            Self::Egress(args) => args.serves(),
            Self::Mcp(_) => true,
            _ => false,
        }
    }
}

pub(crate) fn run(cli: &Cli) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Gateway(args) => gateway::run(cli, args),
        Command::Chat(args) => chat::run(cli, args),
        Command::Exec(args) => exec::run(cli, args),
        Command::Sandbox(args) => sandbox::run(cli, args),
        Command::Backends(args) => backends::run(cli, args),
        Command::Doctor(args) => doctor::run(cli, args),
        Command::Mcp(args) => mcp::run(cli, args),
        Command::Policy(args) => policy::run(cli, args),
        Command::Egress(args) => egress::run(cli, args),
        Command::Compose(args) => compose::run(cli, args),
        Command::Probe(args) => probe::run(args),
        Command::Status(args) => status::run(cli, args),
        Command::Pairing(args) => pairing::run(cli, args),
        Command::Approvals(args) => approvals::run(cli, args),
        Command::Audit(args) => audit::run(cli, args),
        Command::Config(args) => config::run(cli, args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    }
}

/// Drives a command that talks to the outside.
fn on_runtime(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let mut workers = tokio::runtime::Builder::new_multi_thread();
    drive(workers.worker_threads(2), work)
}

/// The same for one that does one thing after the other: what arrives wakes this very thread, and no
/// worker that would have to wake it.
fn on_this_thread(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    drive(&mut tokio::runtime::Builder::new_current_thread(), work)
}

fn drive(
    builder: &mut tokio::runtime::Builder,
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| Failure::caused(&error, "free some memory or processes"))?;
    let done = runtime.block_on(work);
    // A reader of our stdin may still sit in its system call; it has nothing to finish.
    runtime.shutdown_background();
    done
}

/// Reads the configuration; called once in a process.
fn load(cli: &Cli) -> Result<Config, Failure> {
    Ok(hermetic_config::load(&inputs(cli)?)?)
}

/// A home that was named has to be there: a slip would become an installation of its own.
fn inputs(cli: &Cli) -> Result<Inputs, Failure> {
    let inputs = inputs_of_new_home(cli)?;
    let home = inputs.home.root();
    if cli.home.is_some() && !home.is_dir() {
        return Err(Failure::new(
            format!("there is no folder {}", home.display()),
            format!(
                "check --home; `hermetic --home {} config init` makes one",
                home.display()
            ),
        ));
    }
    Ok(inputs)
}

/// For what makes a home where there is none.
fn inputs_of_new_home(cli: &Cli) -> Result<Inputs, Failure> {
    Ok(Inputs::of_process(cli.home.as_deref())?)
}
