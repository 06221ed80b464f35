//! What the control plane is asked and answers.

use std::collections::HashMap;

use prost::{Enumeration, Message, Oneof};

use super::calls;

calls! { "modal.client.ModalClient", false;
    ClientHelloRequest "ClientHello" -> ClientHelloResponse
    AuthTokenGetRequest "AuthTokenGet" -> AuthTokenGetResponse
    AppGetOrCreateRequest "AppGetOrCreate" -> AppGetOrCreateResponse
    EnvironmentGetOrCreateRequest "EnvironmentGetOrCreate" -> EnvironmentGetOrCreateResponse
    ImageGetOrCreateRequest "ImageGetOrCreate" -> ImageGetOrCreateResponse
    ImageJoinStreamingRequest "ImageJoinStreaming" -> ImageJoinStreamingResponse
    ImageDeleteRequest "ImageDelete" -> Empty
}

calls! { "modal.client.ModalClient", true;
    SandboxCreateRequest "SandboxCreateV2" -> SandboxCreateResponse
    SandboxListRequest "SandboxListV2" -> SandboxListResponse
    SandboxTagsSetRequest "SandboxTagsSetV2" -> Empty
    SandboxGetTaskIdRequest "SandboxGetTaskIdV2" -> SandboxGetTaskIdResponse
    SandboxGetCommandRouterAccessRequest "SandboxGetCommandRouterAccess" -> CommandRouterAccess
    SandboxTerminateRequest "SandboxTerminateV2" -> SandboxTerminateResponse
    SandboxWaitRequest "SandboxWaitV2" -> SandboxWaitResponse
}

#[derive(Clone, PartialEq, Message)]
pub struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub struct ClientHelloRequest {}

