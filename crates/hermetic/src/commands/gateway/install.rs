//! `hermetic gateway install|uninstall`: a unit of systemd.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use hermetic_app as app;
use hermetic_config::{HomeFolder, ResolvedBackend, resolve_gateway_backend};
use hermetic_types::BackendKind;

use crate::cli::CommandLine;
use crate::commands::{inputs, load};
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;
use crate::ownership::{owner_of, user_name};
use crate::service::{
    CommandPlace, PACKAGED_HOME, SystemdScope, SystemdService, SystemdUnit, UnitOrigin, linger,
};

#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Without systemd, `hermetic gateway start` runs it as a plain daemon.

Examples:
  hermetic gateway install
  sudo hermetic --home /srv/bot gateway install --system --run-as bot")]
pub(crate) struct GatewayInstallArgs {
    /// Install for the whole machine (the default for root)
    #[arg(long)]
    system: bool,
    /// Install for your own user (the default for everybody else)
    #[arg(long, conflicts_with = "system")]
    user: bool,
    /// Run it as this user, instead of the owner of its home
    #[arg(long, value_name = "USER", requires = "system", value_parser = user_name)]
    run_as: Option<String>,
    /// Print the unit and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn install(
    cli: &CommandLine,
    args: &GatewayInstallArgs,
) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let resolved = resolve_gateway_backend(&config)?;
    let home = absolute(config.home())?;
    let of_the_machine = args.system || !args.user && rustix::process::geteuid().is_root();
    let keeper = match of_the_machine {
        true => SystemdScope::System,
        false => SystemdScope::User,
    };
    let service = SystemdService::of(&home, keeper)?;
    let program = std::env::current_exe()
        .map_err(|error| CommandFailure::caused(&error, "is /proc mounted?"))?;
    // A dash would make a slice within a slice of each part.
    let installation = app::installation(&home)?.to_string().replace('-', "_");
    let run_as = match keeper {
        SystemdScope::System => run_as(args.run_as.as_deref(), &service, &home)?,
        SystemdScope::User => None,
    };
    let unit = SystemdUnit {
        service: &service,
        program: &program,
        home: &home,
        slice: &format!("hermetic-{installation}.slice"),
        run_as: run_as.as_deref(),
        grace: config.agent().drain_timeout,
        watchdog: config.sessions().watchdog,
        commands: where_commands_run(&resolved),
        origin: UnitOrigin::Installed,
    };
    if args.dry_run {
        let (text, sandboxes) = (unit.text(), unit.sandboxes_text());
        let (name, slice) = (&service.name, service.sandboxes());
        output::print(&format!("# {name}\n{text}\n# {slice}\n{sandboxes}"))?;
        return Ok(ExitReason::Ok);
    }
    needs_systemd(keeper)?;
    let (path, sandboxes) = places(&service)?;
    write_units(&unit, (&path, &sandboxes))?;
    keeper.tell(&["daemon-reload"])?;
    service.tell(&["enable"])?;
    output::print(&format!(
        "wrote {} and {}\n{}",
        path.display(),
        sandboxes.display(),
        what_follows(keeper, run_as.as_deref())
    ))?;
    Ok(ExitReason::Ok)
}

fn write_units(
    unit: &SystemdUnit<'_>,
    (path, sandboxes): (&Path, &Path),
) -> Result<(), CommandFailure> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| CommandFailure::file("make", folder, &error))?;
    }
    // The one first that the other needs.
    for (path, text) in [(sandboxes, unit.sandboxes_text()), (path, unit.text())] {
        write_unit(path, &text).map_err(|error| CommandFailure::file("write", path, &error))?;
    }
    Ok(())
}

/// What to do next, and whose rights the gateway will have.
fn what_follows(keeper: SystemdScope, run_as: Option<&str>) -> String {
    let starts =
        "`hermetic gateway start` starts it now, systemd from the next start of the machine on\n";
    let rights = match (keeper, run_as) {
        (SystemdScope::System, Some(user)) => format!("it has the rights of {user}\n"),
        (SystemdScope::System, None) => {
            "it has root's rights; `--run-as USER`, or a home that is not root's, gives it fewer\n"
                .to_owned()
        }
        (SystemdScope::User, _) => match linger::is_missing_for() {
            Some(_) => "it ends when you log out, until `loginctl enable-linger`\n".to_owned(),
            None => "it goes on while you are not logged in\n".to_owned(),
        },
    };
    format!("{starts}{rights}")
}

/// Where a package has the program, and the user that it makes.
const PACKAGED_PROGRAM: &str = "/usr/bin/hermetic";
const PACKAGED_USER: &str = "hermetic";

