//! `hermetic gateway setup`: a chat platform, from its token to a line in `.env`.

pub(crate) mod dotenv_file;
pub(crate) mod prompt;

use std::fmt::Write as _;

use hermetic_app::{self as app, PlatformSetup, SetupValue};
use hermetic_config::{Config, ConfigInputs, SettingOrigin, load_with_dotenv};
use hermetic_types::Platform;

use self::dotenv_file::DotenvFile;
use self::prompt::SetupPrompt;
use crate::by_hand;
use crate::cli::CommandLine;
use crate::commands::doctor::chats::{self, CheckedAccount};
use crate::commands::{inputs_of_new_home, on_this_thread};
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, BOLD};
use crate::ownership::refuse_root_for_another;

/// How often a token may be wrong before it is better to look at the guide.
const MOST_ATTEMPTS: u32 = 3;

#[derive(Debug, clap::Args)]
pub(crate) struct GatewaySetupArgs {
    /// The platform; you are asked if it is left out
    platform: Option<Platform>,
    /// Let these people write: their ids on the platform, separated by commas
    #[arg(long, value_name = "IDS")]
    allow: Option<String>,
    /// Ask nothing; take values from the environment and .env
    #[arg(long)]
    non_interactive: bool,
    /// Write the values even if the platform could not be asked
    #[arg(long)]
    unchecked: bool,
}

impl GatewaySetupArgs {
    /// As `hermetic setup` asks for it.
    pub(crate) fn of(platform: Option<Platform>, allow: Option<String>, unchecked: bool) -> Self {
        Self {
            platform,
            allow,
            non_interactive: false,
            unchecked,
        }
    }
}

pub(crate) fn run(
    cli: &CommandLine,
    args: &GatewaySetupArgs,
) -> Result<ExitReason, CommandFailure> {
    let inputs = inputs_of_new_home(cli)?;
    refuse_root_for_another(&inputs.home)?;
    let prompt = match args.non_interactive {
        true => SetupPrompt::nobody(),
        false => SetupPrompt::at_terminal()?,
    };
    on_this_thread(async {
        connect(&inputs, &prompt, args).await?;
        output::print(&format!(
            "\nwrote {}\nnext: `hermetic gateway run` here, or `hermetic gateway install` for a service; \
             a gateway that runs takes it up with `hermetic gateway restart`\n",
            inputs.home.dotenv_file().display()
        ))?;
        Ok(ExitReason::Ok)
    })
}

/// From the choice of a platform to lines in `.env`.
pub(crate) async fn connect(
    inputs: &ConfigInputs,
    prompt: &SetupPrompt,
    args: &GatewaySetupArgs,
) -> Result<(), CommandFailure> {
    let setup = choose(args.platform, prompt)?;
    let mut file = DotenvFile::read(&inputs.home)?;
    output::print(&format!(
        "\n{BOLD}{}{BOLD:#} (every step outside of this program: {})\n\n",
        setup.title, setup.guide
    ))?;
    // Boxed: it holds every platform's check, and whoever awaits this holds all of it.
    Box::pin(take_values(setup, inputs, &mut file, prompt, args)).await?;
    allow_people(setup, inputs, &mut file, prompt, args)?;
    file.write(&inputs.home)
}

fn choose(
    named: Option<Platform>,
    prompt: &SetupPrompt,
) -> Result<&'static PlatformSetup, CommandFailure> {
    let known: Vec<_> = app::setups().collect();
    let names = || {
        let names: Vec<_> = known.iter().map(|setup| setup.platform.name()).collect();
        names.join(", ")
    };
    if let Some(named) = named {
        let found = known.iter().find(|setup| setup.platform == named);
        return found.copied().ok_or_else(|| {
            CommandFailure::new(
                format!("{named} is not set up by questions in this build"),
                format!("choose one of: {}", names()),
            )
        });
    }
    let mut menu = String::from("Which platform?\n");
    for (number, setup) in (1..).zip(&known) {
        let _ = writeln!(menu, "  {number}  {}", setup.title);
    }
    output::print(&menu)?;
    for _ in 0..MOST_ATTEMPTS {
        let typed = prompt.line("number or name")?.to_lowercase();
        let by_number = typed.parse::<usize>().ok();
        let chosen = by_number.and_then(|number| known.get(number.checked_sub(1)?));
        let by_name = || known.iter().find(|setup| setup.platform.name() == typed);
        if let Some(setup) = chosen.or_else(by_name) {
            return Ok(setup);
        }
        output::print(&format!("  type one of: {}\n", names()))?;
    }
    Err(CommandFailure::new("no platform was chosen", names()))
}

