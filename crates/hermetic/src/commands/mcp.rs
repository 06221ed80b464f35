//! `hermetic mcp`: the tools for any agent that speaks MCP, and the servers whose tools our agent has.

mod login;
mod servers;

pub(super) use login::standings;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hermetic_app::{self as app, BackendCaller};
use hermetic_config::{Config, resolve_cli_backend};
use hermetic_mcp::{
    ClientLimits, ClientSandboxes, HttpEndpoint, HttpEndpointError, over_http, over_stdio,
};
use hermetic_sandbox::{NetworkMode, SandboxSpec};
use hermetic_tools::ToolKit;
use hermetic_types::{BackendKind, Boundary, RunId, Secret, SystemClock};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{load, on_runtime};
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::{log, output};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --listen one client is served on stdin and stdout, with the log on stderr. Each client gets \
its own sandbox, made at its first call and removed when the client leaves; it reaches what \
gateway.egress allows. The client is asked for approvals; one that cannot ask gets a refusal.

The commands below are about the other direction: the servers under mcp_servers, whose tools the agent \
has.

Examples:
  hermetic mcp
  hermetic mcp --here
  hermetic mcp --listen 127.0.0.1:8765 --token-file ~/.hermetic-mcp-token
  hermetic mcp check
  hermetic mcp login tracker")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    servers: Option<ServersCommand>,
    /// Run clients' commands on this backend, instead of terminal.backend
    #[arg(long, value_name = "BACKEND")]
    backend: Option<BackendKind>,
    /// Make the current folder the workspace, writable
    #[arg(long)]
    here: bool,
    /// Serve many clients over streamable HTTP on this loopback address, at /mcp
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Read the token that clients must send from this file; created if missing
    #[arg(long, value_name = "FILE", requires = "listen")]
    token_file: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum ServersCommand {
    /// List the servers under mcp_servers, and where each of them runs
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Start each server in a sandbox for this once, and list its tools
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Log in to a server that wants it (auth: oauth), with a browser
    Login {
        /// The server's name under mcp_servers
        name: String,
        /// Type a code in on another device, where no browser can come back to this machine
        #[arg(long)]
        device: bool,
    },
    /// Forget the login to a server; the authorization server is not told
    Logout {
        /// The server's name under mcp_servers
        name: String,
    },
}

const CALLER: BackendCaller = BackendCaller::CommandLine(output::progress);
/// Clients with a sandbox at once, where the file does not say.
const MOST_MCP_CLIENTS: usize = 64;
const SHORTEST_TOKEN: usize = 16;

pub(crate) fn run(cli: &CommandLine, args: &McpArgs) -> Result<ExitReason, CommandFailure> {
    match &args.servers {
        None => on_runtime(serve(cli, args)),
        Some(ServersCommand::List { json }) => servers::list(cli, *json),
        Some(ServersCommand::Check { json }) => on_runtime(servers::check(cli, args, *json)),
        Some(ServersCommand::Login { name, device }) => {
            on_runtime(login::log_in(cli, name, *device))
        }
        Some(ServersCommand::Logout { name }) => on_runtime(login::log_out(cli, name)),
    }
}

async fn serve(cli: &CommandLine, args: &McpArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let kind = match args.backend {
        Some(kind) => kind,
        None => resolve_cli_backend(&config)?,
    };
    if kind == BackendKind::Local {
        warn!("⚠ clients' commands run on this machine, not in a sandbox: the backend is local");
    }
    let redactor = app::redactor(&config);
    log::hide(&redactor);
    let kit = app::clients_kit(&config, kind, &redactor);
    let sandboxes = client_sandboxes(&config, args, kind, kit)?;
    let stop = stop_on_signal()?;
    match args.listen {
        None => {
            let served = over_stdio(sandboxes, stop).await;
            served
                .map_err(|error| CommandFailure::caused(&error, "start it from an MCP client"))?;
        }
        Some(at) => {
            let token = token(args)?;
            let endpoint = HttpEndpoint::open(at, &token).await;
            let endpoint = endpoint.map_err(|error| {
                let remedy = match &error {
                    HttpEndpointError::NotLoopback(at) => format!(
                        "write 127.0.0.1:{}; clients elsewhere come by `ssh -L` or a proxy of yours",
                        at.port()
                    ),
                    HttpEndpointError::Listen { .. } => "choose another port".to_owned(),
                };
                CommandFailure::caused(&error, remedy)
            })?;
            let at = endpoint.address();
            let at = at.map_err(|error| CommandFailure::caused(&error, "choose another port"))?;
            info!("MCP on http://{at}/mcp");
            let idle = config.terminal().lifetime;
            let served = over_http(sandboxes, endpoint, idle, stop).await;
            served.map_err(|error| CommandFailure::caused(&error, "start it again"))?;
        }
    }
    Ok(ExitReason::Ok)
}

