//! A living sandbox, whatever its backend.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermetic_policy::Cleared;
use hermetic_types::{
    self as types, BackendDescription, BackendKind, Boundary, Command, CommandInput,
    CommandProgram, HolderEpoch, RunId, SandboxId,
};
use hermetic_warden::client::{
    GreetError, HoldOutcome, RunningCommand, Warden, WardenCallError, WardenServices,
};
use hermetic_warden::protocol::{
    ByteString, KillRequest, LeftoverPolicy, OutputStreams, PLACE, ResolveRequest, ResolvedName,
    RunRequest, ShellRequest, StdinMode, WindowSize,
};
use thiserror::Error;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{Backend, FinishedCommand, OutputTerms, WardenLink, distant, gather};

/// A place where one conversation's commands run, reached over one byte stream.
///
/// What runs here is [`Cleared`]. The handle to its files and listeners has no way to run anything:
///
/// ```compile_fail,E0599
/// use hermetic_sandbox::Sandbox;
/// use hermetic_warden::protocol::RunRequest;
///
/// async fn run_unjudged(sandbox: &Sandbox) {
///     let _ = sandbox.warden().run(RunRequest::new(["rm", "-r", "/"])).await;
/// }
/// ```
#[derive(Debug)]
pub struct Sandbox {
    id: SandboxId,
    description: BackendDescription,
    warden: Warden,
    /// By which epoch its warden was told that we have it.
    holder: AtomicU64,
    /// How to reach it again, where the link may break.
    way_back: Option<Arc<dyn Backend>>,
    /// Until somebody serves it.
    exit: Mutex<Option<TcpListener>>,
}

#[derive(Debug, Error)]
pub enum RunError {
    #[error(transparent)]
    Call(#[from] WardenCallError),
    #[error("a command for the persistent shell has neither stdin nor a terminal of its own")]
    ShellTakesNoStdin,
}

/// A fresh warden answers within a millisecond; a machine that swaps takes longer.
const GREETING_TIMEOUT: Duration = Duration::from_secs(20);

/// The conversation's one persistent shell.
const SHELL: &str = "main";

impl Sandbox {
    /// Reaches the warden at the end of a link that such a backend made.
    pub async fn greet(
        id: &SandboxId,
        description: BackendDescription,
        mut link: WardenLink,
    ) -> Result<Self, GreetError> {
        let exit = link.take_exit();
        let warden = Warden::greet(link.into_stream(), GREETING_TIMEOUT).await?;
        Ok(Self {
            id: id.clone(),
            description,
            warden,
            holder: AtomicU64::new(HolderEpoch::UNSHARED.get()),
            way_back: None,
            exit: Mutex::new(exit),
        })
    }

    /// Where the link may break while the sandbox lives on, commands survive that from here on.
    #[must_use]
    pub fn with_way_back(mut self, backend: &Arc<dyn Backend>) -> Self {
        self.way_back = backend.is_distant().then(|| Arc::clone(backend));
        self
    }

    /// Tells the warden since which epoch this gateway has the sandbox. It obeys nobody who had it before.
    pub async fn hold(&self, epoch: HolderEpoch) -> Result<HoldOutcome, WardenCallError> {
        let told = timeout(GREETING_TIMEOUT, self.warden.hold(epoch)).await;
        let Ok(told) = told else {
            // It greeted and says nothing more: no better than one that does not greet.
            self.warden.close();
            return Err(WardenCallError::LinkLost);
        };
        let outcome = told?;
        if outcome == HoldOutcome::NotKept {
            let sandbox = &self.id;
            tracing::warn!(%sandbox, "its warden obeys whoever reaches it, also a gateway that had it before");
        }
        self.holder.store(epoch.get(), Ordering::SeqCst);
        Ok(outcome)
    }

    /// Looks in on a sandbox that a gateway has, for a person at the machine.
    pub async fn visit(&self) -> Result<(), WardenCallError> {
        self.warden.visit().await.map(drop)
    }

    /// By which epoch its warden knows us.
    pub fn holder(&self) -> HolderEpoch {
        HolderEpoch::new(self.holder.load(Ordering::SeqCst))
    }

    pub fn id(&self) -> &SandboxId {
        &self.id
    }

    pub fn kind(&self) -> BackendKind {
        self.description.kind
    }

    pub fn boundary(&self) -> Boundary {
        self.description.boundary
    }

    pub fn is_reachable(&self) -> bool {
        !self.warden.is_closed()
    }

    /// Files, listeners and what else needs no judgement: it stays inside.
    pub fn warden(&self) -> &WardenServices {
        self.warden.services()
    }

