//! What runs in a sandbox: its own program, and what is run beside it.

#![expect(
    clippy::needless_pass_by_value,
    reason = "a server is handed its questions, whatever it takes from them"
)]

use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use hermetic_modal::wire::*;
use tonic::Status;

use super::plane::Plane;
use super::process::Process;
use super::wire::*;

impl Plane {
    pub(crate) async fn entry_stdin(
        &self,
        asked: SandboxStdinWriteRequest,
    ) -> Result<Empty, Status> {
        let cell = self.living(&asked.task_id)?;
        cell.touch();
        cell.entry
            .write(asked.offset, &asked.data, asked.eof)
            .await?;
        Ok(Empty {})
    }

    pub(crate) fn entry_stdio(
        &self,
        asked: SandboxStdioReadRequest,
    ) -> Result<BoxStream<'static, SandboxStdioReadResponse>, Status> {
        let cell = self.cell(&asked.task_id)?;
        let mut starting_offset = asked.offset;
        let record = match asked.file_descriptor {
            0 => &cell.entry.stdout,
            _ => &cell.entry.stderr,
        };
        let pieces = record.from(asked.offset).map(move |data| {
            let at = starting_offset;
            starting_offset += data.len() as u64;
            SandboxStdioReadResponse {
                data,
                starting_offset: at,
            }
        });
        Ok(pieces.boxed())
    }

    pub(crate) fn start_exec(&self, asked: TaskExecStartRequest) -> Result<Empty, Status> {
        let cell = self.living(&asked.task_id)?;
        cell.touch();
        cell.exec(&asked.exec_id, &asked.command_args)?;
        Ok(Empty {})
    }

    fn exec(&self, task: &str, id: &str) -> Result<Arc<Process>, Status> {
        let cell = self.cell(task)?;
        let execs = cell.execs.lock().unwrap();
        execs
            .get(id)
            .cloned()
            .ok_or_else(|| Status::not_found("no such exec"))
    }

    pub(crate) async fn exec_stdin(
        &self,
        asked: TaskExecStdinWriteRequest,
    ) -> Result<Empty, Status> {
        let exec = self.exec(&asked.task_id, &asked.exec_id)?;
        exec.write(asked.offset, &asked.data, asked.eof).await?;
        Ok(Empty {})
    }

    pub(crate) fn exec_stdio(
        &self,
        asked: TaskExecStdioReadRequest,
    ) -> Result<BoxStream<'static, TaskExecStdioReadResponse>, Status> {
        let exec = self.exec(&asked.task_id, &asked.exec_id)?;
        let record = match asked.file_descriptor() {
            StdioStream::Stdout => &exec.stdout,
            StdioStream::Stderr => &exec.stderr,
        };
        let pieces = record.from(asked.offset);
        Ok(pieces
            .map(|data| TaskExecStdioReadResponse { data })
            .boxed())
    }

    pub(crate) async fn exec_wait(&self, asked: TaskExecWaitRequest) -> Result<ExitStatus, Status> {
        let exec = self.exec(&asked.task_id, &asked.exec_id)?;
        Ok(ExitStatus {
            exit_status: Some(exec.ended().await),
        })
    }

    pub(crate) fn exec_poll(&self, asked: TaskExecPollRequest) -> Result<ExitStatus, Status> {
        let exec = self.exec(&asked.task_id, &asked.exec_id)?;
        Ok(ExitStatus {
            exit_status: exec.ended().now_or_never(),
        })
    }
}
