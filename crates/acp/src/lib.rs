//! Somebody else's agent inside a conversation's sandbox, driven by the Agent Client Protocol.
//!
//! [`AgentProgram`] says what is started, [`SealedAgent`] takes a turn with it where our own agent would,
//! [`RunningAgents`] keeps it for the next turn. The protocol is JSON-RPC in lines over the streams of a
//! program inside the sandbox; everything that comes from there is untrusted, so it is bounded as it is read,
//! and an agent that hangs, floods, dies or writes garbage costs its turn a word and nothing else.
//!
//! Neither files nor terminals of ours are offered to an agent. What it asks permission for goes to a person
//! by [`AgentSupervisor`], and opens nothing: the sandbox is the boundary.

#![forbid(unsafe_code)]

mod absent;
mod answer;
mod bounds;
mod connection;
mod failure;
mod leftovers;
mod offers;
mod permission;
mod program;
mod prompt;
mod running;
mod sealed_agent;
mod session;
mod settings_command;
mod settings_file;
mod stream;
mod supervisor;
mod turn_prompts;
mod update;
mod upload;
mod wire;

pub use absent::AbsentAgent;
pub use bounds::AgentBounds;
pub use failure::AgentFailure;
pub use offers::{OfferedChoice, OfferedChoices, SessionOffers};
pub use permission::{PermissionAnswer, PermissionKind, PermissionOption, PermissionRequest};
pub use program::{
    AgentListing, AgentProgram, AgentPrograms, AgentUnavailable, ProgramCredential, ProgramFile,
    ProgramMount, ProgramUpload,
};
pub use running::RunningAgents;
pub use sealed_agent::SealedAgent;
pub use session::{AgentSession, SessionOrigin};
pub use settings_command::SettingCommand;
pub use stream::{AgentInput, AgentStream, PipeInput, PipeStream, StreamEvent};
pub use supervisor::{AgentSupervisor, ModelTraffic, ReportedTool};
pub use upload::upload_program;
