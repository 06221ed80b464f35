//! A server that is a program: in the conversation's sandbox, or spelled out on the host.

use std::collections::BTreeMap;
use std::process::Stdio;

use bytes::Bytes;
use hermetic_policy::Cleared;
use hermetic_sandbox::Sandbox;
use hermetic_types::{CommandProgram, Secret};
use hermetic_warden::client::{RunEvent, RunningCommand, StdinStream};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::OwnedSemaphorePermit;

use super::message::RequestFailure;

/// A program that speaks MCP. Dropping it ends the program and what it started.
#[derive(Debug)]
pub(super) enum ServerProcess {
    Inside(RunningCommand),
    Host(HostProcess),
}

/// Its standard input.
#[derive(Debug)]
pub(super) enum ServerInput {
    Inside(StdinStream),
    Host(ChildStdin),
}

#[derive(Debug)]
pub(super) enum ProcessEvent {
    Out(Bytes),
    Err(Bytes),
    /// Nothing follows.
    Ended(String),
}

/// A program on this machine, in a process group of its own.
#[derive(Debug)]
pub(super) struct HostProcess {
    child: Child,
    out: ChildStdout,
    err: ChildStderr,
    is_err_open: bool,
    /// One of the places on the host; free again when the program is gone.
    _place: OwnedSemaphorePermit,
}

impl ServerProcess {
    pub(super) async fn start_inside(
        sandbox: &Sandbox,
        cleared: Cleared,
    ) -> Result<(Self, ServerInput), RequestFailure> {
        let running = sandbox.start(cleared).await;
        let running = running.map_err(|error| RequestFailure(error.to_string()))?;
        let input = ServerInput::Inside(running.stdin());
        Ok((Self::Inside(running), input))
    }

    /// With this environment and nothing of the gateway's own.
    pub(super) fn start_on_host(
        cleared: Cleared,
        env: &BTreeMap<String, Secret>,
        place: OwnedSemaphorePermit,
    ) -> Result<(Self, ServerInput), RequestFailure> {
        let failed = |why: &str| RequestFailure(format!("it could not be started: {why}"));
        let CommandProgram::Words(words) = cleared.into_command().program else {
            return Err(failed("it is no list of words"));
        };
        let (program, arguments) = words.split_first().ok_or_else(|| failed("no command"))?;
        let env = env.iter().map(|(name, value)| (name, value.expose()));
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(&error.to_string()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(out), Some(err)) = pipes else {
            return Err(failed("it has no pipes"));
        };
        let process = HostProcess {
            child,
            out,
            err,
            is_err_open: true,
            _place: place,
        };
        Ok((Self::Host(process), ServerInput::Host(input)))
    }

    /// May be dropped and called again without losing anything.
    pub(super) async fn next(&mut self) -> ProcessEvent {
        match self {
            Self::Host(process) => process.next().await,
            Self::Inside(running) => loop {
                return match running.next().await {
                    Ok(Some(RunEvent::Out(bytes))) => ProcessEvent::Out(bytes),
                    Ok(Some(RunEvent::Err(bytes))) => ProcessEvent::Err(bytes),
                    Ok(Some(RunEvent::Started { .. })) => continue,
                    // A message with a hole in it is none.
                    Ok(Some(RunEvent::Skipped(_))) => {
                        ProcessEvent::Ended("it wrote faster than could be read".to_owned())
                    }
                    Ok(Some(RunEvent::Ended(end))) => {
                        ProcessEvent::Ended(format!("its program ended ({:?})", end.status))
                    }
                    Ok(None) => ProcessEvent::Ended("its program ended".to_owned()),
                    Err(error) => ProcessEvent::Ended(format!("its sandbox is gone: {error}")),
                };
            },
        }
    }
}

impl HostProcess {
    async fn next(&mut self) -> ProcessEvent {
        const PIECE: usize = 16 * 1024;
        let (mut out, mut err) = (Vec::with_capacity(PIECE), Vec::with_capacity(PIECE));
        loop {
            // Both reads are safe to drop: nothing is taken from a pipe that is not handed on.
            tokio::select! {
                read = self.out.read_buf(&mut out) => return match read {
                    Ok(1..) => ProcessEvent::Out(out.into()),
                    Ok(0) | Err(_) => ProcessEvent::Ended("its program ended".to_owned()),
                },
                read = self.err.read_buf(&mut err), if self.is_err_open => match read {
                    Ok(1..) => return ProcessEvent::Err(err.into()),
                    Ok(0) | Err(_) => self.is_err_open = false,
                },
            }
        }
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // `npx` and its like start another program: the group goes, not only the first of it. While the
        // child has not been waited for, nobody else can have its number.
        let group = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = group.and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl ServerInput {
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), RequestFailure> {
        match self {
            Self::Inside(stdin) => {
                let written = stdin.write(bytes).await;
                written.map_err(|error| RequestFailure(error.to_string()))
            }
            Self::Host(stdin) => {
                let written = stdin.write_all(bytes).await;
                written.map_err(|error| RequestFailure(error.to_string()))
            }
        }
    }
}
