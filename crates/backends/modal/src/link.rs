//! The link: one exec of `warden connect`, for as long as it holds.
//!
//! Both directions say at which byte they are, so a connection that breaks is picked up at the same
//! byte: nothing is lost and nothing comes twice. Modal does not tell the far end when we are gone,
//! so what goes in is framed, and a frame of nothing now and then says that we are still here.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::{self, Stream};
use hermetic_sandbox::{BackendError, WardenLink};
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio::time::timeout;
use tokio_util::io::StreamReader;
use tonic::{Status, Streaming};
use uuid::Uuid;

use crate::patience::{CallTimeouts, RetryAttempts};
use crate::router::CommandRouter;
use crate::shape::{self, LEASH};
use crate::trouble::{said, trouble};
use crate::wire::{
    SandboxStdinWriteRequest, StdioStream, StdioTarget, TaskExecStartRequest,
    TaskExecStdinWriteRequest, TaskExecStdioReadRequest, TaskExecStdioReadResponse,
};

/// What is written at once; the same as Hermes's.
const PIECE: usize = 1 << 20;
/// What waits here to be sent.
const WAITING: usize = 256 << 10;
/// Often enough that the leash holds over two that are lost.
const LEASH_INTERVAL: Duration = Duration::from_secs(LEASH.as_secs() / 4);
/// A link that cannot be mended within the leash is gone: the far end thinks so too.
const MENDING: CallTimeouts = CallTimeouts::of(20, LEASH.as_secs());
/// A machine that was just given a sandbox may not serve it yet.
const FIRST: CallTimeouts = CallTimeouts::of(60, 300);

/// The warden's own bytes, to the program that waits for them.
pub(crate) async fn place(router: &CommandRouter, program: &Bytes) -> Result<(), BackendError> {
    let mut offset = 0;
    while offset < program.len() {
        let end = program.len().min(offset + PIECE);
        let question = SandboxStdinWriteRequest {
            task_id: router.task.clone(),
            offset: offset as u64,
            data: program.slice(offset..end),
            eof: end == program.len(),
        };
        let patience = if offset == 0 {
            FIRST
        } else {
            CallTimeouts::LONG
        };
        let placed = router.ask(question, patience).await;
        placed.map_err(|status| trouble("place the warden in the sandbox", &status))?;
        offset = end;
    }
    Ok(())
}

pub(crate) async fn reach(
    router: &Arc<CommandRouter>,
    start: &str,
) -> Result<WardenLink, BackendError> {
    let failed = |status: Status| trouble("reach the warden", &status);
    let exec = RouterExec {
        router: Arc::clone(router),
        id: Uuid::new_v4().to_string(),
    };
    exec.start(shape::connect(start)).await.map_err(failed)?;
    let mut attempts = RetryAttempts::within(MENDING.whole);
    let output = exec.output(0, &mut attempts).await.map_err(failed)?;
    // Of a pair, one direction is used; unlike a pipe, it notices when either end is dropped.
    let (waiting, writer) = duplex(WAITING);
    tokio::spawn(send(exec.clone(), waiting));
    let reader = StreamReader::new(Box::pin(received(exec, output)));
    Ok(WardenLink::new(tokio::io::join(reader, writer)))
}

#[derive(Clone, Debug)]
struct RouterExec {
    router: Arc<CommandRouter>,
    id: String,
}

impl RouterExec {
    async fn start(&self, words: Vec<String>) -> Result<(), Status> {
        let question = TaskExecStartRequest {
            task_id: self.router.task.clone(),
            exec_id: self.id.clone(),
            command_args: words,
            stdout_config: StdioTarget::Pipe.into(),
            stderr_config: StdioTarget::Nowhere.into(),
        };
        self.router.ask(question, FIRST).await.map(drop)
    }

    async fn output(
        &self,
        offset: u64,
        attempts: &mut RetryAttempts,
    ) -> Result<Streaming<TaskExecStdioReadResponse>, Status> {
        let question = TaskExecStdioReadRequest {
            task_id: self.router.task.clone(),
            exec_id: self.id.clone(),
            offset,
            file_descriptor: StdioStream::Stdout.into(),
        };
        self.router.listen(question, MENDING, attempts).await
    }

    async fn input(&self, offset: u64, data: Bytes, eof: bool) -> Result<(), Status> {
        let question = TaskExecStdinWriteRequest {
            task_id: self.router.task.clone(),
            exec_id: self.id.clone(),
            offset,
            data,
            eof,
        };
        self.router.ask(question, MENDING).await.map(drop)
    }
}

/// Sends what waits, frame by frame, and signs of life between. Ends with the link's writing half,
/// or when nobody takes it any more; then the link cannot be written to either.
async fn send(exec: RouterExec, mut waiting: DuplexStream) {
    let mut offset = 0;
    loop {
        let mut frame = BytesMut::with_capacity(WAITING + 4);
        frame.put_u32(0);
        // Cancel-safe: what was read is in the frame, and a beat sends a frame without any.
        let ended = match timeout(LEASH_INTERVAL, waiting.read_buf(&mut frame)).await {
            Ok(Ok(read)) => read == 0,
            Ok(Err(_)) => true,
            Err(_) => false,
        };
        let length = u32::try_from(frame.len() - 4).unwrap_or_default();
        frame[..4].copy_from_slice(&length.to_be_bytes());
        let data = if ended { Bytes::new() } else { frame.freeze() };
        let written = data.len() as u64;
        if let Err(status) = exec.input(offset, data, ended).await {
            tracing::debug!(exec = %exec.id, status = %said(&status), "the link takes no more");
            return;
        }
        if ended {
            return;
        }
        // Counted on only when it was taken: a repeated write says where it belongs, and is not
        // appended twice.
        offset += written;
    }
}

type ReceivedBytes = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

fn received(exec: RouterExec, output: Streaming<TaskExecStdioReadResponse>) -> ReceivedBytes {
    let begun = (exec, output, 0_u64);
    Box::pin(stream::try_unfold(
        begun,
        async |(exec, mut output, offset)| {
            // Anew with each piece that came: a link that breaks once an hour is not given up on
            // the third day.
            let mut attempts = RetryAttempts::within(MENDING.whole);
            loop {
                match output.message().await {
                    Ok(Some(piece)) => {
                        let offset = offset + piece.data.len() as u64;
                        return Ok(Some((piece.data, (exec, output, offset))));
                    }
                    Ok(None) => return Ok(None),
                    Err(status) => {
                        tracing::debug!(exec = %exec.id, status = %said(&status), "the link broke");
                        attempts
                            .after(status)
                            .await
                            .map_err(|status| gone(&status))?;
                        output = exec
                            .output(offset, &mut attempts)
                            .await
                            .map_err(|status| gone(&status))?;
                    }
                }
            }
        },
    ))
}

fn gone(status: &Status) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, said(status))
}