    /// The socket on its loopback by which it leaves, where the backend made one. It is handed over once:
    /// whoever has it decides what leaves, and closing it leaves the port to the warden.
    pub fn take_exit(&self) -> Option<TcpListener> {
        self.exit
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Where a path leads, from where the conversation's shell is.
    pub async fn resolve(&self, path: &str) -> Result<ResolvedName, WardenCallError> {
        let resolve = ResolveRequest {
            path: path.into(),
            shell: Some(SHELL.to_owned()),
        };
        self.warden.resolve(resolve).await
    }

    /// Runs a command to its end, keeping at most `bound` bytes of its output.
    ///
    /// `stop` interrupts it: the whole process tree is gone when this returns.
    pub async fn run(
        &self,
        command: Cleared,
        bound: usize,
        stop: &CancellationToken,
    ) -> Result<FinishedCommand, RunError> {
        self.run_heard(command, OutputTerms::kept(bound), stop)
            .await
    }

    /// The same, with somebody who hears the output while it comes.
    pub async fn run_heard(
        &self,
        command: Cleared,
        kept: OutputTerms<'_>,
        stop: &CancellationToken,
    ) -> Result<FinishedCommand, RunError> {
        let stdin = match &command.command().stdin {
            CommandInput::Bytes(bytes) => Some(bytes.clone()),
            CommandInput::Empty | CommandInput::Open => None,
        };
        let id = RunId::random();
        // What was on its way into a command when the link broke cannot be sent again.
        if let (Some(way_back), None) = (&self.way_back, &stdin) {
            let running = self
                .start_as(id.clone(), command, CommandBond::Sandbox)
                .await?;
            let warden = self.warden.clone();
            let whose = (&self.id, self.holder());
            let followed =
                distant::follow(way_back, whose, warden, (id, running), kept, stop).await;
            return Ok(followed?);
        }
        let running = self
            .start_as(id.clone(), command, CommandBond::Caller)
            .await?;
        let end = self.warden.kill(KillRequest::Run(id));
        Ok(gather(running, stdin, kept, stop, end).await?)
    }

    /// Starts a command and hands over its events. Dropping the [`RunningCommand`] ends the command.
    pub async fn start(&self, command: Cleared) -> Result<RunningCommand, RunError> {
        self.start_as(RunId::random(), command, CommandBond::Caller)
            .await
    }

    /// Starts a command under a name by which a later gateway can find it again.
    pub async fn start_as(
        &self,
        id: RunId,
        command: Cleared,
        bond: CommandBond,
    ) -> Result<RunningCommand, RunError> {
        let mut command = command.into_command();
        match &mut command.program {
            CommandProgram::Shell(text) => {
                let shell = ShellRequest::new(SHELL, std::mem::take(text));
                Ok(self
                    .warden
                    .shell(in_shell(shell, id, command, bond)?)
                    .await?)
            }
            _ => Ok(self.warden.run(to_run(id, command, bond)).await?),
        }
    }
}

fn in_shell(
    mut shell: ShellRequest,
    id: RunId,
    command: Command,
    bond: CommandBond,
) -> Result<ShellRequest, RunError> {
    if command.stdin != CommandInput::Empty || command.pty.is_some() {
        return Err(RunError::ShellTakesNoStdin);
    }
    shell.id = id;
    shell.cwd = command.workdir.map(Into::into);
    shell.timeout = command.timeout;
    shell.detach = bond == CommandBond::Sandbox;
    Ok(shell)
}

/// What a warden is asked to run.
pub(crate) fn to_run(id: RunId, command: Command, bond: CommandBond) -> RunRequest {
    let mut run = match command.program {
        CommandProgram::Script(text) if command.leads => {
            RunRequest::new(script(format!("{} {text}", tell_place())))
        }
        CommandProgram::Script(text) | CommandProgram::Shell(text) => RunRequest::new(script(text)),
        CommandProgram::Words(words) => RunRequest::new(words),
        CommandProgram::Inside { role, words } => {
            let mut run = RunRequest::new(inside(role, words));
            // It starts nothing that anybody would want to find again.
            run.leftovers = LeftoverPolicy::End;
            run
        }
    };
    run.id = id;
    run.cwd = command.workdir.map(Into::into);
    run.env = command
        .env
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    run.stdin = match command.stdin {
        CommandInput::Empty => StdinMode::Empty,
        CommandInput::Bytes(_) | CommandInput::Open => StdinMode::Open,
    };
    run.output = match command.pty {
        Some((columns, rows)) => OutputStreams::Pty(WindowSize { columns, rows }),
        None => match command.output {
            types::OutputMode::Apart => OutputStreams::Apart,
            types::OutputMode::Merged => OutputStreams::Merged,
        },
    };
    run.leads = command.leads.then(|| SHELL.to_owned());
    run.timeout = command.timeout;
    run.detach = bond == CommandBond::Sandbox;
    run
}

/// The program that every sandbox has, by the name under which it can start itself again.
const OURSELVES: &str = "/proc/self/exe";

fn inside(role: &str, words: Vec<Vec<u8>>) -> Vec<ByteString> {
    let words = words.into_iter().map(ByteString);
    [OURSELVES.into(), role.into()]
        .into_iter()
        .chain(words)
        .collect()
}

fn script(text: String) -> Vec<String> {
    vec!["bash".to_owned(), "-c".to_owned(), text]
}

/// On the line where the text begins, so that what bash complains about keeps its number.
fn tell_place() -> String {
    format!("trap '\\builtin pwd -P >&{PLACE} 2>/dev/null' EXIT;")
}

/// Whose end ends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandBond {
    /// It goes when the caller lets go of it.
    Caller,
    /// It goes on until it ends or the sandbox does.
    Sandbox,
}
