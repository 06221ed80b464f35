//! `hermetic egress serve`: the proxy on a port of its own, where Squid stood.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use hermetic_egress::{
    AllowInstructions, Authority, CompiledRules, ConversationEgress, EgressLimits, LogRecorder,
    NameCheck, Proxy, RulesText, ServeOutcome, SystemResolver, UpstreamRoute, publish,
};
use hermetic_listen::{BoundedListener, ConnectionBounds, descriptors};
use hermetic_types::ConversationKey;
use hermetic_upstream::{ProxyExceptions, UpstreamProxy};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::failure::CommandFailure;

pub(super) const HELP: &str = "\
Names are resolved by the system's resolver, once, and every address has to be public. In a tunnel
the TLS name has to be the one that was asked for.

Examples:
  hermetic egress serve --listen 127.0.0.1:3128 --allow api.openai.com --allow '*.githubusercontent.com'
  hermetic egress serve --listen 0.0.0.0:3128 --preset python --allow example.org:80
  hermetic egress serve --listen 0.0.0.0:3128 --publish 0.0.0.0:9119=gateway:9119";

#[derive(Debug, clap::Args)]
pub(super) struct EgressServeArgs {
    /// Listen on this address
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3128")]
    listen: SocketAddr,
    /// Allow this host: `host`, `host:port`, `*.suffix`, `tcp://host:port`
    #[arg(long, value_name = "HOST")]
    allow: Vec<String>,
    /// Forbid this host, whatever else is allowed
    #[arg(long, value_name = "HOST")]
    deny: Vec<String>,
    /// Allow a named list of hosts; see `hermetic egress presets`
    #[arg(long, value_name = "NAME")]
    preset: Vec<String>,
    /// Let this many bytes pass, both ways together
    #[arg(long, value_name = "BYTES")]
    budget: Option<u64>,
    /// Leave through this proxy, as in http://host:port; reads HTTPS_PROXY where it is not given
    #[arg(
        long,
        value_name = "URL",
        env = "HERMETIC_PROXY",
        hide_env_values = true
    )]
    upstream: Option<String>,
    /// Reach these hosts without the proxy; reads NO_PROXY where it is not given
    #[arg(long, value_name = "HOSTS")]
    no_proxy: Option<String>,
    /// Choose who looks up the names of what goes through the proxy
    #[arg(long, value_enum, default_value_t = UpstreamNameCheck::Checked)]
    upstream_names: UpstreamNameCheck,
    /// Forward a port here to a service inside, as in 0.0.0.0:9119=gateway:9119
    #[arg(long, value_name = "ADDRESS:PORT=HOST:PORT", value_parser = published)]
    publish: Vec<(SocketAddr, Authority)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UpstreamNameCheck {
    /// We as well: every address is checked, and the proxy is told the name
    Checked,
    /// We alone: the proxy is told the checked address
    Pinned,
    /// The proxy alone: only names are checked
    Proxy,
}

/// Connections at once, where there are descriptors for them.
const MOST_PROXY_CONNECTIONS: usize = 16_384;
/// Of one port that is published, two descriptors each.
const MOST_PUBLISHED: usize = 256;

/// How long open connections get when we are asked to end.
const DRAIN_GRACE: Duration = Duration::from_secs(10);

pub(super) fn run(args: &EgressServeArgs) -> Result<(), CommandFailure> {
    let text = RulesText {
        deny: args.deny.iter().map(|host| host.as_str().into()).collect(),
        presets: args.preset.clone(),
        ..RulesText::allowing(args.allow.iter().cloned())
    };
    let rules = CompiledRules::compile(&text).map_err(|error| {
        CommandFailure::new(error.to_string(), "see `hermetic egress serve --help`")
    })?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))?
        .block_on(serve(args, rules))
}

