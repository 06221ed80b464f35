//! Terminals of the dashboard: a shell in a sandbox that lives.

use futures::future::{BoxFuture, FutureExt};
use hermetic_dashboard::{OpenedShell, TerminalOpener, TerminalRefused, TerminalSize};
use hermetic_gateway::GatewayHandle;
use hermetic_policy::Cleared;
use hermetic_types::{BackendKind, Boundary, Command, CommandInput, ConversationKey, SandboxId};

use super::boundary;

/// Opens them in the sandboxes of a gateway that runs.
#[derive(Debug)]
pub(super) struct SandboxTerminals {
    gateway: GatewayHandle,
}

/// A shell that reads what is typed. Images without bash have a smaller one.
const SHELL: [&str; 3] = ["sh", "-c", "exec $(command -v bash || echo sh) -i"];

/// What our screen in the browser understands the sequences of.
const TERM: &str = "xterm-256color";

impl SandboxTerminals {
    pub(super) fn new(gateway: GatewayHandle) -> Self {
        Self { gateway }
    }
}

impl TerminalOpener for SandboxTerminals {
    fn opens_on(&self, backend: BackendKind) -> bool {
        boundary(backend) == Boundary::Sealed
    }

    fn open<'a>(
        &'a self,
        conversation: &'a ConversationKey,
        sandbox: &'a SandboxId,
        size: TerminalSize,
    ) -> BoxFuture<'a, Result<OpenedShell, TerminalRefused>> {
        async move {
            // Leased before its boundary is looked at, and held for as long as the shell: the
            // sandbox that was judged is the one that is typed into, and nobody clears it away
            // meanwhile.
            let lease = self.gateway.lease_living(conversation, sandbox).await;
            let lease = lease.ok_or(TerminalRefused::NotLiving)?;
            // The operator's word is enough for what can only hurt a sandbox. Elsewhere each command is judged,
            // and what is typed into a shell cannot be.
            if lease.boundary() != Boundary::Sealed {
                return Err(TerminalRefused::NoBoundary);
            }
            let shell = lease.start(Cleared::typed_by_operator(shell(size))).await;
            let shell = shell.map_err(|error| {
                tracing::error!(%sandbox, %error, "no terminal could be opened");
                TerminalRefused::NotStarted
            })?;
            Ok(OpenedShell { shell, lease })
        }
        .boxed()
    }
}

fn shell(size: TerminalSize) -> Command {
    let mut command = Command::words(SHELL.map(str::to_owned));
    command.stdin = CommandInput::Open;
    command.pty = Some((size.columns(), size.rows()));
    command.env.insert("TERM".to_owned(), TERM.to_owned());
    command
}
