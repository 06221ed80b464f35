//! `hermetic exec`: one command in a sandbox.

pub(super) mod judging;
mod leaving;
mod made_with;
pub(super) mod relay;
mod script_parts;
pub(super) mod terminal;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermetic_app::{self as app, BackendCaller, PendingHeadStart};
use hermetic_config::{Config, resolve_cli_backend};
use hermetic_egress::Egress;
use hermetic_policy::Cleared;
use hermetic_sandbox::{
    Backend, FoundState, HostMount, MountMode, NetworkMode, PassingSandbox, Sandbox,
    SandboxLifeline, SandboxSpec, SystemView,
};
use hermetic_session::{EgressPort, LeaseError, PROXY_PORT};
use hermetic_types::{
    BackendKind, Command, CommandInput, ConversationKey, InstallationId, SandboxId,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use self::leaving::ExecEgressArgs;
use super::{inputs, on_runtime, on_this_thread};
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The command's own exit code is passed on; 124 is a timeout, 125 a failure of hermetic itself, \
126 a command that cannot be run, 127 a command that does not exist.

The command has no network unless --allow, --preset or --egress gives it some.

On local and ssh, which are not sandboxes, you are asked before a dangerous command runs; --yes \
answers for scripts. Commands that wipe or stop a machine are always refused there.

Without --session the sandbox is new, and it is removed afterwards however this program ends.

Started by root, the sandbox is another user, so a folder of root's is refused with --here and :rw: stand in \
a folder of an ordinary user, or start it as that user.

Examples:
  hermetic exec -- python3 -c 'print(6 * 7)'
  hermetic exec --here -- make test
  echo hi | hermetic exec -- tr a-z A-Z
  hermetic exec --session work -- bash -c 'echo kept > note'
  hermetic exec --mount ~/data:/data -- ls /data
  hermetic exec --preset python -- pip install --user httpx")]
pub(crate) struct ExecArgs {
    /// Run it on this backend, instead of terminal.backend
    #[arg(long, value_name = "BACKEND")]
    backend: Option<BackendKind>,
    /// Use this image; for native, a folder with a root file system
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Run it in the sandbox of this session, which is kept, instead of a fresh one
    #[arg(long, value_name = "NAME", value_parser = session_name)]
    session: Option<String>,
    /// Kill the command after this time: 90, 90s, 5m, 2h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Set a variable; may be repeated
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Show a host folder inside, read-only unless it ends in :rw; may be repeated
    #[arg(long = "mount", value_name = "HOST:INSIDE[:rw]", value_parser = mount)]
    mounts: Vec<HostMount>,
    /// Make the current folder the workspace, writable
    #[arg(long, conflicts_with = "session")]
    here: bool,
    /// Start in this folder inside
    #[arg(long, short = 'w', value_name = "FOLDER")]
    workdir: Option<String>,
    #[command(flatten)]
    leaving: ExecEgressArgs,
    /// Run it without asking, where local or ssh would ask a person first
    #[arg(long)]
    yes: bool,
    /// Give the command a terminal
    #[arg(long, short = 't')]
    tty: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const CALLER: BackendCaller = BackendCaller::CommandLine(output::progress);

pub(crate) fn run(cli: &CommandLine, args: &ExecArgs) -> Result<ExitReason, CommandFailure> {
    let work = exec(cli, args);
    // A proxy has connections of its own to serve.
    let ran = match args.leaving.is_asked_for() {
        true => on_runtime(work),
        false => on_this_thread(work),
    };
    let ran = ran.map_err(|failure| match failure.exit() {
        ExitReason::Passed(127) => no_program(&args.command),
        _ => failure,
    });
    ran.map_err(CommandFailure::of_exec)
}

/// Names what is not there. A whole line in one word was meant for a shell.
pub(super) fn no_program(command: &[String]) -> CommandFailure {
    let program = command.first().map(String::as_str).unwrap_or_default();
    let is_line = command.len() == 1 && program.contains([' ', '|', ';', '&', '>', '<', '$']);
    let failure = match is_line {
        true => CommandFailure::new(
            format!("`{program}` is a line for a shell, and no program"),
            "say which shell: hermetic exec -- bash -c '…'",
        ),
        false => CommandFailure::new(
            format!("there is no program `{program}` in the sandbox"),
            "check its name; a native sandbox has the programs of this machine under /usr, others those of \
             their --image",
        ),
    };
    failure.with(127)
}

async fn exec(cli: &CommandLine, args: &ExecArgs) -> Result<ExitReason, CommandFailure> {
    let inputs = inputs(cli)?;
    let begun = match (args.backend, &args.session) {
        // Before the configuration is read, as both take their time and neither needs the other.
        (None | Some(BackendKind::Native), None) => app::begin_native(&inputs.home),
        _ => PendingHeadStart::none(),
    };
    let config = hermetic_config::load(&inputs)?;
    let kind = match args.backend {
        Some(kind) => kind,
        None => resolve_cli_backend(&config)?,
    };
    if kind == BackendKind::Local {
        warn!("⚠ this command runs on this machine, not in a sandbox: the backend is local");
    }
    if kind == BackendKind::Ssh {
        warn!("⚠ this command runs on a remote host, not in a sandbox: the backend is ssh");
    }
    refuse_what_a_host_has_not(kind, args)?;
    // Before anything is opened or made: of a command that is refused nothing is left.
    let cleared = judging::cleared(&config, kind, command(args), args.yes)?;
    let gate = args.leaving.gate(&config, kind)?;
    let installation = app::installation(config.home())?;
    let (place, ran) = ((&config, kind, installation), (cleared, gate));
    match &args.session {
        Some(name) => in_session(place, args, name, ran).await,
        None => in_passing(place, args, begun, ran).await,
    }
}

type HomeBackend<'a> = (&'a Config, BackendKind, InstallationId);

/// What runs, and the way out that it has.
type JudgedCommand = ((Cleared, judging::ReadInput), Option<Arc<Egress>>);

/// In the sandbox of a named session, which is there for the next command too.
async fn in_session(
    (config, kind, installation): HomeBackend<'_>,
    args: &ExecArgs,
    name: &str,
    (cleared, gate): JudgedCommand,
) -> Result<ExitReason, CommandFailure> {
    let mut plan = app::plan(config, kind, config.terminal().lifetime, CALLER);
    plan.mounts.extend(args.mounts.clone());
    let system = args.image.as_deref().map(|image| system_of(kind, image));
    let system = system.transpose()?;
    if let Some(system) = &system {
        plan.system = system.clone();
    }
    plan.network = app::network(config, kind, gate.as_ref());
    let wants_out = gate.is_some();
    let sandboxes = app::sandboxes(config, installation, plan, CALLER, gate).await?;
    let key = ConversationKey::new(format!("cli:{name}"));
    let lease = sandboxes
        .lease(&key)
        .await
        .map_err(|error| no_lease(&error))?;
    if let Some(set_aside) = lease.set_aside() {
        warn!("session {name} has a new sandbox: {set_aside}");
    }
    let image = args.image.as_deref().zip(system.as_ref());
    let made = app::store(config).await?.ledger().find(lease.id()).await?;
    let made = made.and_then(|entry| serde_json::from_str::<SandboxSpec>(&entry.spec).ok());
    let lacking = made.and_then(|made| made_with::lacking(&made, image, &args.mounts));
    if let Some(what) = lacking {
        return Err(made_without(name, lease.id(), &what));
    }
    // One that was made without a way out gets none later, so the flags would be without
    // effect.
    if wants_out && sandboxes.reach_of(&key).await.is_none() {
        return Err(made_without(name, lease.id(), "a way out"));
    }
    let ran = relay::run(&lease, cleared, args.tty).await;
    sandboxes.drain().await;
    ran
}

/// In a sandbox of its own, which ends with the command.
async fn in_passing(
    (config, kind, installation): HomeBackend<'_>,
    args: &ExecArgs,
    begun: PendingHeadStart,
    (cleared, gate): JudgedCommand,
) -> Result<ExitReason, CommandFailure> {
    let backend = app::backend_to_create(config, &installation, kind, CALLER, begun)?;
    let mut spec = spec(config, args, kind, installation)?;
    if let Some(gate) = &gate {
        spec.network = NetworkMode::Proxied { port: PROXY_PORT };
        spec.env = gate.env(&spec.conversation, PROXY_PORT);
    }
    let sandbox = PassingSandbox::create(&backend, &spec).await?;
    let running = run_leaving(&sandbox, &spec, gate.as_ref(), cleared, args.tty);
    // Beside the command, which leaves this process nothing to do: nobody waits for it at the end.
    let (ran, ()) = tokio::join!(running, sweep(backend.as_ref()));
    sandbox.destroy().await?;
    ran
}

/// The way out lasts as long as the command.
async fn run_leaving(
    sandbox: &Sandbox,
    spec: &SandboxSpec,
    gate: Option<&Arc<Egress>>,
    cleared: (Cleared, judging::ReadInput),
    tty: bool,
) -> Result<ExitReason, CommandFailure> {
    let works = TaskTracker::new();
    let egress_port = match gate {
        Some(gate) => {
            let stop = CancellationToken::new();
            let whose = &spec.conversation;
            Some(EgressPort::open(sandbox, whose, gate, None, PROXY_PORT, &works, &stop).await)
        }
        None => None,
    };
    let ran = relay::run(sandbox, cleared, tty).await;
    if let Some(egress_port) = egress_port {
        egress_port.close().await;
    }
    ran
}

fn no_lease(error: &LeaseError) -> CommandFailure {
    match error {
        LeaseError::NotBack { id, .. } => CommandFailure::caused(
            error,
            format!("try again; `hermetic sandbox destroy {id}` gives its files up"),
        ),
        _ => CommandFailure::caused(error, "`hermetic doctor` tells what is missing"),
    }
}

fn made_without(name: &str, id: &SandboxId, what: &str) -> CommandFailure {
    CommandFailure::new(
        format!("the sandbox of session {name} was made without {what}"),
        format!("use another --session, or destroy it first: hermetic sandbox destroy {id}"),
    )
}

/// Nothing of this machine is copied to another, or back, unasked.
fn refuse_what_a_host_has_not(kind: BackendKind, args: &ExecArgs) -> Result<(), CommandFailure> {
    if kind == BackendKind::Ssh && (args.here || !args.mounts.is_empty()) {
        return Err(CommandFailure::new(
            "a folder of this machine cannot be shown on the remote host",
            "leave --here and --mount out, and copy what is needed yourself",
        ));
    }
    Ok(())
}

/// Removes what earlier ones left that were killed. Their processes are gone already.
async fn sweep(backend: &dyn Backend) {
    for found in backend.list().await.unwrap_or_default() {
        if (found.state, found.lifeline) == (FoundState::Broken, Some(SandboxLifeline::Creator))
            && let Err(error) = backend.destroy(&found.id).await
        {
            warn!(sandbox = %found.id, %error, "the rest of an earlier sandbox could not be removed");
        }
    }
}

fn spec(
    config: &Config,
    args: &ExecArgs,
    kind: BackendKind,
    installation: hermetic_types::InstallationId,
) -> Result<SandboxSpec, CommandFailure> {
    let mut spec = app::passing(config, kind, installation, "cli");
    if let Some(image) = &args.image {
        spec.system = system_of(kind, image)?;
    }
    spec.mounts.extend(args.mounts.clone());
    if args.here {
        spec.mounts.push(app::this_folder()?);
    }
    Ok(spec)
}

fn system_of(kind: BackendKind, image: &str) -> Result<SystemView, CommandFailure> {
    match kind {
        BackendKind::Native => Ok(SystemView::Rootfs(PathBuf::from(image))),
        BackendKind::Local | BackendKind::Ssh => Err(CommandFailure::new(
            format!("the {kind} backend has no images"),
            "leave --image out",
        )),
        _ => Ok(SystemView::Image(image.to_owned())),
    }
}

fn command(args: &ExecArgs) -> Command {
    let mut command = Command::words(args.command.iter().cloned());
    command.workdir = args.workdir.clone();
    command.env = args.env.iter().cloned().collect();
    command.stdin = CommandInput::Open;
    command.pty = args.tty.then(terminal::size);
    command.timeout = args.timeout;
    command
}

fn session_name(text: &str) -> Result<String, String> {
    const MOST_NAME_BYTES: usize = 200;
    if text.trim().is_empty() {
        return Err("a session needs a name".to_owned());
    }
    if text.len() > MOST_NAME_BYTES || text.chars().any(char::is_control) {
        return Err(format!(
            "expected a name of at most {MOST_NAME_BYTES} bytes, without control characters"
        ));
    }
    Ok(text.to_owned())
}

/// Seconds, or a number with its unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected seconds, or a number with s, m or h behind it: 90, 5m".to_owned();
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let time = number.checked_mul(seconds).filter(|time| *time > 0);
    time.map(Duration::from_secs).ok_or_else(wrong)
}

pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

fn mount(text: &str) -> Result<HostMount, String> {
    let wrong = || "expected HOST:INSIDE, with :rw at the end to allow writing".to_owned();
    let (rest, mode) = match text.strip_suffix(":rw") {
        Some(rest) => (rest, MountMode::ReadWrite),
        None => (
            text.strip_suffix(":ro").unwrap_or(text),
            MountMode::ReadOnly,
        ),
    };
    let (source, target) = rest.split_once(':').ok_or_else(wrong)?;
    if source.is_empty() || !target.starts_with('/') {
        return Err(wrong());
    }
    let source = std::path::absolute(source).map_err(|error| error.to_string())?;
    Ok(HostMount {
        source,
        target: target.into(),
        mode,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_have_a_unit() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("1m", 60), ("2h", 7200)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "0",
            "m",
            "1d",
            "1.5m",
            "-1",
            "99999999999999999999",
            "18446744073709551615h",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
