//! `hermetic dashboard …`: the way into the dashboard of a running gateway.
//!
//! Whoever can read the home's key is the operator: the link is signed here by that key, and the gateway
//! holds the signature against it. Nothing is sent to the gateway.

mod serve;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Subcommand;
use hermetic_app as app;
use hermetic_config::Config;
use hermetic_dashboard::{AccessKey, DashboardRole, access_link, access_token};
use hermetic_types::{Clock as _, SystemClock};

use super::load;
use crate::by_hand;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::gateway_state::{ObservedGateway, look};
use crate::output;
use crate::ownership::refuse_root_for_another;

#[derive(Debug, clap::Args)]
pub(crate) struct DashboardArgs {
    #[command(subcommand)]
    command: DashboardCommand,
}

#[derive(Debug, Subcommand)]
enum DashboardCommand {
    /// Print a link that lets somebody in, once, within a quarter of an hour
    #[command(after_help = "\
Examples:
  hermetic dashboard link
  hermetic dashboard link --role viewer --name bob")]
    Link(DashboardPassArgs),
    /// Open the dashboard in a browser here
    Open(DashboardPassArgs),
    /// Print a token for programs that use /api/v1
    Token {
        #[command(flatten)]
        pass: DashboardPassArgs,
        /// Let it hold for so many days
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=3650))]
        days: u16,
    },
    /// End every session and void every link and token
    Revoke,
    /// Serve the dashboard by a process of its own, beside the gateway of this home
    #[command(after_help = serve::HELP)]
    Serve(serve::DashboardServeArgs),
}

#[derive(Debug, clap::Args)]
struct DashboardPassArgs {
    /// Let them act (operator) or only look (viewer)
    #[arg(long, default_value = "operator")]
    role: DashboardRole,
    /// Name them so in the audit record, instead of by the account that runs this
    #[arg(long)]
    name: Option<String>,
}

impl DashboardArgs {
    pub(crate) fn serves(&self) -> bool {
        matches!(self.command, DashboardCommand::Serve(_))
    }
}

pub(crate) fn run(cli: &CommandLine, args: &DashboardArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    // Who has a link or a token is the operator, so they are for a person, and never for what the agent runs.
    by_hand::or_refuse(&config)?;
    refuse_root_for_another(config.home())?;
    // Makes the state folder where there is none yet.
    app::installation(config.home())?;
    let state = config.home().state();
    match &args.command {
        DashboardCommand::Serve(args) => serve::run(&config, args)?,
        DashboardCommand::Link(pass) => {
            let place = place(&config)?;
            output::print(&format!("{}\n", link(&config, &place, pass)?))?;
        }
        DashboardCommand::Open(pass) => {
            let place = place(&config)?;
            open(&link(&config, &place, pass)?)?;
            output::print("opened in the browser; the link works once\n")?;
        }
        DashboardCommand::Token { pass, days } => {
            let key = AccessKey::load_or_create(&state)?;
            let length = Duration::from_secs(u64::from(*days) * 86_400);
            let now = SystemClock.now();
            let token = access_token(&key, pass.role, &pass.name()?, now, length)?;
            output::print(&format!("{token}\n"))?;
        }
        DashboardCommand::Revoke => {
            AccessKey::replace(&state)?;
            output::print("every session has ended, and every link and token is void\n")?;
        }
    }
    Ok(ExitReason::Ok)
}

/// A link for whoever starts a gateway in a terminal.
pub(crate) fn first_link(config: &Config) -> Option<String> {
    let pass = DashboardPassArgs {
        role: DashboardRole::Operator,
        name: None,
    };
    let wanted = config.gateway().dashboard.enabled && is_open(config);
    let place = wanted.then(|| address(config).ok()).flatten()?;
    link(config, &place, &pass).ok()
}

fn link(config: &Config, place: &str, pass: &DashboardPassArgs) -> Result<String, CommandFailure> {
    let key = AccessKey::load_or_create(&config.home().state())?;
    let link = access_link(&key, pass.role, &pass.name()?, SystemClock.now())?;
    Ok(format!("{place}/enter?key={link}"))
}

/// Where a browser on this machine finds a dashboard of this home: the gateway's, or one of its own while no gateway
/// has one.
fn place(config: &Config) -> Result<String, CommandFailure> {
    let why = match check_running(config) {
        Ok(()) => return address(config),
        Err(why) => why,
    };
    let served = serve::served_at(config).filter(|at| is_open_at(config, &at.ip().to_string()));
    let Some(mut at) = served else {
        return Err(why);
    };
    if at.ip().is_unspecified() {
        at.set_ip(match at.is_ipv4() {
            true => IpAddr::V4(Ipv4Addr::LOCALHOST),
            false => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    Ok(format!("http://{at}"))
}

/// Where a browser on this machine finds it.
fn address(config: &Config) -> Result<String, CommandFailure> {
    let dashboard = &config.gateway().dashboard;
    if dashboard.port == 0 {
        return Err(CommandFailure::new(
            "gateway.dashboard.port is 0, so the port is another one at every start",
            "write a port, as in gateway.dashboard.port: 9119",
        ));
    }
    let host = match dashboard.host.parse::<IpAddr>() {
        Ok(address) if address.is_unspecified() => "127.0.0.1".to_owned(),
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ => dashboard.host.clone(),
    };
    Ok(format!("http://{host}:{}", dashboard.port))
}

fn is_open(config: &Config) -> bool {
    is_open_at(config, &config.gateway().dashboard.host)
}

fn is_open_at(config: &Config, host: &str) -> bool {
    let dashboard = &config.gateway().dashboard;
    hermetic_dashboard::is_loopback_host(host)
        || dashboard.password.is_some()
        || dashboard.proxy_secret.is_some()
}

fn check_running(config: &Config) -> Result<(), CommandFailure> {
    if !config.gateway().dashboard.enabled {
        return Err(CommandFailure::new(
            "the dashboard is switched off",
            "write gateway.dashboard.enabled: true and restart the gateway",
        ));
    }
    if !is_open(config) {
        return Err(CommandFailure::new(
            "the dashboard is locked: it listens on an address that others can reach, and has no password",
            "write gateway.dashboard.password, or gateway.dashboard.host: 127.0.0.1; then restart the gateway",
        ));
    }
    match look(config.home()) {
        ObservedGateway::Stopped(_) => Err(CommandFailure::new(
            "no gateway runs for this home, so there is no dashboard to look at",
            "start it: hermetic gateway start (or, to look without it: hermetic dashboard serve)",
        )),
        ObservedGateway::Running(_) | ObservedGateway::Unknown(_) => Ok(()),
    }
}

fn open(link: &str) -> Result<(), CommandFailure> {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let opened = Command::new(opener)
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if opened.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    Err(CommandFailure::new(
        format!("{opener} opens no browser here"),
        "`hermetic dashboard link` prints the link",
    ))
}

impl DashboardPassArgs {
    /// Whoever only looks is somebody else as a rule, and would be shown the chat of whoever has the same name.
    fn name(&self) -> Result<String, CommandFailure> {
        if self.role == DashboardRole::Viewer && self.name.is_none() {
            return Err(CommandFailure::new(
                "whoever only looks needs a name of their own: under yours they would read your chat",
                "name them, as in --role viewer --name bob",
            ));
        }
        let account = || std::env::var("USER").ok().filter(|name| !name.is_empty());
        let named = self.name.clone().or_else(account);
        Ok(named.unwrap_or_else(|| format!("uid-{}", rustix::process::getuid().as_raw())))
    }
}
