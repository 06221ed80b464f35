//! The last step of a setup: who runs the gateway, and whether it goes on when nobody looks.

use std::fs;

use hermetic_config::{Config, HomeFolder};

use super::SetupArgs;
use crate::cli::CommandLine;
use crate::commands::gateway::setup::prompt::SetupPrompt;
use crate::commands::gateway::{self, install, start, stop};
use crate::commands::typed_for;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::gateway_state::{ObservedGateway, look};
use crate::output::{self, DIM};
use crate::service::{SystemdScope, SystemdService, linger};

/// What a gateway reads at its start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WrittenFiles([Option<Vec<u8>>; 2]);

impl WrittenFiles {
    pub(super) fn of(home: &HomeFolder) -> Self {
        Self([home.config_file(), home.dotenv_file()].map(|path| fs::read(path).ok()))
    }
}

/// What somebody does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    WriteToIt,
    StartIt,
    /// Root starts the unit of a package.
    TellRoot,
    /// And starts it again where it runs.
    TellRootAgain,
    RestartIt,
}

impl NextStep {
    /// What root does with the unit of a package.
    pub(super) fn of_root(home: &HomeFolder) -> Self {
        match look(home) {
            ObservedGateway::Running(_) => Self::TellRootAgain,
            _ => Self::TellRoot,
        }
    }
}

pub(super) fn run_it(
    cli: &CommandLine,
    config: &Config,
    has_changed: bool,
    prompt: SetupPrompt,
    args: &SetupArgs,
) -> Result<ExitReason, CommandFailure> {
    let home = config.home();
    let installed = SystemdService::installed(home)?;
    let is_packaged = installed.is_some_and(|service| service.belongs_to_package());
    if matches!(look(home), ObservedGateway::Running(_)) {
        return beside_a_running_one(cli, home, (has_changed, is_packaged), prompt, args);
    }
    if is_packaged {
        return done(home, NextStep::TellRoot);
    }
    let keeper = match rustix::process::geteuid().is_root() {
        true => SystemdScope::System,
        false => SystemdScope::User,
    };
    let has_systemd = keeper.is_there();
    let question = match has_systemd {
        true => "Start it now, and with the machine?",
        false => "Start it now, in the background?",
    };
    if !args.start && !prompt.confirms(question)? {
        return done(home, NextStep::StartIt);
    }
    if has_systemd {
        install::install(cli, &install::GatewayInstallArgs::default())?;
    }
    if has_systemd && keeper == SystemdScope::User {
        go_on_without_a_session(prompt, args)?;
    }
    let started = start::run(cli, &start::GatewayStartArgs::default())?;
    done(home, NextStep::WriteToIt)?;
    Ok(started)
}

/// It has read its configuration, and takes nothing of what was written up before it starts again.
fn beside_a_running_one(
    cli: &CommandLine,
    home: &HomeFolder,
    (has_changed, is_packaged): (bool, bool),
    prompt: SetupPrompt,
    args: &SetupArgs,
) -> Result<ExitReason, CommandFailure> {
    if !has_changed {
        output::print("   a gateway runs here already, and has read all of this\n")?;
        return done(home, NextStep::WriteToIt);
    }
    output::print("   a gateway runs here, and does not know yet what was written\n")?;
    if is_packaged {
        return done(home, NextStep::TellRootAgain);
    }
    if !args.start && !prompt.confirms("Restart it now?")? {
        return done(home, NextStep::RestartIt);
    }
    let restarted = gateway::restart(cli, &stop::GatewayStopArgs::default())?;
    done(home, NextStep::WriteToIt)?;
    Ok(restarted)
}

/// A user's own systemd ends with the last session, and with it the bot.
fn go_on_without_a_session(prompt: SetupPrompt, args: &SetupArgs) -> Result<(), CommandFailure> {
    let Some(user) = linger::is_missing_for() else {
        return Ok(());
    };
    let question = "It ends when you log out. Let it go on (loginctl enable-linger)?";
    if !args.start && !prompt.confirms(question)? {
        return Ok(());
    }
    match linger::enable() {
        Ok(()) => output::print("   it goes on when you log out\n"),
        // It runs, for now: that is no reason to call the setup failed.
        Err(failure) => output::print(&format!(
            "   it ends when you log out: {}\n   = sudo loginctl enable-linger {user}\n",
            output::printable(&failure.to_string())
        )),
    }
}

pub(super) fn done(home: &HomeFolder, next: NextStep) -> Result<ExitReason, CommandFailure> {
    let next = match next {
        NextStep::WriteToIt => "Write to your bot.",
        NextStep::StartIt => {
            "`hermetic gateway run` serves it here, `hermetic gateway start` in the background."
        }
        NextStep::TellRoot => {
            "`sudo systemctl enable --now hermetic-gateway` starts it, now and with the machine."
        }
        NextStep::TellRootAgain => "`sudo systemctl restart hermetic-gateway` takes it up.",
        NextStep::RestartIt => "`hermetic gateway restart` takes it up.",
    };
    let hermetic = typed_for(home);
    output::print(&format!(
        "\n{next} Whoever is not on a list gets a code, and you let them in with\n\
         `{hermetic} pairing approve PLATFORM CODE`. Before you leave it alone: `{hermetic} doctor --production`.\n\
         {DIM}Everything is in {}.{DIM:#}\n",
        home.root().display()
    ))?;
    Ok(ExitReason::Ok)
}
