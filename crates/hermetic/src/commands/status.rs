//! `hermetic status`.

mod agents;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use hermetic_app as app;
use hermetic_config::{Config, ResolvedBackend, resolve_gateway_backend};
use hermetic_egress::RuleMode;
use hermetic_store::SeenGateway;
use hermetic_types::{Clock as _, ConversationKey, PartHealth, SystemClock};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{load, on_this_thread};
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::gateway_state::{GatewayState, KeptLimit, ObservedGateway, look};
use crate::output::{self, BOLD, printable};

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(cli: &CommandLine, args: &StatusArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let resolved = resolve_gateway_backend(&config)?;
    let seen = look(config.home());
    let sharing = sharing(&config);
    if args.json {
        output::print_json(&as_json(&config, &resolved, &seen, &sharing))?;
    } else {
        output::print(&as_text(&config, &resolved, &seen, &sharing))?;
    }
    Ok(ExitReason::Ok)
}

/// Which database it is, without its password. Whether it answers is the gateway's to say, above as degraded.
fn store(config: &Config) -> String {
    match app::StorePlace::of(config) {
        Ok(place) => place.to_string(),
        Err(error) => error.to_string(),
    }
}

/// Everybody who shares the store, or why that could not be asked; nobody where it is a file.
type SharingGateways = Result<Vec<SeenGateway>, String>;

fn sharing(config: &Config) -> SharingGateways {
    let asked = on_this_thread(async { Ok(app::sharing_gateways(config).await?) });
    asked.map_err(|failure: CommandFailure| failure.to_string())
}

fn shared_with(sharing: &SharingGateways) -> Vec<String> {
    let gateways = match sharing {
        Ok(gateways) => gateways,
        Err(why) => return vec![format!("could not be asked for: {why}")],
    };
    let line = |gateway: &SeenGateway| {
        let held = match gateway.conversations {
            0 => String::new(),
            1 => " 1 conversation".to_owned(),
            count => format!(" {count} conversations"),
        };
        format!(
            "{}: {}{held}, version {}, seen {} s ago",
            gateway.shown_name(),
            gateway.condition(),
            gateway.version,
            gateway.silent_for.as_secs()
        )
    };
    gateways.iter().map(line).collect()
}

fn as_text(
    config: &Config,
    resolved: &ResolvedBackend,
    seen: &ObservedGateway,
    sharing: &SharingGateways,
) -> String {
    let limits = &config.terminal().limits;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{BOLD}{name:10}{BOLD:#} {value}");
    };
    line("home", config.home().root().display().to_string());
    line("store", store(config));
    for (count, one) in shared_with(sharing).into_iter().enumerate() {
        line(if count == 0 { "gateways" } else { "" }, one);
    }
    line("gateway", gateway(seen));
    for (part, why) in degraded(config, seen) {
        line("", format!("degraded: {part}: {why}"));
    }
    line(
        "backend",
        format!("{} ({})", resolved.backend, boundary(resolved)),
    );
    line("", resolved.note());
    line(
        "image",
        resolved.image.clone().unwrap_or_else(|| "none".to_owned()),
    );
    line(
        "lifetime",
        format!("{} s idle", config.gateway().sandbox_lifetime.as_secs()),
    );
    line(
        "limits",
        format!(
            "{} cpu, {} MB memory, {} MB disk, {} processes",
            limits.cpu,
            limits.memory_bytes >> 20,
            limits.disk_bytes >> 20,
            limits.pids
        ),
    );
    for limit in kept_limits(seen) {
        line("", printable(&limit.line()));
    }
    line("egress", egress(config, resolved));
    line("platforms", platforms(config, resolved));
    for (count, account) in accounts(seen).into_iter().enumerate() {
        line(if count == 0 { "accounts" } else { "" }, account.line());
    }
    for agent in living_agents(config, seen) {
        line("agent", printable(&agent.line()));
    }
    for warning in warnings(config, resolved, seen) {
        let _ = writeln!(text, "\n⚠ {warning}");
    }
    text
}

