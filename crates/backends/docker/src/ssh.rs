//! An engine behind ssh, reached as docker's own client does it: `docker system dial-stdio` over
//! there, one process for each connection, with the user's own ssh configuration and agent.

use std::pin::Pin;
use std::process::Stdio;

use bollard::errors::Error;
use bollard::{BollardRequest, ClientVersion, Docker};
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Response, Uri};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::process::{Child, Command};

use crate::address::SshHost;

type EngineResponse = Pin<Box<dyn Future<Output = Result<Response<Incoming>, Error>> + Send>>;

pub(crate) fn connect(
    host: &SshHost,
    patience: u64,
    version: &ClientVersion,
) -> Result<Docker, Error> {
    let host = host.clone();
    let transport =
        move |request: BollardRequest| -> EngineResponse { Box::pin(ask(host.clone(), request)) };
    Docker::connect_with_custom_transport(transport, Some("http://engine"), patience, version)
}

async fn ask(host: SshHost, request: BollardRequest) -> Result<Response<Incoming>, Error> {
    let mut child = dial(&host)?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into());
    };
    let stream = TokioIo::new(tokio::io::join(stdout, stdin));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    tokio::spawn(async move {
        // Ends with the answer, or with the stream that the answer became.
        // An attached stream goes on over this connection long after the answer, so the task must
        // see it through.
        let _ = connection.with_upgrades().await;
        let _ = child.wait().await;
    });
    Ok(sender.send_request(to_the_point(request)?).await?)
}

fn dial(host: &SshHost) -> std::io::Result<Child> {
    let mut ssh = Command::new("ssh");
    // Nobody is there to be asked for a password.
    ssh.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
    if let Some(port) = host.port {
        ssh.args(["-p", &port.to_string()]);
    }
    // Behind the two dashes nothing is an option any more, whatever a host is called.
    ssh.args(["--", &host.destination, "docker", "system", "dial-stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}

/// On a connection of its own a request names a path and, in a header, the host.
fn to_the_point(mut request: BollardRequest) -> Result<BollardRequest, Error> {
    let path = request
        .uri()
        .path_and_query()
        .cloned()
        .unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    request
        .headers_mut()
        .insert(HOST, HeaderValue::from_static("docker"));
    Ok(request)
}