async fn serve(args: &EgressServeArgs, rules: CompiledRules) -> Result<(), CommandFailure> {
    let files = usize::try_from(descriptors::raise()).unwrap_or(usize::MAX);
    // Two descriptors each, and a quarter of all for everything else.
    let connections = (files / 8 * 3).min(MOST_PROXY_CONNECTIONS);
    let listener = listen(args.listen).await?;
    let stop = stop_on_signal()?;
    let published = TaskTracker::new();
    for (at, to) in &args.publish {
        let door = listen(*at).await?;
        info!(%at, %to, "published");
        let door = BoundedListener::new(door, ConnectionBounds::of(MOST_PUBLISHED.min(files / 16)));
        published.spawn(publish(door, to.clone(), stop.clone()));
    }
    let limits = EgressLimits {
        // The port counts its connections itself, and makes room.
        connections: usize::MAX,
        budget: args.budget,
        // One conversation here is a whole deployment.
        lookups: 128,
        ..EgressLimits::default()
    };
    let conversation = ConversationEgress::new(
        ConversationKey::new("egress:stand-alone"),
        rules,
        Vec::new(),
        &limits,
    );
    let proxy = Proxy::new(
        limits,
        Arc::new(SystemResolver::default()),
        Arc::new(LogRecorder),
    )
    .advising(AllowInstructions::ByFlagOf("hermetic egress serve"));
    let proxy = match upstream(args)? {
        Some(route) => {
            info!(proxy = %route, "leaving through another proxy");
            proxy.leaving_through(route)
        }
        None => proxy,
    };
    let address = listener
        .local_addr()
        .map_err(|error| CommandFailure::caused(&error, "report this as a bug"))?;
    info!(%address, "the proxy listens");
    let listener = BoundedListener::new(listener, ConnectionBounds::of(connections));
    match hermetic_egress::serve(listener, proxy, conversation, stop, DRAIN_GRACE).await {
        ServeOutcome::Clean => info!("stopped"),
        ServeOutcome::CutShort { connections } => warn!(connections, "stopped; some were cut"),
    }
    published.close();
    published.wait().await;
    Ok(())
}

/// The proxy behind this one: that of the arguments, else of the environment.
fn upstream(args: &EgressServeArgs) -> Result<Option<UpstreamRoute>, CommandFailure> {
    let variable = |names: &[&str]| {
        let found = names.iter().find_map(|name| std::env::var(name).ok());
        found.filter(|value| !value.is_empty())
    };
    let named = args.upstream.clone().filter(|url| !url.is_empty());
    let named = named.or_else(|| variable(&["HTTPS_PROXY", "https_proxy"]));
    let Some(url) = named.filter(|url| url != "none") else {
        return Ok(None);
    };
    let wrong = |error: &dyn std::error::Error| {
        let remedy = "pass --upstream http://host:port, or `none` for no proxy";
        CommandFailure::new(error.to_string(), remedy)
    };
    let except = args.no_proxy.clone();
    let except = except.or_else(|| variable(&["NO_PROXY", "no_proxy"]));
    let proxy = UpstreamProxy::parse(&url)
        .map_err(|error| wrong(&error))?
        .except(ProxyExceptions::parse(&except.unwrap_or_default()));
    let names = match args.upstream_names {
        UpstreamNameCheck::Checked => NameCheck::Checked,
        UpstreamNameCheck::Pinned => NameCheck::Pinned,
        UpstreamNameCheck::Proxy => NameCheck::ByProxy,
    };
    UpstreamRoute::new(proxy, names)
        .map(Some)
        .map_err(|error| wrong(&error))
}

async fn listen(at: SocketAddr) -> Result<TcpListener, CommandFailure> {
    TcpListener::bind(at).await.map_err(|error| {
        CommandFailure::new(
            format!("cannot listen on {at}: {error}"),
            "choose another address",
        )
    })
}

fn stop_on_signal() -> Result<CancellationToken, CommandFailure> {
    let failed = |error: std::io::Error| CommandFailure::caused(&error, "report this as a bug");
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
    Ok(stop)
}

fn published(text: &str) -> Result<(SocketAddr, Authority), String> {
    let wrong = || "expected ADDRESS:PORT=HOST:PORT".to_owned();
    let (at, to) = text.split_once('=').ok_or_else(wrong)?;
    let at = at.parse().map_err(|_| wrong())?;
    let to = Authority::parse(to).map_err(|error| error.to_string())?;
    Ok((at, to))
}
