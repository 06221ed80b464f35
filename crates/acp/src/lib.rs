//! Somebody else's agent inside a conversation's sandbox, driven by the Agent Client Protocol.

#![forbid(unsafe_code)]

mod program;

pub use program::{
    AgentListing, AgentProgram, AgentPrograms, AgentUnavailable, ProgramCredential, ProgramFile,
    ProgramMount,
};
