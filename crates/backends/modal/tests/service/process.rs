//! A process whose two outputs are kept and can be read from any byte, and whose stdin takes bytes
//! that say where they belong.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use futures::Stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};
use tokio::sync::{Mutex, watch};
use tonic::Status;

use super::wire::Exit;

pub(crate) struct Process {
    pub(crate) pid: u32,
    stdin: Mutex<(Option<ChildStdin>, u64)>,
    pub(crate) stdout: Record,
    pub(crate) stderr: Record,
    pub(crate) exit: watch::Receiver<Option<Exit>>,
}

/// All that was said, growing until its end.
#[derive(Clone)]
pub(crate) struct Record(watch::Receiver<Said>);

#[derive(Default)]
struct Said {
    bytes: Vec<u8>,
    over: bool,
}

/// What one message carries at most.
const PIECE: usize = 64 << 10;

impl Process {
    pub(crate) fn start(command: &mut Command) -> std::io::Result<Arc<Self>> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (tell, exit) = watch::channel(None);
        let stdin = child.stdin.take();
        let process = Self {
            pid: child.id().unwrap(),
            stdin: Mutex::new((stdin, 0)),
            stdout: Record::of(child.stdout.take().unwrap()),
            stderr: Record::of(child.stderr.take().unwrap()),
            exit,
        };
        tokio::spawn(async move {
            let status = child.wait().await.unwrap();
            tell.send_replace(Some(told(status)));
        });
        Ok(Arc::new(process))
    }

    /// What was written before is not written again; a hole is an error.
    pub(crate) async fn write(&self, offset: u64, data: &[u8], eof: bool) -> Result<(), Status> {
        let mut stdin = self.stdin.lock().await;
        let (pipe, written) = &mut *stdin;
        let known = written
            .checked_sub(offset)
            .ok_or_else(|| Status::out_of_range("there is a hole in stdin"))?;
        let known = usize::try_from(known).unwrap().min(data.len());
        let fresh = &data[known..];
        let Some(open) = pipe.as_mut() else {
            return match fresh {
                [] => Ok(()),
                _ => Err(Status::failed_precondition("stdin is closed")),
            };
        };
        if open.write_all(fresh).await.is_err() {
            *pipe = None;
            return Err(Status::failed_precondition("stdin is closed"));
        }
        *written += fresh.len() as u64;
        if eof {
            *pipe = None;
        }
        Ok(())
    }

    pub(crate) async fn ended(&self) -> Exit {
        let mut exit = self.exit.clone();
        let ended = exit.wait_for(Option::is_some).await.unwrap();
        ended.unwrap()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.exit.borrow().is_some()
    }
}

fn told(status: ExitStatus) -> Exit {
    match status.code() {
        Some(code) => Exit::Code(code),
        None => Exit::Signal(status.signal().unwrap_or_default()),
    }
}

impl Record {
    fn of(mut pipe: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let (tell, said) = watch::channel(Said::default());
        tokio::spawn(async move {
            let mut buffer = vec![0; PIECE];
            while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
                tell.send_modify(|said| said.bytes.extend_from_slice(&buffer[..read]));
            }
            tell.send_modify(|said| said.over = true);
        });
        Self(said)
    }

    /// From a byte on, as it comes.
    pub(crate) fn from(&self, offset: u64) -> impl Stream<Item = Bytes> + Send + use<> {
        let begun = (self.0.clone(), usize::try_from(offset).unwrap());
        futures::stream::unfold(begun, async |(mut said, offset)| {
            let piece = {
                let grown = |said: &Said| said.over || said.bytes.len() > offset;
                let news = said.wait_for(grown).await.ok()?;
                let end = news.bytes.len().min(offset + PIECE);
                Bytes::copy_from_slice(&news.bytes[offset..end])
            };
            if piece.is_empty() {
                return None;
            }
            let offset = offset + piece.len();
            Some((piece, (said, offset)))
        })
    }
}

impl Record {
    /// What there is so far.
    pub(crate) fn whole(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow().bytes).into_owned()
    }
}