fn client_sandboxes(
    config: &Config,
    args: &McpArgs,
    kind: BackendKind,
    kit: ToolKit,
) -> Result<ClientSandboxes, CommandFailure> {
    let installation = app::installation(config.home())?;
    let backend = app::backend(config, &installation, kind, CALLER)?;
    let spec = spec(config, args, kind, installation)?;
    let most = config.gateway().max_sandboxes;
    let most = most.unwrap_or_else(|| {
        app::SandboxBounds::of(config)
            .max_sandboxes
            .min(MOST_MCP_CLIENTS)
    });
    let gate = match app::boundary(kind) {
        Boundary::Sealed => app::gate(config, None)?,
        Boundary::Judged => None,
    };
    let gate = gate.filter(|gate| app::network(config, kind, Some(gate)) != NetworkMode::Closed);
    let bounds = ClientLimits {
        most,
        patience: config.approvals().timeout,
        disk: app::disk_bounds(config),
    };
    Ok(ClientSandboxes::new(
        kit,
        backend,
        spec,
        gate,
        app::audit(config)?,
        bounds,
        SystemClock::shared(),
    ))
}

fn spec(
    config: &Config,
    args: &McpArgs,
    kind: BackendKind,
    installation: hermetic_types::InstallationId,
) -> Result<SandboxSpec, CommandFailure> {
    let mut spec = app::passing(config, kind, installation, "mcp");
    if args.here {
        spec.mounts.push(app::this_folder()?);
    }
    Ok(spec)
}

/// Read from its file; made, and put there for its owner only, if there is none.
fn token(args: &McpArgs) -> Result<Secret, CommandFailure> {
    let Some(path) = &args.token_file else {
        let token = format!("{}{}", RunId::random(), RunId::random());
        anstream::eprintln!("token: {token}");
        return Ok(Secret::new(token));
    };
    match read_private(path) {
        Ok(None) => Err(CommandFailure::new(
            format!("{} can be read by others", path.display()),
            "chmod 600 it, or remove it and one is made",
        )),
        Ok(Some(text)) if text.trim().len() >= SHORTEST_TOKEN => Ok(Secret::new(text.trim())),
        Ok(Some(_)) => Err(CommandFailure::new(
            format!(
                "{} holds no token of {SHORTEST_TOKEN} characters",
                path.display()
            ),
            "remove it and one is made",
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let token = format!("{}{}", RunId::random(), RunId::random());
            write_private(path, &token)
                .map_err(|error| CommandFailure::file("write", path, &error))?;
            Ok(Secret::new(token))
        }
        Err(error) => Err(CommandFailure::file("read", path, &error)),
    }
}

/// Nothing where other accounts can read it too. Asked of the file that is open, which nobody exchanges.
fn read_private(path: &Path) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    if file.metadata()?.mode() & 0o077 != 0 {
        return Ok(None);
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Some(text))
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{text}")
}

fn stop_on_signal() -> Result<CancellationToken, CommandFailure> {
    let failed =
        |error: io::Error| CommandFailure::caused(&error, "free some memory or descriptors");
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let stop = CancellationToken::new();
    let told = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        told.cancel();
    });
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_that_others_can_read_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        write_private(&path, "a token").unwrap();
        assert_eq!(read_private(&path).unwrap().as_deref(), Some("a token\n"));
        for mode in [0o640, 0o604] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_private(&path).unwrap(), None, "{mode:o}");
        }
    }
}