/// Until the platform accepts them.
async fn take_values(
    setup: &PlatformSetup,
    inputs: &ConfigInputs,
    file: &mut DotenvFile,
    prompt: &SetupPrompt,
    args: &GatewaySetupArgs,
) -> Result<(), CommandFailure> {
    for (name, value) in setup.fixed {
        file.set(name, value);
    }
    let mut ask_again = false;
    for _ in 0..MOST_ATTEMPTS {
        let looked = ValuesThere::look(inputs, file);
        let there: Vec<_> = setup
            .values
            .iter()
            .map(|value| looked.kept(value))
            .collect();
        for (value, kept) in setup.values.iter().zip(there) {
            if let Some(kept) = kept.filter(|_| !ask_again)
                && prompt.keeps(&kept.called)?
            {
                for (name, text) in &kept.lines {
                    file.set(name, text);
                }
            } else {
                let taken = prompt.value(value.variable, value.what, value.is_secret)?;
                file.set(value.variable, &taken);
            }
        }
        match accepted(setup, inputs, file, prompt, args).await? {
            true => return Ok(()),
            false => ask_again = true,
        }
    }
    Err(CommandFailure::new(
        format!("{} does not accept what was typed", setup.title),
        format!(
            "{} says where each value is found; nothing was written",
            setup.guide
        ),
    ))
}

/// Whether the values can stay. What cannot be tried is the operator's to decide.
async fn accepted(
    setup: &PlatformSetup,
    inputs: &ConfigInputs,
    file: &DotenvFile,
    prompt: &SetupPrompt,
    args: &GatewaySetupArgs,
) -> Result<bool, CommandFailure> {
    let config = load_with_dotenv(inputs, file.text())?;
    by_hand::or_refuse(&config)?;
    let checked: Vec<_> = chats::check(&config)
        .await?
        .into_iter()
        .filter(|account| account.platform() == setup.platform)
        .collect();
    if checked.is_empty() {
        return Err(CommandFailure::new(
            format!("{} is switched off in the configuration", setup.title),
            format!(
                "take `enabled: false` of {} out of config.yaml",
                setup.platform
            ),
        ));
    }
    for account in &checked {
        output::print(&account.as_text())?;
    }
    if checked.iter().all(CheckedAccount::works) {
        return Ok(true);
    }
    if checked.iter().any(CheckedAccount::was_rejected) && prompt.is_somebody() {
        return Ok(false);
    }
    if args.unchecked || prompt.confirms("Keep it without having tried it?")? {
        return Ok(true);
    }
    Err(CommandFailure::new(
        format!("{} could not be asked about this account", setup.title),
        "mend what is said above, or add --unchecked; nothing was written",
    ))
}

/// What needs no question, because it stands somewhere already.
struct ValuesThere<'a> {
    inputs: &'a ConfigInputs,
    file: &'a DotenvFile,
    /// What the files say together; nothing where they are not whole yet.
    config: Option<Config>,
}

/// A value that is there, or others in its stead.
struct KeptValue {
    called: String,
    /// What becomes a line of `.env`. What stands in `config.yaml` stays there.
    lines: Vec<(&'static str, String)>,
}

impl<'a> ValuesThere<'a> {
    fn look(inputs: &'a ConfigInputs, file: &'a DotenvFile) -> Self {
        Self {
            inputs,
            file,
            config: load_with_dotenv(inputs, file.text()).ok(),
        }
    }

    fn kept(&self, value: &SetupValue) -> Option<KeptValue> {
        let itself = self.find(value.variable).map(|lines| KeptValue {
            called: value.variable.to_owned(),
            lines,
        });
        itself.or_else(|| {
            let others: Option<Vec<_>> = value.instead.iter().map(|name| self.find(name)).collect();
            let others = others.filter(|others| !others.is_empty())?;
            Some(KeptValue {
                called: value.instead.join(" with "),
                lines: others.concat(),
            })
        })
    }

    /// The line that it needs, or none where another file has it.
    fn find(&self, variable: &'static str) -> Option<Vec<(&'static str, String)>> {
        let line = self.file.value(variable);
        let line = line.or_else(|| environment(self.inputs, variable));
        if let Some(line) = line {
            return Some(vec![(variable, line)]);
        }
        let settings = self.config.as_ref()?.settings();
        let written = settings.iter().any(|setting| {
            setting.variable() == Some(variable) && *setting.origin() != SettingOrigin::Default
        });
        written.then(Vec::new)
    }
}

fn allow_people(
    setup: &PlatformSetup,
    inputs: &ConfigInputs,
    file: &mut DotenvFile,
    prompt: &SetupPrompt,
    args: &GatewaySetupArgs,
) -> Result<(), CommandFailure> {
    let name = setup.allowlist;
    let there = file.value(name).or_else(|| environment(inputs, name));
    let people = match (&args.allow, there) {
        (Some(people), _) => people.clone(),
        (None, Some(there)) => {
            output::print(&format!(
                "  {name} stays as it is: {}\n",
                output::printable(&there)
            ))?;
            return Ok(());
        }
        (None, None) if !prompt.is_somebody() => String::new(),
        (None, None) => {
            output::print(&format!(
                "\nWho may write to it? {}, separated by commas.\n\
                 Nothing: whoever writes gets a code, and you let them in with `hermetic pairing approve`.\n",
                setup.person
            ))?;
            prompt.line(name)?
        }
    };
    let people: Vec<_> = people
        .split(',')
        .map(str::trim)
        .filter(|id| !id.is_empty())
        .collect();
    if !people.is_empty() {
        file.set(name, &people.join(","));
    }
    Ok(())
}

/// What a variable says in the process's own environment.
fn environment(inputs: &ConfigInputs, name: &str) -> Option<String> {
    let value = inputs.variables.get(name)?;
    (!value.is_empty()).then(|| value.clone())
}
