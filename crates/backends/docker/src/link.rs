//! The link: at first the container's own stdin and stdout, later an attached `exec` of `warden
//! connect`.
//!
//! An engine takes long to start an exec. Stdin and stdout are there anyway, so whoever starts a
//! container has them for his link; whoever comes later, or lost his, has an exec.

use std::io;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::query_parameters::AttachContainerOptionsBuilder;
use bytes::Bytes;
use futures::future::ready;
use futures::{Stream, StreamExt};
use hermetic_sandbox::WardenLink;
use tokio::io::AsyncWrite;
use tokio_util::io::StreamReader;

use crate::archive;

/// How much of the engine's stream is read at once.
const CAPACITY: usize = 64 << 10;

/// A warden that was just started may not listen yet: the far end waits for it.
const WARDEN_WAIT_SECONDS: &str = "15";

/// None: Podman would look for them in bytes that no person typed.
const DETACH_KEYS: &str = "";

/// The stdin and stdout of a container that is not started yet: not a byte is missed.
pub(crate) async fn attach(docker: &Docker, container: &str) -> Result<WardenLink, Error> {
    let options = AttachContainerOptionsBuilder::new()
        .stream(true)
        .stdin(true)
        .stdout(true)
        .detach_keys(DETACH_KEYS)
        .build();
    let attached = docker.attach_container(container, Some(options)).await?;
    Ok(over(attached.output, attached.input))
}

/// By an exec, into a container that runs.
pub(crate) async fn reach(docker: &Docker, container: &str) -> Result<WardenLink, Error> {
    let words = [
        archive::WARDEN,
        "connect",
        "--wait",
        WARDEN_WAIT_SECONDS,
        archive::SOCKET,
    ];
    let exec = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        detach_keys: Some(DETACH_KEYS.to_owned()),
        cmd: Some(words.map(str::to_owned).to_vec()),
        ..CreateExecOptions::default()
    };
    let exec = docker.create_exec(container, exec).await?;
    let options = StartExecOptions {
        output_capacity: Some(CAPACITY),
        ..StartExecOptions::default()
    };
    match docker.start_exec(&exec.id, Some(options)).await? {
        StartExecResults::Attached { output, input } => Ok(over(output, input)),
        StartExecResults::Detached => Err(io::Error::from(io::ErrorKind::NotConnected).into()),
    }
}

fn over(
    output: impl Stream<Item = Result<LogOutput, Error>> + Send + 'static,
    input: impl AsyncWrite + Send + Unpin + 'static,
) -> WardenLink {
    let output = output.filter_map(|item| ready(bytes_of(item)));
    let reader = StreamReader::new(Box::pin(output));
    WardenLink::new(tokio::io::join(reader, input))
}

fn bytes_of(item: Result<LogOutput, Error>) -> Option<io::Result<Bytes>> {
    match item {
        Ok(LogOutput::StdOut { message } | LogOutput::Console { message }) => Some(Ok(message)),
        // What is said on stderr is no part of the link, and a single byte of it would break it.
        Ok(LogOutput::StdErr { .. } | LogOutput::StdIn { .. }) => None,
        Err(error) => Some(Err(io::Error::other(error))),
    }
}
