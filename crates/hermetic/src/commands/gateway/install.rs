//! `hermetic gateway install|uninstall`: a unit of systemd.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hermetic_config::{Home, Resolved, resolve_gateway_backend};
use hermetic_types::BackendKind;

use crate::cli::Cli;
use crate::commands::{inputs, load};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::service::{Commands, Keeper, Service, Unit};
use crate::wiring;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without systemd, `hermetic gateway start` runs it as a plain daemon.

Examples:
  hermetic gateway install
  sudo hermetic --home /srv/bot gateway install --system --run-as bot")]
pub(crate) struct Args {
    /// For the whole machine: what root gets
    #[arg(long)]
    system: bool,
    /// For your own systemd: what everybody else gets
    #[arg(long, conflicts_with = "system")]
    user: bool,
    /// Whose rights it has
    #[arg(long, value_name = "USER", requires = "system", value_parser = user)]
    run_as: Option<String>,
    /// Print the unit and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn install(cli: &Cli, args: &Args) -> Result<Exit, Failure> {
    let config = load(cli)?;
    let resolved = resolve_gateway_backend(&config)?;
    let home = absolute(config.home())?;
    let of_the_machine = args.system || !args.user && rustix::process::geteuid().is_root();
    let keeper = match of_the_machine {
        true => Keeper::System,
        false => Keeper::User,
    };
    let service = Service::of(&home, keeper)?;
    let program =
        std::env::current_exe().map_err(|error| Failure::caused(&error, "is /proc mounted?"))?;
    // A dash would make a slice within a slice of each part.
    let installation = wiring::installation(&home)?.to_string().replace('-', "_");
    let unit = Unit {
        service: &service,
        program: &program,
        home: &home,
        slice: &format!("hermetic-{installation}.slice"),
        run_as: args.run_as.as_deref(),
        grace: config.agent().drain_timeout,
        watchdog: config.sessions().watchdog,
        commands: where_commands_run(&resolved),
    };
    if args.dry_run {
        output::print(&format!(
            "# {}\n{}\n# {}\n{}",
            service.name,
            unit.text(),
            service.sandboxes(),
            unit.sandboxes_text()
        ))?;
        return Ok(Exit::Ok);
    }
    needs_systemd(keeper)?;
    let (path, sandboxes) = places(&service)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
    }
    // The one first that the other needs.
    for (path, text) in [(&sandboxes, unit.sandboxes_text()), (&path, unit.text())] {
        fs::write(path, text).map_err(|error| Failure::file("write", path, &error))?;
    }
    keeper.tell(&["daemon-reload"])?;
    service.tell(&["enable"])?;
    let mut text = format!(
        "wrote {} and {}\n`hermetic gateway start` starts it now, systemd from the next start of the machine on\n",
        path.display(),
        sandboxes.display()
    );
    if keeper == Keeper::System && args.run_as.is_none() {
        text.push_str("`--run-as USER` would give it fewer rights than root's\n");
    }
    if keeper == Keeper::User {
        text.push_str("`loginctl enable-linger` lets it run while you are not logged in\n");
    }
    output::print(&text)?;
    Ok(Exit::Ok)
}

pub(crate) fn uninstall(cli: &Cli) -> Result<Exit, Failure> {
    let home = absolute(&inputs(cli)?.home)?;
    let Some(service) = Service::installed(&home)? else {
        output::print("no unit is installed for this home\n")?;
        return Ok(Exit::Ok);
    };
    needs_systemd(service.keeper)?;
    service.tell(&["disable", "--now"])?;
    let (path, sandboxes) = places(&service)?;
    // One that an older version installed has none.
    if sandboxes.exists() {
        service.keeper.tell(&["stop", &service.sandboxes()])?;
    }
    for path in [&path, &sandboxes] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Failure::file("remove", path, &error));
            }
            _ => {}
        }
    }
    service.keeper.tell(&["daemon-reload"])?;
    output::print(&format!("stopped and removed {}\n", service.name))?;
    Ok(Exit::Ok)
}

fn needs_systemd(keeper: Keeper) -> Result<(), Failure> {
    if keeper.is_there() {
        return Ok(());
    }
    Err(Failure::new(
        match keeper {
            Keeper::System => "systemd does not run on this machine",
            Keeper::User => "no systemd of yours runs on this machine",
        },
        "`hermetic gateway start` runs it as a plain daemon; `@reboot hermetic gateway start` in a \
         crontab starts it with the machine",
    ))
}

/// The gateway's unit file and that of its sandboxes.
fn places(service: &Service) -> Result<(PathBuf, PathBuf), Failure> {
    service
        .path()
        .zip(service.sandboxes_path())
        .ok_or_else(|| Failure::new("there is no home folder to put a unit into", "set HOME"))
}

/// Apptainer may need its helper that is owned by root, which `NoNewPrivileges` takes the power from.
fn where_commands_run(resolved: &Resolved) -> Commands {
    let here = |kind: &BackendKind| matches!(kind, BackendKind::Local | BackendKind::Singularity);
    let mut kinds = std::iter::once(&resolved.backend).chain(resolved.platforms.values());
    if kinds.any(here) {
        Commands::Here
    } else {
        Commands::Apart
    }
}

/// A unit is read elsewhere than where we stand.
fn absolute(home: &Home) -> Result<Home, Failure> {
    std::path::absolute(home.root())
        .map(|root| Home::at(&root))
        .map_err(|error| Failure::file("find", Path::new(home.root()), &error))
}

fn user(name: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if name.is_empty() || !name.bytes().all(plain) || name.starts_with('-') {
        return Err("expected the name of a user".to_owned());
    }
    Ok(name.to_owned())
}
