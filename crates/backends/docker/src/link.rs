//! The link: an attached `exec` of `warden connect`, for as long as it holds.

use std::io;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bytes::Bytes;
use futures::StreamExt;
use futures::future::ready;
use hermetic_sandbox::Link;
use tokio_util::io::StreamReader;

use crate::archive;

/// How much of the engine's stream is read at once.
const CAPACITY: usize = 64 << 10;

/// A warden that was just started may not listen yet: the far end waits for it.
const SECONDS: &str = "15";

pub(crate) async fn reach(docker: &Docker, container: &str) -> Result<Link, Error> {
    let words = [
        archive::WARDEN,
        "connect",
        "--wait",
        SECONDS,
        archive::SOCKET,
    ];
    let exec = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        cmd: Some(words.map(str::to_owned).to_vec()),
        ..CreateExecOptions::default()
    };
    let exec = docker.create_exec(container, exec).await?;
    let options = StartExecOptions {
        output_capacity: Some(CAPACITY),
        ..StartExecOptions::default()
    };
    match docker.start_exec(&exec.id, Some(options)).await? {
        StartExecResults::Attached { output, input } => {
            let output = output.filter_map(|item| ready(bytes_of(item)));
            let reader = StreamReader::new(Box::pin(output));
            Ok(Link::new(tokio::io::join(reader, input)))
        }
        StartExecResults::Detached => Err(io::Error::from(io::ErrorKind::NotConnected).into()),
    }
}

fn bytes_of(item: Result<LogOutput, Error>) -> Option<io::Result<Bytes>> {
    match item {
        Ok(LogOutput::StdOut { message } | LogOutput::Console { message }) => Some(Ok(message)),
        Ok(LogOutput::StdErr { .. } | LogOutput::StdIn { .. }) => None,
        Err(error) => Some(Err(io::Error::other(error))),
    }
}
