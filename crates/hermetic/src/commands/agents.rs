//! `hermetic agents …`: somebody else's agents, installed for sandboxes.

mod check;

use std::fmt::Write as _;

use clap::Subcommand;
use hermetic_acp::AgentPrograms as _;
use hermetic_agent_programs::{
    AgentFolder, AgentPreset, InstallError, InstallProgress, InstalledAgent, PRESETS,
    PackageClient, install, remove,
};
use hermetic_app as app;
use hermetic_config::{Config, resolve_cli_backend};
use serde_json::json;

use super::load;
use crate::by_hand;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::gateway_state::{ObservedGateway, look};
use crate::output::{self, BOLD, DIM, printable};
use crate::ownership::refuse_root_for_another;

#[derive(Debug, clap::Args)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// List the agents that are known, and what each lacks
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch agents by npm or pip into the home; nothing of them runs on this machine
    #[command(after_help = "\
The version, and the checksum of every file that is fetched, come with hermetic. With --version they are what \
the registry says.

Examples:
  hermetic agents install claude
  hermetic agents install gemini --registry https://npm.example.org")]
    Install {
        #[arg(required = true, value_name = "NAME", value_parser = preset)]
        agents: Vec<&'static AgentPreset>,
        #[command(flatten)]
        fetching: FetchArgs,
    },
    /// Fetch installed agents again, in the version that comes with hermetic
    Update {
        /// Only these; all that are installed if none is named
        #[arg(value_name = "NAME", value_parser = preset)]
        agents: Vec<&'static AgentPreset>,
        #[command(flatten)]
        fetching: FetchArgs,
    },
    /// Remove agents from the home
    #[command(visible_alias = "rm")]
    Remove {
        #[arg(required = true, value_name = "NAME", value_parser = preset)]
        agents: Vec<&'static AgentPreset>,
    },
    /// Compare installed agents with their checksums, and start each in a sandbox until it answers
    Check {
        /// Only these; all that are installed if none is named
        #[arg(value_name = "NAME", value_parser = preset)]
        agents: Vec<&'static AgentPreset>,
        /// Compare the checksums and start nothing
        #[arg(long)]
        no_start: bool,
    },
}

#[derive(Debug, clap::Args)]
struct FetchArgs {
    /// Fetch this version, with the checksums that the registry tells
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Fetch from this registry, instead of the one that npm or pip is set up for
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
}

pub(crate) fn run(cli: &CommandLine, args: &AgentsArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let folder = match look(config.home()) {
        ObservedGateway::Stopped(_) => app::agent_folder(&config),
        ObservedGateway::Running(_) | ObservedGateway::Unknown(_) => {
            app::agent_folder(&config).in_use()
        }
    };
    match &args.command {
        AgentsCommand::List { json } => list(&config, &folder, *json),
        AgentsCommand::Install { agents, fetching } => {
            may_change(&config)?;
            install_all(&folder, agents, fetching)
        }
        AgentsCommand::Update { agents, fetching } => {
            may_change(&config)?;
            let named = those_installed(&folder, agents)?;
            install_all(&folder, &named, fetching)
        }
        AgentsCommand::Remove { agents } => {
            may_change(&config)?;
            // It shows their folders in each new sandbox, and one that is gone would keep all of them from starting.
            if let ObservedGateway::Running(_) = look(config.home()) {
                return Err(CommandFailure::new(
                    "a gateway that runs shows the agents' folders in its sandboxes",
                    "stop it (`hermetic gateway stop`), remove the agent, and start it again",
                ));
            }
            remove_all(&folder, agents)
        }
        AgentsCommand::Check { agents, no_start } => {
            let named = those_installed(&folder, agents)?;
            check::run(&config, &folder, &named, !*no_start)
        }
    }
}

fn preset(name: &str) -> Result<&'static AgentPreset, String> {
    AgentPreset::named(name).ok_or_else(|| format!("known are {}", AgentPreset::known()))
}

/// What is installed is started later with somebody's key: the agent itself does not choose it.
fn may_change(config: &Config) -> Result<(), CommandFailure> {
    by_hand::or_refuse(config)?;
    refuse_root_for_another(config.home())
}