#[derive(Clone, PartialEq, Message)]
pub struct ClientHelloResponse {
    #[prost(string, tag = "1")]
    pub warning: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct AuthTokenGetRequest {}

#[derive(Clone, PartialEq, Message)]
pub struct AuthTokenGetResponse {
    #[prost(string, tag = "1")]
    pub token: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum ObjectCreation {
    LookUp = 0,
    CreateIfMissing = 1,
}

#[derive(Clone, PartialEq, Message)]
pub struct AppGetOrCreateRequest {
    #[prost(string, tag = "1")]
    pub app_name: String,
    #[prost(string, tag = "2")]
    pub environment_name: String,
    #[prost(enumeration = "ObjectCreation", tag = "3")]
    pub object_creation_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct AppGetOrCreateResponse {
    #[prost(string, tag = "1")]
    pub app_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct EnvironmentGetOrCreateRequest {
    #[prost(string, tag = "1")]
    pub deployment_name: String,
    #[prost(enumeration = "ObjectCreation", tag = "2")]
    pub object_creation_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct EnvironmentGetOrCreateResponse {
    #[prost(string, tag = "1")]
    pub environment_id: String,
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<EnvironmentMetadata>,
}

#[derive(Clone, PartialEq, Message)]
pub struct EnvironmentMetadata {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub settings: Option<EnvironmentSettings>,
}

#[derive(Clone, PartialEq, Message)]
pub struct EnvironmentSettings {
    #[prost(string, tag = "1")]
    pub image_builder_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Image {
    #[prost(string, repeated, tag = "6")]
    pub dockerfile_commands: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Namespace {
    Unspecified = 0,
    Workspace = 1,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImageGetOrCreateRequest {
    #[prost(message, optional, tag = "2")]
    pub image: Option<Image>,
    #[prost(string, tag = "4")]
    pub app_id: String,
    #[prost(enumeration = "Namespace", tag = "8")]
    pub namespace: i32,
    #[prost(string, tag = "9")]
    pub builder_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImageGetOrCreateResponse {
    #[prost(string, tag = "1")]
    pub image_id: String,
    #[prost(message, optional, tag = "2")]
    pub result: Option<GenericResult>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImageJoinStreamingRequest {
    #[prost(string, tag = "1")]
    pub image_id: String,
    #[prost(float, tag = "2")]
    pub timeout: f32,
    #[prost(string, tag = "3")]
    pub last_entry_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImageJoinStreamingResponse {
    #[prost(message, optional, tag = "1")]
    pub result: Option<GenericResult>,
    #[prost(message, repeated, tag = "2")]
    pub task_logs: Vec<TaskLogs>,
    #[prost(string, tag = "3")]
    pub entry_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct TaskLogs {
    #[prost(string, tag = "1")]
    pub data: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImageDeleteRequest {
    #[prost(string, tag = "1")]
    pub image_id: String,
}

/// How something came to its end; unspecified while it has not.
#[derive(Clone, PartialEq, Message)]
pub struct GenericResult {
    #[prost(enumeration = "GenericStatus", tag = "1")]
    pub status: i32,
    #[prost(string, tag = "2")]
    pub exception: String,
    #[prost(int32, tag = "3")]
    pub exitcode: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum GenericStatus {
    Unspecified = 0,
    Success = 1,
    Failure = 2,
    Terminated = 3,
    Timeout = 4,
    InitFailure = 5,
    InternalFailure = 6,
    IdleTimeout = 7,
}

#[derive(Clone, PartialEq, Message)]
pub struct Resources {
    #[prost(uint32, tag = "2")]
    pub memory_mb: u32,
    #[prost(uint32, tag = "3")]
    pub milli_cpu: u32,
    #[prost(uint32, tag = "5")]
    pub memory_mb_max: u32,
    #[prost(uint32, tag = "7")]
    pub milli_cpu_max: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct NetworkAccess {
    #[prost(enumeration = "NetworkAccessType", tag = "1")]
    pub network_access_type: i32,
    #[prost(string, repeated, tag = "2")]
    pub allowed_cidrs: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    pub allowed_domains: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum NetworkAccessType {
    Unspecified = 0,
    Open = 1,
    Blocked = 2,
    Allowlist = 3,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sandbox {
    #[prost(string, repeated, tag = "1")]
    pub entrypoint_args: Vec<String>,
    #[prost(string, tag = "3")]
    pub image_id: String,
    #[prost(message, optional, tag = "5")]
    pub resources: Option<Resources>,
    #[prost(uint32, tag = "7")]
    pub timeout_secs: u32,
    #[prost(message, optional, tag = "22")]
    pub network_access: Option<NetworkAccess>,
    #[prost(string, optional, tag = "30")]
    pub name: Option<String>,
    #[prost(uint32, optional, tag = "33")]
    pub idle_timeout_secs: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxTag {
    #[prost(string, tag = "1")]
    pub tag_name: String,
    #[prost(string, tag = "2")]
    pub tag_value: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct StringMap {
    #[prost(map = "string, string", tag = "1")]
    pub contents: HashMap<String, String>,
}

/// Where variables come from.
#[derive(Clone, PartialEq, Message)]
pub struct SecretSource {
    #[prost(oneof = "Source", tags = "1, 2")]
    pub source: Option<Source>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Source {
    #[prost(string, tag = "1")]
    SecretId(String),
    #[prost(message, tag = "2")]
    Env(StringMap),
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxCreateRequest {
    #[prost(string, tag = "1")]
    pub app_id: String,
    #[prost(message, optional, tag = "2")]
    pub definition: Option<Sandbox>,
    #[prost(message, repeated, tag = "4")]
    pub tags: Vec<SandboxTag>,
    #[prost(message, repeated, tag = "6")]
    pub secret_sources: Vec<SecretSource>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxCreateResponse {
    #[prost(string, tag = "1")]
    pub sandbox_id: String,
    #[prost(string, tag = "3")]
    pub task_id: String,
    #[prost(message, optional, tag = "5")]
    pub command_router_access: Option<CommandRouterAccess>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CommandRouterAccess {
    #[prost(string, tag = "1")]
    pub jwt: String,
    #[prost(string, tag = "2")]
    pub url: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxGetCommandRouterAccessRequest {
    #[prost(string, tag = "1")]
    pub sandbox_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxListRequest {
    #[prost(string, tag = "1")]
    pub app_id: String,
    #[prost(double, tag = "2")]
    pub before_timestamp: f64,
    #[prost(bool, tag = "4")]
    pub include_finished: bool,
    #[prost(message, repeated, tag = "5")]
    pub tags: Vec<SandboxTag>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxListResponse {
    #[prost(message, repeated, tag = "1")]
    pub sandboxes: Vec<SandboxInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxInfo {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(double, tag = "3")]
    pub created_at: f64,
    #[prost(message, repeated, tag = "6")]
    pub tags: Vec<SandboxTag>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxTagsSetRequest {
    #[prost(string, tag = "2")]
    pub sandbox_id: String,
    #[prost(message, repeated, tag = "3")]
    pub tags: Vec<SandboxTag>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxGetTaskIdRequest {
    #[prost(string, tag = "1")]
    pub sandbox_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxGetTaskIdResponse {
    #[prost(string, optional, tag = "1")]
    pub task_id: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub task_result: Option<GenericResult>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxTerminateRequest {
    #[prost(string, tag = "1")]
    pub sandbox_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxTerminateResponse {
    #[prost(message, optional, tag = "1")]
    pub existing_result: Option<GenericResult>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxWaitRequest {
    #[prost(string, tag = "1")]
    pub sandbox_id: String,
    #[prost(float, tag = "2")]
    pub timeout: f32,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxWaitResponse {
    #[prost(message, optional, tag = "1")]
    pub result: Option<GenericResult>,
}

/// What goes along with an error.
#[derive(Clone, PartialEq, Message)]
pub struct ErrorDetails {
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// When the server wants to be asked again.
#[derive(Clone, PartialEq, Message)]
pub struct RetryPolicy {
    #[prost(float, tag = "1")]
    pub retry_after_secs: f32,
}

impl RetryPolicy {
    pub const TYPE: &'static str = "modal.client.RPCRetryPolicy";
}

impl GenericResult {
    pub fn is_over(&self) -> bool {
        self.status != GenericStatus::Unspecified as i32
    }
}
