//! `hermetic egress …`: the way out, on its own.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use hermetic_egress::{
    Conversation, Drained, Limits, LogRecord, Preset, Proxy, Rules, RulesText, SystemResolver,
};
use hermetic_types::ConversationKey;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, BOLD};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: EgressCommand,
}

#[derive(Debug, Subcommand)]
enum EgressCommand {
    /// An allowlist proxy on a port, for deployments: HTTP CONNECT, plain HTTP and SOCKS5
    #[command(after_help = "\
Names are resolved by the system's resolver, once, and every address has to be public. In a tunnel
the TLS name has to be the one that was asked for.

Examples:
  hermetic egress serve --listen 127.0.0.1:3128 --allow api.openai.com --allow '*.githubusercontent.com'
  hermetic egress serve --listen 0.0.0.0:3128 --preset python --allow example.org:80")]
    Serve {
        /// Where to listen
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3128")]
        listen: SocketAddr,
        /// A host that may be reached: `host`, `host:port`, `*.suffix`, `tcp://host:port`
        #[arg(long, value_name = "HOST")]
        allow: Vec<String>,
        /// A host that may not, whatever else is allowed
        #[arg(long, value_name = "HOST")]
        deny: Vec<String>,
        /// A named list of hosts; see `hermetic egress presets`
        #[arg(long, value_name = "NAME")]
        preset: Vec<String>,
        /// Bytes that may pass, both ways together
        #[arg(long, value_name = "BYTES")]
        budget: Option<u64>,
    },
    /// The named lists of hosts, and what is on them
    Presets {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// How long open connections get when we are asked to end.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) fn run(_cli: &Cli, args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        EgressCommand::Presets { json } => presets(*json)?,
        EgressCommand::Serve {
            listen,
            allow,
            deny,
            preset,
            budget,
        } => {
            let text = RulesText {
                deny: deny.iter().map(|host| host.as_str().into()).collect(),
                presets: preset.clone(),
                ..RulesText::allowing(allow.iter().cloned())
            };
            let rules = Rules::compile(&text).map_err(|error| {
                Failure::new(error.to_string(), "see `hermetic egress serve --help`")
            })?;
            let limits = Limits {
                budget: *budget,
                ..Limits::default()
            };
            tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()
                .map_err(|error| Failure::caused(&error, "free some memory or processes"))?
                .block_on(serve(*listen, rules, limits))?;
        }
    }
    Ok(Exit::Ok)
}

async fn serve(listen: SocketAddr, rules: Rules, limits: Limits) -> Result<(), Failure> {
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        Failure::new(
            format!("cannot listen on {listen}: {error}"),
            "choose another --listen address",
        )
    })?;
    let failed = |error: std::io::Error| Failure::caused(&error, "report this as a bug");
    let address = listener.local_addr().map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let stop = CancellationToken::new();
    let asked = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        asked.cancel();
    });

    info!(%address, "the proxy listens");
    let conversation = Conversation::new(
        ConversationKey::new("egress:stand-alone"),
        rules,
        Vec::new(),
        &limits,
    );
    let proxy = Proxy::new(
        limits,
        Arc::new(SystemResolver::default()),
        Arc::new(LogRecord),
    );
    match hermetic_egress::serve(listener, proxy, conversation, stop, GRACE).await {
        Drained::Clean => info!("stopped"),
        Drained::CutShort { connections } => warn!(connections, "stopped; some were cut"),
    }
    Ok(())
}

fn presets(json: bool) -> Result<(), Failure> {
    if json {
        let presets: Vec<_> = Preset::all()
            .iter()
            .map(|preset| {
                json!({
                    "name": preset.name(),
                    "about": preset.about(),
                    "hosts": preset.lines().collect::<Vec<_>>(),
                })
            })
            .collect();
        return output::print_json(&presets);
    }
    let mut text = String::new();
    for preset in Preset::all() {
        let _ = writeln!(text, "{BOLD}{}{BOLD:#}  {}", preset.name(), preset.about());
        for line in preset.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    output::print(&text)
}
