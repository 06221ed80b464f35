//! What the router on a sandbox's machine is asked and answers.

use bytes::Bytes;
use prost::{Enumeration, Message};

use super::{Empty, calls};

calls! { "modal.task_command_router.TaskCommandRouter", false;
    SandboxStdinWriteRequest "SandboxStdinWriteV2" -> Empty
    TaskExecStartRequest "TaskExecStart" -> Empty
    TaskExecStdinWriteRequest "TaskExecStdinWrite" -> Empty
    TaskExecStdioReadRequest "TaskExecStdioRead" -> TaskExecStdioReadResponse
    TaskSnapshotFilesystemRequest "TaskSnapshotFilesystem" -> TaskSnapshotFilesystemResponse
}

/// To the program a sandbox was made with. Bytes that were written before are not written again:
/// `offset` says where these belong.
#[derive(Clone, PartialEq, Message)]
pub struct SandboxStdinWriteRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    #[prost(bytes = "bytes", tag = "3")]
    pub data: Bytes,
    #[prost(bool, tag = "4")]
    pub eof: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum StdioTarget {
    Nowhere = 0,
    Pipe = 1,
}

/// Starting the same `exec_id` twice is starting it once.
#[derive(Clone, PartialEq, Message)]
pub struct TaskExecStartRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, tag = "2")]
    pub exec_id: String,
    #[prost(string, repeated, tag = "3")]
    pub command_args: Vec<String>,
    #[prost(enumeration = "StdioTarget", tag = "4")]
    pub stdout_config: i32,
    #[prost(enumeration = "StdioTarget", tag = "5")]
    pub stderr_config: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct TaskExecStdinWriteRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, tag = "2")]
    pub exec_id: String,
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    #[prost(bytes = "bytes", tag = "4")]
    pub data: Bytes,
    #[prost(bool, tag = "5")]
    pub eof: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum StdioStream {
    Stdout = 0,
    Stderr = 1,
}

#[derive(Clone, PartialEq, Message)]
pub struct TaskExecStdioReadRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, tag = "2")]
    pub exec_id: String,
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    #[prost(enumeration = "StdioStream", tag = "4")]
    pub file_descriptor: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct TaskExecStdioReadResponse {
    #[prost(bytes = "bytes", tag = "1")]
    pub data: Bytes,
}

/// Taking the same `snapshot_id` twice is taking it once.
#[derive(Clone, PartialEq, Message)]
pub struct TaskSnapshotFilesystemRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, tag = "2")]
    pub snapshot_id: String,
    #[prost(int64, optional, tag = "3")]
    pub ttl_seconds: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TaskSnapshotFilesystemResponse {
    #[prost(string, tag = "1")]
    pub image_id: String,
}