fn as_json(
    config: &Config,
    resolved: &ResolvedBackend,
    seen: &ObservedGateway,
    sharing: &SharingGateways,
) -> serde_json::Value {
    let (running, state) = match seen {
        ObservedGateway::Stopped(_) => (Some(false), None),
        ObservedGateway::Running(state) => (Some(true), state.as_ref()),
        ObservedGateway::Unknown(_) => (None, None),
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "home": config.home().root(),
        "gateways": sharing.as_ref().ok().map(|gateways| {
            let gateways = gateways.iter().map(|gateway| json!({
                "name": gateway.shown_name(),
                "condition": gateway.condition(),
                "conversations": gateway.conversations,
                "version": gateway.version,
                "silent_seconds": gateway.silent_for.as_secs(),
            }));
            gateways.collect::<Vec<_>>()
        }),
        "gateway": {
            "running": running,
            "state": state,
            "degraded": degraded(config, seen).into_iter().collect::<BTreeMap<_, _>>(),
        },
        "backend": resolved.backend,
        "boundary": app::boundary(resolved.backend),
        "chosen": resolved.note(),
        "image": resolved.image,
        "lifetime_seconds": config.gateway().sandbox_lifetime.as_secs(),
        "limits": config.terminal().limits,
        "limits_kept": match seen {
            ObservedGateway::Running(_) => Some(kept_limits(seen)),
            ObservedGateway::Stopped(_) | ObservedGateway::Unknown(_) => None,
        },
        "egress": { "mode": config.egress().mode.name(), "reach": egress(config, resolved) },
        "platforms": config.platforms().all().map(|platform| json!({
            "name": platform.name,
            "enabled": platform.enabled,
            "backend": resolved.platforms.get(platform.name).unwrap_or(&resolved.backend),
        })),
        "accounts": accounts(seen),
        "agents": living_agents(config, seen),
        "warnings": warnings(config, resolved, seen),
    })
}

fn platforms(config: &Config, resolved: &ResolvedBackend) -> String {
    let enabled = config.platforms().enabled();
    let named: Vec<_> = enabled
        .map(|platform| match resolved.platforms.get(platform.name) {
            Some(backend) => format!("{} (on {backend})", platform.name),
            None => platform.name.to_owned(),
        })
        .collect();
    match named.is_empty() {
        true => "none configured".to_owned(),
        false => named.join(", "),
    }
}

/// One account of a platform, as the running gateway has it.
#[derive(Serialize)]
struct ServedAccount<'a> {
    account: &'a str,
    state: &'a str,
    error: Option<&'a str>,
}

impl ServedAccount<'_> {
    fn line(&self) -> String {
        let error = self.error.map(printable);
        let error = error.map_or_else(String::new, |error| format!(": {error}"));
        format!("{}  {}{error}", self.account, printable(self.state))
    }
}

/// Every account of a gateway that runs. One that does not has none: what is configured stands above.
fn accounts(seen: &ObservedGateway) -> Vec<ServedAccount<'_>> {
    let ObservedGateway::Running(Some(state)) = seen else {
        return Vec::new();
    };
    let platforms = state.platforms.iter();
    let accounts = platforms.map(|(account, platform)| ServedAccount {
        account,
        state: &platform.state,
        error: platform.error.as_deref(),
    });
    accounts.collect()
}

/// What bounds memory and disk of the sandboxes of a gateway that runs. What this shell could have says
/// nothing of it: groups and rights are those of the process.
fn kept_limits(seen: &ObservedGateway) -> &[KeptLimit] {
    match seen {
        ObservedGateway::Running(Some(state)) => &state.limits,
        ObservedGateway::Running(None)
        | ObservedGateway::Stopped(_)
        | ObservedGateway::Unknown(_) => &[],
    }
}

/// Agents live as long as the gateway that speaks to them.
fn living_agents(config: &Config, seen: &ObservedGateway) -> Vec<agents::LivingAgent> {
    match seen {
        ObservedGateway::Running(Some(_)) => agents::living(config),
        ObservedGateway::Running(None)
        | ObservedGateway::Stopped(_)
        | ObservedGateway::Unknown(_) => Vec::new(),
    }
}

fn gateway(seen: &ObservedGateway) -> String {
    match seen {
        ObservedGateway::Stopped(_) => "not running".to_owned(),
        ObservedGateway::Unknown(error) => format!("unknown: its lock cannot be read ({error})"),
        ObservedGateway::Running(None) => "starting".to_owned(),
        ObservedGateway::Running(Some(state)) => format!(
            "{} (pid {}, since {} s, version {})",
            state.stage.name(),
            state.pid,
            GatewayState::now().saturating_sub(state.started),
            state.version
        ),
    }
}

