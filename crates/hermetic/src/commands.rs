//! The commands. A new one is a file, a line in [`TopCommand`] and a line in [`run`].

mod agents;
mod approvals;
mod audit;
mod audit_witnesses;
mod backends;
mod backup;
mod chat;
mod completions;
mod compose;
mod config;
mod cron;
mod dashboard;
mod demo;
mod doctor;
mod egress;
mod exec;
mod gateway;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod man;
#[cfg(feature = "matrix")]
mod matrix;
mod mcp;
mod memory;
mod migrate;
mod models;
mod pairing;
mod policy;
mod probe;
mod sandbox;
mod setup;
mod skills;
mod status;
mod store;

use clap::Subcommand;
pub(crate) use dashboard::first_link;
pub(crate) use exec::ExecArgs;
use hermetic_config::{Config, ConfigInputs, HomeFolder};

use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::service::SystemdService;

#[derive(Debug, Subcommand)]
pub(crate) enum TopCommand {
    /// Set up a bot from nothing: machine, model, platform, network, service
    Setup(setup::SetupArgs),
    /// Run, start, stop or install the gateway that serves the chats
    Gateway(gateway::GatewayArgs),
    /// Watch a sealed bot be attacked; needs no account and no key
    Demo(demo::DemoArgs),
    /// Talk to the agent in this terminal; its commands run in a sandbox
    Chat(chat::ChatArgs),
    /// Run one command in a sandbox
    Exec(exec::ExecArgs),
    /// List, inspect, stop and destroy the sandboxes of this home
    Sandbox(sandbox::SandboxArgs),
    /// Show where commands can run, and what the other backends lack
    Backends(backends::BackendsArgs),
    /// Show which models are configured, and whether they answer
    Models(models::ModelsArgs),
    /// Install somebody else's agents, to run them sealed
    Agents(agents::AgentsArgs),
    /// Check whether this machine can run sandboxes, and how well they are sealed
    Doctor(doctor::DoctorArgs),
    /// Print the YAML that a Kubernetes cluster needs before the first sandbox
    #[cfg(feature = "kubernetes")]
    Kubernetes(kubernetes::KubernetesArgs),
    /// Show the device by which people know this bot in encrypted rooms of Matrix
    #[cfg(feature = "matrix")]
    Matrix(matrix::MatrixArgs),
    /// Offer the sandboxed tools to other agents over MCP
    Mcp(mcp::McpArgs),
    /// Show whether a command would be run, asked about or refused
    Policy(policy::PolicyArgs),
    /// Control which hosts sandboxes may reach, and verify it
    Egress(egress::EgressArgs),
    /// Write the files for a deployment in containers
    Compose(compose::ComposeArgs),
    /// Check that a server answers; for health checks of containers
    Probe(probe::ProbeArgs),
    /// Show what runs and how well it is sealed
    Status(status::StatusArgs),
    /// Open the dashboard of a running gateway, or make links and tokens for it
    Dashboard(dashboard::DashboardArgs),
    /// Approve, list and revoke people who may message the bot
    Pairing(pairing::PairingArgs),
    /// List, make, pause and remove work on a schedule
    Cron(cron::CronArgs),
    /// List and answer the questions that wait for a person
    Approvals(approvals::ApprovalsArgs),
    /// Show, edit and review what is remembered of people
    Memory(memory::MemoryArgs),
    /// Move what is stored between a file and a PostgreSQL database
    Store(store::StoreArgs),
    /// List, review and approve skills
    Skills(skills::SkillsArgs),
    /// Show and verify the record of what was decided and run
    Audit(audit::AuditArgs),
    /// Back this installation up into one file, while it runs
    Backup(backup::BackupArgs),
    /// Put a backup into a home
    Restore(backup::restore::RestoreArgs),
    /// Come from Hermes Agent: show what works, what differs, and copy pairings
    Migrate(migrate::MigrateArgs),
    /// Show, check or create the configuration
    Config(config::ConfigArgs),
    /// Print the version
    Version,
    /// Print the completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Write the manual pages into a folder
    Man(man::ManArgs),
}

impl TopCommand {
    /// Whether it goes on by itself and its log is what a person has of it.
    pub(crate) fn serves(&self) -> bool {
        match self {
            Self::Gateway(args) => args.serves(),
            Self::Egress(args) => args.serves(),
            Self::Dashboard(args) => args.serves(),
            Self::Mcp(_) => true,
            _ => false,
        }
    }
}

