//! `hermetic setup`: from nothing to a bot that runs, in one conversation at the terminal.
//!
//! Each step keeps what is there already, a Hermes user's values included, and writes nothing before it was
//! tried. Steps can be left out and taken up again by saying it once more.

mod config_file;
mod model;

use std::fmt::Write as _;

use hermetic_app::{self as app, BackendCaller};
use hermetic_audit::RuleChange;
use hermetic_config::{Config, ConfigInputs, resolve_gateway_backend};
use hermetic_egress::{RuleEffect, RulePreset, WrittenRule};
use hermetic_types::{Boundary, Platform};

use super::doctor::chats::{self, CheckedAccount};
use super::egress::note_change;
use super::gateway::setup::prompt::SetupPrompt;
use super::gateway::{install, setup as platform_setup, start};
use super::{inputs_of_new_home, migrate, on_this_thread};
use crate::by_hand;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, BOLD, DIM};
use crate::ownership::refuse_root_for_another;
use crate::service::{SystemdScope, SystemdService};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
What is set already is kept: the configuration of Hermes Agent, .env and the environment. A model and a \
platform are tried before anything is written.

Examples:
  hermetic setup
  TELEGRAM_BOT_TOKEN=... OPENROUTER_API_KEY=... hermetic setup --non-interactive \\
      --provider openrouter --model some/model --platform telegram --allow 4711 --preset python --start")]
pub(crate) struct SetupArgs {
    /// Use this model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Ask this provider for it
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Ask this OpenAI-compatible endpoint for it, which ends in /v1
    #[arg(long, value_name = "URL", conflicts_with = "provider")]
    base_url: Option<String>,
    /// Connect this chat platform
    #[arg(long)]
    platform: Option<Platform>,
    /// Let these people write: their ids on the platform, separated by commas
    #[arg(long, value_name = "IDS")]
    allow: Option<String>,
    /// Let sandboxes reach what this preset names; `hermetic egress presets` lists them
    #[arg(long, value_name = "NAME")]
    preset: Vec<String>,
    /// Start the gateway at the end, as a service where there is systemd
    #[arg(long)]
    start: bool,
    /// Ask nothing; take values from the arguments, the environment and .env
    #[arg(long)]
    non_interactive: bool,
    /// Write values even if they could not be tried
    #[arg(long)]
    unchecked: bool,
}

pub(crate) fn run(cli: &CommandLine, args: &SetupArgs) -> Result<ExitReason, CommandFailure> {
    let inputs = inputs_of_new_home(cli)?;
    refuse_root_for_another(&inputs.home)?;
    let prompt = match args.non_interactive {
        true => SetupPrompt::nobody(),
        false => SetupPrompt::at_terminal()?,
    };
    on_this_thread(async {
        heading(1, "This machine")?;
        machine(&inputs).await?;
        heading(2, "The model")?;
        Box::pin(model::choose(&inputs, prompt, args)).await?;
        heading(3, "The chat")?;
        platform(&inputs, prompt, args).await?;
        heading(4, "What sandboxes may reach")?;
        network(&hermetic_config::load(&inputs)?, prompt, args)?;
        Ok(ExitReason::Ok)
    })?;
    heading(5, "Running it")?;
    service(cli, &hermetic_config::load(&inputs)?, prompt, args)
}

fn heading(number: usize, title: &str) -> Result<(), CommandFailure> {
    output::print(&format!("\n{BOLD}{number}  {title}{BOLD:#}\n"))
}

/// Without a sandbox nothing else is worth an answer.
async fn machine(inputs: &ConfigInputs) -> Result<(), CommandFailure> {
    let config = hermetic_config::load(inputs)?;
    by_hand::or_refuse(&config)?;
    for pid in migrate::running_hermes(&config) {
        output::print(&format!(
            "   a gateway of Hermes runs here (pid {pid}): end it before this one starts, with \
             `hermes gateway stop`\n"
        ))?;
    }
    let kind = resolve_gateway_backend(&config)?.backend;
    let installation = app::installation(config.home())?;
    let backend = app::backend(&config, &installation, kind, BackendCaller::Onlooker)?;
    if let Some(layer) = backend.readiness().await.missing() {
        return Err(CommandFailure::new(
            format!(
                "no sandbox can be had here: {}: {}",
                layer.name, layer.detail
            ),
            layer
                .remedy
                .clone()
                .unwrap_or_else(|| "`hermetic doctor` tells more".to_owned()),
        ));
    }
    let seal = match app::boundary(kind) {
        Boundary::Sealed => "commands run sealed, in a sandbox for each conversation",
        Boundary::Judged => "⚠ no boundary: commands have the rights of whoever runs there",
    };
    output::print(&format!("   {kind}: {seal}\n"))
}