/// Writes the units of a package into a folder, for whoever makes the package.
pub(crate) fn write_packaged(
    cli: &CommandLine,
    folder: &Path,
) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let service = SystemdService::packaged();
    let home = HomeFolder::at(PACKAGED_HOME);
    let unit = SystemdUnit {
        service: &service,
        program: Path::new(PACKAGED_PROGRAM),
        home: &home,
        slice: "hermetic-package.slice",
        run_as: Some(PACKAGED_USER),
        grace: config.agent().drain_timeout,
        watchdog: config.sessions().watchdog,
        commands: CommandPlace::Apart,
        origin: UnitOrigin::Package,
    };
    fs::create_dir_all(folder).map_err(|error| CommandFailure::file("make", folder, &error))?;
    for (name, text) in [
        (service.sandboxes(), unit.sandboxes_text()),
        (service.name.clone(), unit.text()),
    ] {
        let path = folder.join(name);
        write_unit(&path, &text).map_err(|error| CommandFailure::file("write", &path, &error))?;
    }
    Ok(ExitReason::Ok)
}

pub(crate) fn uninstall(cli: &CommandLine) -> Result<ExitReason, CommandFailure> {
    let home = absolute(&inputs(cli)?.home)?;
    let Some(service) = SystemdService::installed(&home)? else {
        output::print("no unit is installed for this home\n")?;
        return Ok(ExitReason::Ok);
    };
    if service.belongs_to_package() {
        return Err(CommandFailure::new(
            "the unit of this home belongs to the package hermetic",
            "`systemctl disable --now hermetic-gateway` switches it off, `apt remove hermetic` removes it",
        ));
    }
    needs_systemd(service.keeper)?;
    // While its file is there, which says what there is to undo.
    service.tell(&["disable", "--now"])?;
    let (path, sandboxes) = places(&service)?;
    // One that an older version installed has none.
    if sandboxes.exists() {
        service.keeper.tell(&["stop", &service.sandboxes()])?;
    }
    for path in [&path, &sandboxes] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(CommandFailure::file("remove", path, &error));
            }
            _ => {}
        }
    }
    service.keeper.tell(&["daemon-reload"])?;
    output::print(&format!("stopped and removed {}\n", service.name))?;
    Ok(ExitReason::Ok)
}

/// On the disk when it returns: an empty unit starts nothing after a power cut, and says nothing either.
fn write_unit(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn needs_systemd(keeper: SystemdScope) -> Result<(), CommandFailure> {
    if keeper.is_there() {
        return Ok(());
    }
    Err(CommandFailure::new(
        match keeper {
            SystemdScope::System => "systemd does not run on this machine",
            SystemdScope::User => "no systemd of yours runs on this machine",
        },
        "`hermetic gateway start` runs it as a plain daemon; `@reboot hermetic gateway start` in a \
         crontab starts it with the machine",
    ))
}

/// The gateway's unit file and that of its sandboxes.
fn places(service: &SystemdService) -> Result<(PathBuf, PathBuf), CommandFailure> {
    service.path().zip(service.sandboxes_path()).ok_or_else(|| {
        CommandFailure::new("there is no home folder to put a unit into", "set HOME")
    })
}

/// Apptainer may need its helper that is owned by root, which `NoNewPrivileges` takes the power from.
fn where_commands_run(resolved: &ResolvedBackend) -> CommandPlace {
    let here = |kind: &BackendKind| matches!(kind, BackendKind::Local | BackendKind::Singularity);
    let mut kinds = std::iter::once(&resolved.backend).chain(resolved.platforms.values());
    if kinds.any(here) {
        CommandPlace::Here
    } else {
        CommandPlace::Apart
    }
}

/// A unit is read elsewhere than where we stand.
fn absolute(home: &HomeFolder) -> Result<HomeFolder, CommandFailure> {
    std::path::absolute(home.root())
        .map(|root| HomeFolder::at(&root))
        .map_err(|error| CommandFailure::file("find", Path::new(home.root()), &error))
}

/// Whose rights a system unit has; none is root's.
fn run_as(
    asked: Option<&str>,
    service: &SystemdService,
    home: &HomeFolder,
) -> Result<Option<String>, CommandFailure> {
    let chosen = match (asked, installed_user(service, home)) {
        (Some(asked), _) => asked.to_owned(),
        // Its files are that user's by now, whoever owns the folder itself.
        (None, Some(before)) => before,
        (None, None) => owner_of(home.root())?,
    };
    Ok((chosen != "root").then_some(chosen))
}

/// Who the unit that is installed for this home runs as.
fn installed_user(service: &SystemdService, home: &HomeFolder) -> Option<String> {
    let text = fs::read_to_string(service.path()?).ok()?;
    SystemdUnit::serves(&text, home).then(|| {
        let user = text.lines().find_map(|line| line.strip_prefix("User="));
        user.unwrap_or("root").to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_named_comes_before_who_owns_the_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = HomeFolder::at(folder.path());
        let service = SystemdService {
            keeper: SystemdScope::System,
            name: "hermetic-gateway-of-no-installation.service".to_owned(),
        };
        let chosen = |asked| run_as(asked, &service, &home).unwrap();
        assert_eq!(chosen(Some("bot")).as_deref(), Some("bot"));
        assert_eq!(chosen(Some("root")), None);
        let own = rustix::process::geteuid();
        assert_eq!(chosen(None).is_none(), own.is_root());
    }
}
