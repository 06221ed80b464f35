//! The setup of a package's home, as root.
//!
//! What root writes there its gateway could not read, and root's own home is not where the package's unit
//! looks. So the questions are asked with the rights of the package's user, by this program started once more,
//! and root does what only root can: the unit.

use std::env;
use std::ffi::OsString;

use hermetic_config::HomeFolder;

use super::running::{self, NextStep};
use super::{SetupArgs, heading};
use crate::cli::CommandLine;
use crate::commands::gateway::setup::prompt::SetupPrompt;
use crate::commands::packaged_home_of_root;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;
use crate::ownership::HomeOwner;
use crate::service::SystemdService;

/// A package's home that belongs to somebody else than us.
pub(super) struct PackagedHome {
    home: HomeFolder,
    owner: HomeOwner,
}

impl PackagedHome {
    /// That of the package, where root named it or named none.
    pub(super) fn meant(cli: &CommandLine, named: &HomeFolder) -> Option<Self> {
        let is_named = SystemdService::is_packaged_home(named);
        let home = packaged_home_of_root(cli).or_else(|| is_named.then(|| named.clone()))?;
        let owner = HomeOwner::of(&home)?;
        Some(Self { home, owner })
    }

    pub(super) fn set_up(
        &self,
        args: &SetupArgs,
        prompt: SetupPrompt,
    ) -> Result<ExitReason, CommandFailure> {
        let (home, owner) = (self.home.root().display(), self.owner.called());
        output::print(&format!(
            "The package's gateway is the user {owner}, with the home {home}. What follows is done as \
             {owner}; `--home` names another home.\n"
        ))?;
        let mut command = self.owner.own_program()?;
        command.envs(handed_on());
        command.arg("--home").arg(self.home.root()).arg("setup");
        command.args(args.words()).arg("--leave-service");
        let status = command.status().map_err(|error| {
            let remedy = "install the program where everybody can run it";
            CommandFailure::new(format!("not run as {owner}: {error}"), remedy)
        })?;
        if !status.success() {
            // It has said why.
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(ExitReason::Passed(code.unwrap_or(1)));
        }
        heading(5, "Running it")?;
        let service = SystemdService::packaged();
        let wanted = service.keeper.is_there()
            && (args.start || prompt.confirms("Start it now, and with the machine?")?);
        if !wanted {
            return running::done(&self.home, NextStep::of_root(&self.home));
        }
        service.tell(&["enable"])?;
        // Also where it runs: it has to read what was written.
        service.tell(&["restart"])?;
        running::done(&self.home, NextStep::WriteToIt)
    }
}

/// Keys and tokens are taken from the environment, so it goes along; what says whose home it is does not.
fn handed_on() -> Vec<(OsString, OsString)> {
    let is_roots = |name: &str| {
        matches!(
            name,
            "HOME" | "USER" | "LOGNAME" | "MAIL" | "PWD" | "OLDPWD" | "HERMES_HOME"
        ) || name.starts_with("XDG_")
            || name.starts_with("SUDO_")
    };
    env::vars_os()
        .filter(|(name, _)| !name.to_str().is_none_or(is_roots))
        .collect()
}

impl SetupArgs {
    /// What was said to this command, for another one of it.
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let values = [
            ("--model", &self.model),
            ("--provider", &self.provider),
            ("--base-url", &self.base_url),
            (
                "--platform",
                &self.platform.map(|platform| platform.name().to_owned()),
            ),
            ("--allow", &self.allow),
        ];
        for (name, value) in values {
            words.extend(value.iter().map(|value| format!("{name}={value}")));
        }
        words.extend(self.preset.iter().map(|name| format!("--preset={name}")));
        for (name, is_said) in [
            ("--non-interactive", self.non_interactive),
            ("--unchecked", self.unchecked),
        ] {
            words.extend(is_said.then(|| name.to_owned()));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct TypedSetup {
        #[command(flatten)]
        args: SetupArgs,
    }

    /// An argument that is added and forgotten here would be lost for whoever has the package.
    #[test]
    fn what_root_said_reaches_the_setup_of_the_packages_user() {
        let said = [
            "setup",
            "--model=m -x",
            "--base-url=http://127.0.0.1:1/v1",
            "--platform=telegram",
            "--allow=1,2",
            "--preset=python",
            "--preset=node",
            "--non-interactive",
            "--unchecked",
        ];
        let typed = TypedSetup::try_parse_from(said).unwrap().args;
        assert_eq!(typed.words(), said[1..]);
        let provider = ["setup", "--provider=openrouter"];
        let typed = TypedSetup::try_parse_from(provider).unwrap().args;
        assert_eq!(typed.words(), provider[1..]);
        // All but who starts it, which root does.
        let known = <TypedSetup as clap::CommandFactory>::command();
        assert_eq!(known.get_arguments().count(), 10);
    }
}
