//! `hermetic gateway install|uninstall`: a unit of systemd.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use hermetic_config::{Home, resolve_gateway_backend};

use crate::cli::Cli;
use crate::commands::{inputs, load};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::service::{Keeper, Service, Unit};

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
    resolve_gateway_backend(&config)?;
    let home = absolute(config.home())?;
    let of_the_machine = args.system || !args.user && rustix::process::geteuid().is_root();
    let keeper = match of_the_machine {
        true => Keeper::System,
        false => Keeper::User,
    };
    let service = Service::of(&home, keeper)?;
    let program =
        std::env::current_exe().map_err(|error| Failure::caused(&error, "is /proc mounted?"))?;
    let unit = Unit {
        service: &service,
        program: &program,
        home: &home,
        run_as: args.run_as.as_deref(),
        grace: config.agent().drain_timeout,
        watchdog: config.sessions().watchdog,
    };
    if args.dry_run {
        output::print(&unit.text())?;
        return Ok(Exit::Ok);
    }
    needs_systemd(keeper)?;
    let path = place(&service)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
    }
    fs::write(&path, unit.text()).map_err(|error| Failure::file("write", &path, &error))?;
    keeper.tell(&["daemon-reload"])?;
    service.tell(&["enable"])?;
    let mut text = format!(
        "wrote {}\n`hermetic gateway start` starts it now, systemd from the next start of the machine on\n",
        path.display()
    );
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
    let path = place(&service)?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Failure::file("remove", &path, &error));
        }
        _ => {}
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

fn place(service: &Service) -> Result<std::path::PathBuf, Failure> {
    service
        .path()
        .ok_or_else(|| Failure::new("there is no home folder to put a unit into", "set HOME"))
}

/// A unit is read elsewhere than where we stand.
fn absolute(home: &Home) -> Result<Home, Failure> {
    std::path::absolute(home.root())
        .map(|root: std::path::PathBuf| Home::at(&root))
        .map_err(|error| Failure::file("find", Path::new(home.root()), &error))
}

fn user(name: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if name.is_empty() || !name.bytes().all(plain) || name.starts_with('-') {
        return Err("expected the name of a user".to_owned());
    }
    Ok(name.to_owned())
}
