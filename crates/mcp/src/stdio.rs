//! One client at our stdin and stdout.

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::ServiceExt as _;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::ClientSandboxes;
use crate::client::McpClient;

#[derive(Debug, Error)]
pub enum StdioError {
    #[error("the client did not begin as MCP wants it: {0}")]
    Hello(String),
    #[error("the connection to the client broke: {0}")]
    Broken(String),
}

/// Serves until the client goes or `stop` is cancelled. Its sandbox is gone afterwards.
pub fn over_stdio(
    sandboxes: ClientSandboxes,
    stop: CancellationToken,
) -> BoxFuture<'static, Result<(), StdioError>> {
    async move {
        sandboxes.guard_disk();
        let served = serve(&sandboxes, stop).await;
        sandboxes.close().await;
        served
    }
    .boxed()
}

async fn serve(sandboxes: &ClientSandboxes, stop: CancellationToken) -> Result<(), StdioError> {
    let client = McpClient::new(sandboxes.clone());
    let hello = client.serve_with_ct(rmcp::transport::stdio(), stop.child_token());
    let running = tokio::select! {
        begun = hello => match begun {
            Ok(running) => running,
            // A client that looked and left.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(StdioError::Hello(error.to_string())),
        },
        () = stop.cancelled() => return Ok(()),
    };
    let ended = running.waiting().await;
    ended.map_err(|error| StdioError::Broken(error.to_string()))?;
    Ok(())
}