pub(crate) fn run(cli: &CommandLine) -> Result<ExitReason, CommandFailure> {
    match &cli.command {
        TopCommand::Setup(args) => setup::run(cli, args),
        TopCommand::Gateway(args) => gateway::run(cli, args),
        TopCommand::Demo(args) => demo::run(args),
        TopCommand::Chat(args) => chat::run(cli, args),
        TopCommand::Exec(args) => exec::run(cli, args),
        TopCommand::Sandbox(args) => sandbox::run(cli, args),
        TopCommand::Backends(args) => backends::run(cli, args),
        TopCommand::Models(args) => models::run(cli, args),
        TopCommand::Agents(args) => agents::run(cli, args),
        TopCommand::Doctor(args) => doctor::run(cli, args),
        #[cfg(feature = "kubernetes")]
        TopCommand::Kubernetes(args) => kubernetes::run(cli, args),
        #[cfg(feature = "matrix")]
        TopCommand::Matrix(args) => matrix::run(cli, args),
        TopCommand::Mcp(args) => mcp::run(cli, args),
        TopCommand::Policy(args) => policy::run(cli, args),
        TopCommand::Egress(args) => egress::run(cli, args),
        TopCommand::Compose(args) => compose::run(cli, args),
        TopCommand::Probe(args) => probe::run(args),
        TopCommand::Status(args) => status::run(cli, args),
        TopCommand::Store(args) => store::run(cli, args),
        TopCommand::Dashboard(args) => dashboard::run(cli, args),
        TopCommand::Pairing(args) => pairing::run(cli, args),
        TopCommand::Cron(args) => cron::run(cli, args),
        TopCommand::Approvals(args) => approvals::run(cli, args),
        TopCommand::Memory(args) => memory::run(cli, args),
        TopCommand::Skills(args) => skills::run(cli, args),
        TopCommand::Audit(args) => audit::run(cli, args),
        TopCommand::Backup(args) => backup::run(cli, args),
        TopCommand::Restore(args) => backup::restore::run(cli, args),
        TopCommand::Migrate(args) => migrate::run(cli, args),
        TopCommand::Config(args) => config::run(cli, args),
        TopCommand::Version => version(),
        TopCommand::Completions(args) => completions::run(args),
        TopCommand::Man(args) => man::run(args),
    }
}

fn version() -> Result<ExitReason, CommandFailure> {
    crate::output::print(concat!("hermetic ", env!("CARGO_PKG_VERSION"), "\n"))?;
    Ok(ExitReason::Ok)
}

/// Drives a command that talks to the outside.
fn on_runtime(
    work: impl Future<Output = Result<ExitReason, CommandFailure>>,
) -> Result<ExitReason, CommandFailure> {
    let mut workers = tokio::runtime::Builder::new_multi_thread();
    drive(workers.worker_threads(2), work)
}

/// The same for one that does one thing after the other: what arrives wakes this very thread, and no
/// worker that would have to wake it.
fn on_this_thread<T>(
    work: impl Future<Output = Result<T, CommandFailure>>,
) -> Result<T, CommandFailure> {
    drive(&mut tokio::runtime::Builder::new_current_thread(), work)
}

fn drive<T>(
    builder: &mut tokio::runtime::Builder,
    work: impl Future<Output = Result<T, CommandFailure>>,
) -> Result<T, CommandFailure> {
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))?;
    let done = runtime.block_on(work);
    // A reader of our stdin may still sit in its system call; it has nothing to finish.
    runtime.shutdown_background();
    done
}

/// Reads the configuration; called once in a process.
fn load(cli: &CommandLine) -> Result<Config, CommandFailure> {
    Ok(hermetic_config::load(&inputs(cli)?)?)
}

/// A home that was named has to be there: a slip would become an installation of its own.
fn inputs(cli: &CommandLine) -> Result<ConfigInputs, CommandFailure> {
    let inputs = inputs_of_new_home(cli)?;
    let home = inputs.home.root();
    if cli.global.home.is_some() && home.exists() && !home.is_dir() {
        return Err(CommandFailure::new(
            format!("{} is a file, not a folder", home.display()),
            "check --home: it names the folder with config.yaml in it",
        ));
    }
    if cli.global.home.is_some() && !home.is_dir() {
        return Err(CommandFailure::new(
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
fn inputs_of_new_home(cli: &CommandLine) -> Result<ConfigInputs, CommandFailure> {
    Ok(ConfigInputs::of_process(cli.global.home.as_deref())?)
}

/// The home of a package, where root named none: his own is not where the package's gateway looks.
fn packaged_home_of_root(cli: &CommandLine) -> Option<HomeFolder> {
    let is_named = cli.global.home.is_some() || std::env::var_os("HERMES_HOME").is_some();
    let is_meant = rustix::process::geteuid().is_root() && !is_named;
    is_meant.then(SystemdService::packaged_home).flatten()
}

/// How somebody who is told a command types this program for a home: a package's belongs to its user.
fn typed_for(home: &HomeFolder) -> &'static str {
    match SystemdService::is_packaged_home(home) {
        true => "sudo -u hermetic hermetic",
        false => "hermetic",
    }
}
