//! `hermetic setup`: from nothing to a bot that runs, in one conversation at the terminal.
//!
//! Each step keeps what is there already, a Hermes user's values included, and writes nothing before it was
//! tried. Steps can be left out and taken up again by saying it once more.

mod config_file;
mod model;
mod package;
mod running;

use std::fmt::Write as _;

use hermetic_app::{self as app, BackendCaller};
use hermetic_audit::RuleChange;
use hermetic_config::{Config, ConfigInputs, resolve_gateway_backend};
use hermetic_egress::{RuleEffect, RulePreset, WrittenRule};
use hermetic_types::{Boundary, Platform};

use self::package::PackagedHome;
use self::running::WrittenFiles;
use super::doctor::chats::{self, CheckedAccount};
use super::egress::note_change;
use super::gateway::setup as platform_setup;
use super::gateway::setup::prompt::SetupPrompt;
use super::{inputs_of_new_home, migrate, on_this_thread};
use crate::by_hand;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, BOLD, DIM};
use crate::ownership::refuse_root_for_another;

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
    /// Leave it to whoever started this to run the gateway
    #[arg(long, hide = true)]
    leave_service: bool,
}

/// How often somebody may be wrong before it is better to look at the guide.
const MOST_ATTEMPTS: u32 = 3;

pub(crate) fn run(cli: &CommandLine, args: &SetupArgs) -> Result<ExitReason, CommandFailure> {
    let inputs = inputs_of_new_home(cli)?;
    let prompt = match args.non_interactive {
        true => SetupPrompt::nobody(),
        false => SetupPrompt::at_terminal()?,
    };
    if let Some(packaged) = PackagedHome::meant(cli, &inputs.home) {
        return packaged.set_up(args, prompt);
    }
    refuse_root_for_another(&inputs.home)?;
    let before = WrittenFiles::of(&inputs.home);
    on_this_thread(async {
        heading(1, "This machine")?;
        machine(&inputs).await?;
        heading(2, "The model")?;
        Box::pin(model::choose(&inputs, prompt, args)).await?;
        heading(3, "The chat")?;
        platform(&inputs, prompt, args).await?;
        people_of_hermes(&inputs, prompt).await?;
        heading(4, "What sandboxes may reach")?;
        network(&hermetic_config::load(&inputs)?, prompt, args)?;
        Ok(ExitReason::Ok)
    })?;
    if args.leave_service {
        return Ok(ExitReason::Ok);
    }
    heading(5, "Running it")?;
    let config = hermetic_config::load(&inputs)?;
    let has_changed = WrittenFiles::of(&inputs.home) != before;
    running::run_it(cli, &config, has_changed, prompt, args)
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
    let works = |platform| {
        connected
            .iter()
            .any(|account| account.platform() == platform)
    };
    let passing = passing_platform(inputs, &connected);
    let is_needed = match args.platform {
        Some(platform) => !works(platform) || passing == Some(platform) || args.allow.is_some(),
        None => connected.is_empty() || passing.is_some(),
    };
    if !is_needed && connected.iter().all(CheckedAccount::works) {
        return Ok(());
    }
    let named = args.platform.or(passing);
    if named.is_none() && !prompt.is_somebody() {
        return output::print("   none is connected: name one with --platform\n");
    }
    let arguments = platform_setup::GatewaySetupArgs::of(named, args.allow.clone(), args.unchecked);
    platform_setup::connect(inputs, &prompt, &arguments).await
}

/// One that is connected by the environment of this process alone: a service would not know its token.
fn passing_platform(inputs: &ConfigInputs, connected: &[CheckedAccount]) -> Option<Platform> {
    let lasting = ConfigInputs {
        variables: Default::default(),
        ..inputs.clone()
    };
    let lasting = hermetic_config::load(&lasting).ok();
    let is_lasting = |platform| {
        let mut enabled = lasting
            .iter()
            .flat_map(|config| config.platforms().enabled());
        enabled.any(|one| one.kind() == Some(platform))
    };
    // The others are written by hand, wherever they are.
    let is_asked = |platform| app::setups().any(|setup| setup.platform == platform);
    let mut platforms = connected.iter().map(CheckedAccount::platform);
    platforms.find(|platform| is_asked(*platform) && !is_lasting(*platform))
}

/// Whom Hermes let in, and the jobs it ran, would be missed without a word.
async fn people_of_hermes(
    inputs: &ConfigInputs,
    prompt: SetupPrompt,
) -> Result<(), CommandFailure> {
    let waiting = match migrate::WaitingOfHermes::look(inputs).await {
        Ok(Some(waiting)) => waiting,
        Ok(None) => return Ok(()),
        // A database that does not answer is told of when the gateway starts.
        Err(failure) => {
            let why = failure.to_string();
            let why = output::printable(&why);
            return output::print(&format!(
                "   whom Hermes let in cannot be looked at: {why}\n"
            ));
        }
    };
    output::print(&format!("   of Hermes, and not here yet: {waiting}\n"))?;
    if prompt.is_somebody() && prompt.confirms("Take them over?")? {
        waiting.take_over(inputs).await?;
        return output::print("   taken over; `hermetic migrate` tells of everything else\n");
    }
    output::print("   `hermetic migrate --apply` takes them over\n")
}

fn network(config: &Config, prompt: SetupPrompt, args: &SetupArgs) -> Result<(), CommandFailure> {
    let presets = match args.preset.is_empty() && prompt.is_somebody() {
        true => asked_presets(prompt)?,
        false => named_presets(&args.preset)?,
    };
    if presets.is_empty() {
        return output::print(
            "   nothing more than before; `hermetic egress allow HOST` adds a host\n",
        );
    }
    app::installation(config.home())?;
    let book = app::rule_book(config);
    for preset in presets {
        for line in preset.lines() {
            let rule = WrittenRule::new(RuleEffect::Allow, line, None);
            let rule = rule
                .map_err(|error| CommandFailure::new(error.to_string(), "report this as a bug"))?;
            note_change(config, RuleChange::Added, &rule.to_string())?;
            book.add(&rule)?;
        }
        output::print(&format!("   {}: allowed\n", preset.name()))?;
    }
    Ok(())
}

/// Until every name is one that there is.
fn asked_presets(prompt: SetupPrompt) -> Result<Vec<&'static RulePreset>, CommandFailure> {
    output::print(&presets())?;
    for _ in 0..MOST_ATTEMPTS {
        let typed = prompt.line("names, separated by commas; nothing for none")?;
        let names = typed.split(',').map(|name| name.trim().to_owned());
        let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
        match named_presets(&names) {
            Ok(presets) => return Ok(presets),
            Err(unknown) => {
                output::print(&format!("   {}\n", output::printable(&unknown.to_string())))?;
            }
        }
    }
    output::print("   none for now: `hermetic egress presets` lists them\n")?;
    Ok(Vec::new())
}

/// Before any is allowed, so that a slip in the second does not leave half of them.
fn named_presets(names: &[String]) -> Result<Vec<&'static RulePreset>, CommandFailure> {
    let known = |name: &String| {
        let mut presets = RulePreset::all().iter();
        presets
            .find(|preset| preset.name() == *name)
            .ok_or_else(|| {
                CommandFailure::new(
                    format!("no preset is called {name}"),
                    "`hermetic egress presets` lists them",
                )
            })
    };
    names.iter().map(known).collect()
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