fn install_all(
    folder: &AgentFolder,
    agents: &[&'static AgentPreset],
    fetching: &FetchArgs,
) -> Result<ExitReason, CommandFailure> {
    for preset in agents {
        let mut client = PackageClient::of(preset.source.registry);
        if let Some(registry) = &fetching.registry {
            client = client.at(registry);
        }
        let version = fetching.version.as_deref();
        let installed = install(folder, preset, version, &client, &mut show)
            .map_err(|error| failed(preset, &error))?;
        let InstalledAgent {
            version,
            files,
            bytes,
            ..
        } = &installed;
        output::progress("", false);
        let size = output::size(*bytes);
        let text = format!(
            "{} {version}: {files} files, {size}, checksums kept\n",
            preset.name
        );
        output::print(&printable_lines(&text))?;
    }
    if !agents.is_empty() {
        output::print(
            "A gateway that runs shows it to new sandboxes. Where this was the first agent of this home, or its key \
             is new, it takes a restart: hermetic gateway restart\n",
        )?;
    }
    Ok(ExitReason::Ok)
}

fn show(progress: InstallProgress<'_>) {
    use std::io::IsTerminal as _;
    // Elsewhere than on a terminal the line at the end is enough.
    if !std::io::stderr().is_terminal() {
        return;
    }
    let line = match progress {
        InstallProgress::Waits => "waiting for another `hermetic agents`…".to_owned(),
        InstallProgress::Fetches { what, bytes } => {
            format!("fetching {what}: {}", output::size(bytes))
        }
        InstallProgress::SumsUp { what } => format!("summing up {what}"),
    };
    output::progress(&line, false);
}

fn failed(preset: &AgentPreset, error: &InstallError) -> CommandFailure {
    output::progress("", false);
    let failure = CommandFailure::caused(error, error.remedy());
    CommandFailure::new(
        format!("{} was not installed: {failure}", preset.name),
        error.remedy(),
    )
}

fn remove_all(
    folder: &AgentFolder,
    agents: &[&'static AgentPreset],
) -> Result<ExitReason, CommandFailure> {
    for preset in agents {
        let was_there = remove(folder, preset)
            .map_err(|error| CommandFailure::caused(&error, error.remedy()))?;
        let said = match was_there {
            true => format!("{} removed\n", preset.name),
            false => format!("{} was not installed\n", preset.name),
        };
        output::print(&said)?;
    }
    Ok(ExitReason::Ok)
}

/// Those that were named, or all that are there.
fn those_installed(
    folder: &AgentFolder,
    named: &[&'static AgentPreset],
) -> Result<Vec<&'static AgentPreset>, CommandFailure> {
    let is_there = |preset: &&AgentPreset| folder.root().join(preset.name).is_dir();
    if let Some(absent) = named.iter().find(|preset| !is_there(preset)) {
        return Err(CommandFailure::new(
            format!("{} is not installed", absent.name),
            format!("hermetic agents install {}", absent.name),
        ));
    }
    match named.is_empty() {
        true => Ok(PRESETS.iter().filter(is_there).collect()),
        false => Ok(named.to_vec()),
    }
}

fn list(
    config: &Config,
    folder: &AgentFolder,
    as_json: bool,
) -> Result<ExitReason, CommandFailure> {
    let kind = resolve_cli_backend(config)?;
    let listings = app::agent_programs(config).list(kind);
    let installed = |name: &str| folder.installed(name).ok().flatten();
    if as_json {
        let row = |preset: &AgentPreset| {
            let listing = listings.iter().find(|listing| listing.name == preset.name);
            let keys: Vec<_> = preset.keys.iter().map(|key| key.variable).collect();
            json!({
                "name": preset.name,
                "title": preset.title,
                "package": preset.source.package,
                "version": preset.source.version,
                "installed": installed(preset.name),
                "keys": keys,
                "missing": listing.and_then(|listing| listing.missing.as_deref()),
            })
        };
        let rows: Vec<_> = PRESETS.iter().map(row).collect();
        output::print_json(&rows)?;
        return Ok(ExitReason::Ok);
    }
    let mut text = String::new();
    for listing in &listings {
        let state = match installed(&listing.name) {
            Some(agent) => format!("installed, {}", output::size(agent.bytes)),
            None => "not installed".to_owned(),
        };
        let (name, about) = (&listing.name, printable(&listing.about));
        let _ = writeln!(
            text,
            "{BOLD}{name:10}{BOLD:#} {about}  {DIM}({state}){DIM:#}"
        );
        if let Some(missing) = &listing.missing {
            let _ = writeln!(text, "{:10} {}", "", printable(missing));
        }
    }
    output::print(&text)?;
    Ok(ExitReason::Ok)
}

/// What a registry named is shown on a person's terminal.
fn printable_lines(text: &str) -> String {
    format!("{}\n", printable(text.trim_end()))
}