/// Parts of a running gateway that do not do all of their work, and why. It is asked itself: on a disk
/// that is full it cannot write down how it is.
fn degraded(config: &Config, seen: &ObservedGateway) -> Vec<(String, String)> {
    let ObservedGateway::Running(described) = seen else {
        return Vec::new();
    };
    let parts = live_parts(config).or_else(|| Some(described.as_ref()?.parts.clone()));
    let troubles = parts.into_iter().flatten();
    troubles
        .filter_map(|(name, health)| match health {
            PartHealth::Ok => None,
            PartHealth::Degraded { why, since } => {
                let now = SystemClock.now();
                let seconds = now.since(since).as_secs();
                Some((name, format!("{why}, since {seconds} s")))
            }
        })
        .collect()
}

/// What the gateway answers on its health port.
fn live_parts(config: &Config) -> Option<BTreeMap<String, PartHealth>> {
    const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);
    /// Far more than it ever says.
    const MOST_HEALTH_BYTES: u64 = 1 << 20;
    let dashboard = &config.gateway().dashboard;
    let address = (dashboard.host.as_str(), dashboard.port);
    let address = address.to_socket_addrs().ok()?.next()?;
    let mut stream = TcpStream::connect_timeout(&address, HEALTH_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(HEALTH_TIMEOUT)).ok()?;
    stream
        .write_all(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
        .ok()?;
    let mut answer = String::new();
    stream
        .take(MOST_HEALTH_BYTES)
        .read_to_string(&mut answer)
        .ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let health: HealthReply = serde_json::from_str(body).ok()?;
    let parts = health.parts.into_iter();
    Some(parts.map(|part| (part.name, part.health)).collect())
}

#[derive(Deserialize)]
struct HealthReply {
    parts: Vec<LivePart>,
}

#[derive(Deserialize)]
struct LivePart {
    name: String,
    #[serde(flatten)]
    health: PartHealth,
}

/// What a sandbox of everybody's can reach; `hermetic egress rules` has the rest.
fn egress(config: &Config, resolved: &ResolvedBackend) -> String {
    if app::boundary(resolved.backend) == hermetic_types::Boundary::Judged {
        return "not filtered: commands have the network of the machine".to_owned();
    }
    let nobody = ConversationKey::new("hermetic:status");
    match app::gate(config, None) {
        Err(failure) => format!("broken: {failure}"),
        Ok(None) => "closed: sandboxes reach nothing".to_owned(),
        Ok(Some(gate)) => {
            let reach = gate.reach(&nobody);
            match (reach.mode, reach.allowed.len()) {
                (RuleMode::Open, _) => "open: public hosts, through the proxy".to_owned(),
                (RuleMode::Closed, _) => {
                    "closed: hermetic/egress.rules cannot be understood".to_owned()
                }
                (RuleMode::Allowlist, 0) if config.egress().ask => {
                    "allowlist: empty, people are asked about each host".to_owned()
                }
                (RuleMode::Allowlist, 0) => "allowlist: empty, sandboxes reach nothing".to_owned(),
                (RuleMode::Allowlist, count) => {
                    let shown = reach.allowed[..count.min(5)].join(", ");
                    let more = if count > 5 {
                        format!(" and {} more", count - 5)
                    } else {
                        String::new()
                    };
                    let asks = if config.egress().ask {
                        "; people are asked about others"
                    } else {
                        ""
                    };
                    format!("allowlist: {shown}{more}{asks}")
                }
            }
        }
    }
}

fn boundary(resolved: &ResolvedBackend) -> &'static str {
    match app::boundary(resolved.backend) {
        hermetic_types::Boundary::Sealed => "sealed",
        hermetic_types::Boundary::Judged => "not sealed: commands are judged",
    }
}

fn warnings(config: &Config, resolved: &ResolvedBackend, seen: &ObservedGateway) -> Vec<String> {
    let mut warnings = resolved.warnings(app::boundary);
    warnings.extend(
        config
            .warnings()
            .iter()
            .map(|warning| match warning.place() {
                Some(place) => format!("{place}: {}", warning.what()),
                None => warning.what().to_owned(),
            }),
    );
    // The file may have changed since the gateway read it.
    if let ObservedGateway::Running(Some(state)) = seen
        && (state.backend != resolved.backend.name() || state.image != resolved.image)
    {
        warnings.push(format!(
            "the running gateway still uses {}; restart it to use {}",
            state.backend, resolved.backend
        ));
    }
    warnings
}
