//! The servers whose tools the agent has, tried by a person at a keyboard.

use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_tools::{CheckedServer, NoOneToAsk};
use tokio_util::sync::CancellationToken;

use crate::ClientSandboxes;
use crate::client_sandbox::ClientSandbox;

/// Starts every server of the kit as a conversation would, in a sandbox for this once, and lists its tools.
/// Nothing is left afterwards.
pub fn check_servers(
    sandboxes: ClientSandboxes,
    stop: CancellationToken,
) -> BoxFuture<'static, Vec<CheckedServer>> {
    async move {
        let place = ClientSandbox::new(sandboxes.clone());
        let servers = sandboxes.kit().mcp.clone();
        let checked = tokio::select! {
            checked = servers.check(&place, &NoOneToAsk, &stop) => checked,
            () = stop.cancelled() => Vec::new(),
        };
        // The connections first: they lead into the sandbox.
        servers.forget_all();
        drop(place);
        sandboxes.close().await;
        checked
    }
    .boxed()
}
