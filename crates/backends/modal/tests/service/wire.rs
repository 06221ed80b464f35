//! Messages that Modal's own client uses and we do not.

use bytes::Bytes;
use hermetic_modal::wire::RpcCall;
use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TaskExecWaitRequest {
    #[prost(string, tag = "1")]
    pub(crate) task_id: String,
    #[prost(string, tag = "2")]
    pub(crate) exec_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExitStatus {
    #[prost(oneof = "Exit", tags = "1, 2")]
    pub(crate) exit_status: Option<Exit>,
}

#[derive(Clone, Copy, PartialEq, Eq, Oneof)]
pub(crate) enum Exit {
    #[prost(int32, tag = "1")]
    Code(i32),
    #[prost(int32, tag = "2")]
    Signal(i32),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TaskExecPollRequest {
    #[prost(string, tag = "1")]
    pub(crate) task_id: String,
    #[prost(string, tag = "2")]
    pub(crate) exec_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SandboxStdioReadRequest {
    #[prost(string, tag = "1")]
    pub(crate) task_id: String,
    #[prost(uint64, tag = "2")]
    pub(crate) offset: u64,
    #[prost(int32, tag = "3")]
    pub(crate) file_descriptor: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SandboxStdioReadResponse {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) data: Bytes,
    #[prost(uint64, tag = "2")]
    pub(crate) starting_offset: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImageFromIdRequest {
    #[prost(string, tag = "1")]
    pub(crate) image_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImageFromIdResponse {
    #[prost(string, tag = "1")]
    pub(crate) image_id: String,
}

impl RpcCall for TaskExecWaitRequest {
    type Answer = ExitStatus;
    const PATH: &'static str = "/modal.task_command_router.TaskCommandRouter/TaskExecWait";
}

impl RpcCall for TaskExecPollRequest {
    type Answer = ExitStatus;
    const PATH: &'static str = "/modal.task_command_router.TaskCommandRouter/TaskExecPoll";
}

impl RpcCall for SandboxStdioReadRequest {
    type Answer = SandboxStdioReadResponse;
    const PATH: &'static str = "/modal.task_command_router.TaskCommandRouter/SandboxStdioReadV2";
}

impl RpcCall for ImageFromIdRequest {
    type Answer = ImageFromIdResponse;
    const PATH: &'static str = "/modal.client.ModalClient/ImageFromId";
}
