//! The tools of one conversation, as the agent sees them.

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::{Invocation, ToolResult, ToolSpec, Tools};
use hermetic_session::{LeaseError, Sandboxes};
use hermetic_tools::{Blocked, Outcome, Request, Terminal};
use hermetic_types::ConversationKey;
use tokio_util::sync::CancellationToken;

/// The sandbox is made at the first call, not before.
#[derive(Debug)]
pub(crate) struct Toolbox<'a> {
    terminal: &'a Terminal,
    sandboxes: &'a Sandboxes,
    conversation: ConversationKey,
}

impl<'a> Toolbox<'a> {
    pub(crate) fn new(
        terminal: &'a Terminal,
        sandboxes: &'a Sandboxes,
        conversation: &ConversationKey,
    ) -> Self {
        Self {
            terminal,
            sandboxes,
            conversation: conversation.clone(),
        }
    }

    /// Judged, then into the conversation's sandbox.
    pub(crate) async fn run(
        &self,
        request: Request,
        stop: &CancellationToken,
    ) -> Result<Outcome, Blocked> {
        let cleared = self.terminal.clear(request)?;
        let lease = tokio::select! {
            lease = self.sandboxes.lease(&self.conversation) => lease,
            // A sandbox that is being made becomes one that idles; the house lets it go.
            () = stop.cancelled() => {
                return Ok(self.terminal.failed("interrupted before the sandbox was there; not run"));
            }
        };
        Ok(match lease {
            Ok(lease) => self.terminal.run(lease.sandbox(), cleared, stop).await,
            Err(error) => {
                tracing::error!(conversation = %self.conversation, %error, "no sandbox");
                self.terminal.failed(for_model(&error))
            }
        })
    }

    async fn call_terminal(
        &self,
        invocation: Invocation<'_>,
        stop: &CancellationToken,
    ) -> ToolResult {
        let request = Request::read(invocation.arguments, self.terminal.longest_timeout());
        let request = match request {
            Ok(request) => request,
            Err(wrong) => {
                return ToolResult::failed(
                    self.terminal
                        .failed(&wrong.to_string())
                        .to_json()
                        .to_string(),
                );
            }
        };
        match self.run(request, stop).await {
            Ok(outcome) if outcome.is_failure() => {
                ToolResult::failed(outcome.to_json().to_string())
            }
            Ok(outcome) => ToolResult::new(outcome.to_json().to_string()),
            Err(blocked) => ToolResult::failed(blocked.to_json().to_string()),
        }
    }
}

impl Tools for Toolbox<'_> {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![ToolSpec {
            name: Terminal::NAME.to_owned(),
            description: self.terminal.description(),
            schema: self.terminal.schema(),
        }]
    }

    fn call<'a>(
        &'a self,
        invocation: Invocation<'a>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, ToolResult> {
        async move {
            match invocation.name {
                Terminal::NAME => self.call_terminal(invocation, &stop).await,
                other => ToolResult::failed(format!("there is no tool {other:?}")),
            }
        }
        .boxed()
    }
}

/// The log learns everything; the model, and with it the chat, only this.
fn for_model(error: &LeaseError) -> &'static str {
    match error {
        LeaseError::Full { .. } => "all sandboxes are in use; nothing was run; try again later",
        LeaseError::Stopping => "the gateway is stopping; nothing was run",
        _ => "the sandbox could not be started, so nothing was run; the operator has been told",
    }
}
