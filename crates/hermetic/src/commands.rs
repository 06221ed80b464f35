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
    /// Serve the chats
    Gateway(gateway::Args),
    /// Talk to the agent here; what it runs, it runs in a sandbox
    Chat(chat::Args),
    /// Run one command in a sandbox
    Exec(exec::Args),
    /// The sandboxes of this home
    Sandbox(sandbox::Args),
    /// Where commands could run, and what is missing elsewhere
    Backends(backends::Args),
    /// Which layers of the seal hold here
    Doctor(doctor::Args),
    /// The tools over MCP, for other agents
    Mcp(mcp::Args),
    /// What would be run, asked about or refused
    Policy(policy::Args),
    /// The way out: its rules, its record, a proxy on its own, and the proof that there is no other
    Egress(egress::Args),
    /// Write the files for a deployment in containers
    Compose(compose::Args),
    /// Is a server there and well? For health checks
    Probe(probe::Args),
    /// What runs, and how sealed it is
    Status(status::Args),
    /// Who may write: codes of strangers, and people let in by one
    Pairing(pairing::Args),
    /// Questions that wait for a person
    Approvals(approvals::Args),
    /// The record of what was decided and run
    Audit(audit::Args),
    /// Look at the configuration, check it, start one
    Config(config::Args),
    /// Print completions for a shell
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