/// One that is connected is asked whether it works; where there is none, one is connected.
async fn platform(
    inputs: &ConfigInputs,
    prompt: SetupPrompt,
    args: &SetupArgs,
) -> Result<(), CommandFailure> {
    let config = hermetic_config::load(inputs)?;
    let connected: Vec<_> = chats::check(&config).await?;
    for account in &connected {
        output::print(&account.as_text())?;
    }
    let wanted = |platform| {
        !connected
            .iter()
            .any(|account| account.platform() == platform)
    };
    let is_needed = match args.platform {
        Some(platform) => wanted(platform),
        None => connected.is_empty(),
    };
    if !is_needed && connected.iter().all(CheckedAccount::works) {
        return Ok(());
    }
    if args.platform.is_none() && !prompt.is_somebody() {
        return output::print("   none is connected: name one with --platform\n");
    }
    let arguments =
        platform_setup::GatewaySetupArgs::of(args.platform, args.allow.clone(), args.unchecked);
    platform_setup::connect(inputs, &prompt, &arguments).await
}

fn network(config: &Config, prompt: SetupPrompt, args: &SetupArgs) -> Result<(), CommandFailure> {
    let mut names = args.preset.clone();
    if names.is_empty() && prompt.is_somebody() {
        output::print(&presets())?;
        let typed = prompt.line("names, separated by commas; nothing for none")?;
        names.extend(typed.split(',').map(|name| name.trim().to_owned()));
        names.retain(|name| !name.is_empty());
    }
    if names.is_empty() {
        return output::print(
            "   nothing more than before; `hermetic egress allow HOST` adds a host\n",
        );
    }
    app::installation(config.home())?;
    let book = app::rule_book(config);
    for name in &names {
        let preset = RulePreset::all()
            .iter()
            .find(|preset| preset.name() == *name);
        let preset = preset.ok_or_else(|| {
            CommandFailure::new(
                format!("no preset is called {name}"),
                "`hermetic egress presets` lists them",
            )
        })?;
        for line in preset.lines() {
            let rule = WrittenRule::new(RuleEffect::Allow, line, None);
            let rule = rule
                .map_err(|error| CommandFailure::new(error.to_string(), "report this as a bug"))?;
            note_change(config, RuleChange::Added, &rule.to_string())?;
            book.add(&rule)?;
        }
        output::print(&format!("   {name}: allowed\n"))?;
    }
    Ok(())
}

fn presets() -> String {
    let mut text = String::from("   Nothing is reachable that is not allowed. Ready-made lists:\n");
    for preset in RulePreset::all() {
        let _ = writeln!(
            text,
            "     {:10} {DIM}{}{DIM:#}",
            preset.name(),
            preset.about()
        );
    }
    text
}

fn service(
    cli: &CommandLine,
    config: &Config,
    prompt: SetupPrompt,
    args: &SetupArgs,
) -> Result<ExitReason, CommandFailure> {
    let is_root = rustix::process::geteuid().is_root();
    let keeper = match is_root {
        true => SystemdScope::System,
        false => SystemdScope::User,
    };
    let packaged = SystemdService::installed(config.home())?;
    if let Some(service) = packaged.filter(SystemdService::belongs_to_package) {
        let wanted = is_root && service.keeper.is_there();
        let wanted =
            wanted && (args.start || prompt.confirms("Start it now, and with the machine?")?);
        if wanted {
            service.tell(&["enable", "--now"])?;
        } else {
            output::print(
                "   the package has a unit: sudo systemctl enable --now hermetic-gateway\n",
            )?;
        }
        return done(config, wanted);
    }
    let has_systemd = keeper.is_there();
    let question = match has_systemd {
        true => "Start it now, and with the machine?",
        false => "Start it now, in the background?",
    };
    if !args.start && !prompt.confirms(question)? {
        return done(config, false);
    }
    if has_systemd {
        install::install(cli, &install::GatewayInstallArgs::default())?;
    }
    let started = start::run(cli, &start::GatewayStartArgs::default())?;
    done(config, true)?;
    Ok(started)
}

fn done(config: &Config, is_started: bool) -> Result<ExitReason, CommandFailure> {
    let next = match is_started {
        true => "Write to your bot.",
        false => {
            "`hermetic gateway run` serves it here, `hermetic gateway start` in the background."
        }
    };
    output::print(&format!(
        "\n{next} Whoever is not on a list gets a code, and you let them in with\n\
         `hermetic pairing approve PLATFORM CODE`. Before you leave it alone: `hermetic doctor --production`.\n\
         {DIM}Everything is in {}.{DIM:#}\n",
        config.home().root().display()
    ))?;
    Ok(ExitReason::Ok)
}
