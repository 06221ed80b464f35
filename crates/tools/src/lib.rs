//! What an agent acts with.
//!
//! A tool here knows a sandbox, the policy and the redactor, and neither agent nor session: whoever
//! brings them together hands over a [`ToolWorkplace`], which gives the conversation's one sandbox, and an
//! [`CommandApprover`], which reaches a person. The order cannot be changed, because each step takes what the one
//! before made: a [`CommandRequest`] is read from arguments, [`TerminalTool::clear`] makes a `Cleared` of it or a
//! [`BlockedCommand`], and only that runs.

#![forbid(unsafe_code)]

mod ansi;
mod ask;
mod background;
mod clarify;
mod code;
mod exit_code;
mod files;
mod image_generate;
pub mod json_rpc;
mod live_output;
mod made_file;
mod mcp;
mod media;
mod outcome;
mod output;
mod process;
mod request;
mod shell_queue;
pub mod shown;
mod sudo;
mod terminal;
mod text_to_speech;
mod todo;
mod toolbox;
mod vision;
mod web;
mod web_request;
mod workplace;

pub use ask::{CommandApprover, CommandDenied, DecidedCommand, JudgedAs, NoOneToAsk};
pub use background::{
    BackgroundProcesses, BackgroundSettings, BackgroundStarts, NoWayBack, NoticeKind,
    ProcessNotice, SandboxReach,
};
pub use clarify::{ClarifyError, ClarifyQuestion};
pub use code::{CodeSettings, CodeTool, ScriptDirectory};
pub use files::{FileTools, ResultBounds};
pub use image_generate::ImageTool;
pub use live_output::{LiveCall, LiveOutputs, RunningOutput};
pub use mcp::{CheckedServer, McpServerPlace, McpServerSettings, McpServers};
pub use media::ToolMedia;
pub use outcome::{BlockedCommand, TerminalOutcome};
pub use request::{BadRequest, CommandRequest, ProcessTell, RequestedCode, RunManner};
pub use terminal::{TerminalSettings, TerminalTool};
pub use text_to_speech::SpeechTool;
pub use todo::TodoLists;
pub use toolbox::{
    ConversationTools, SharedDescription, SharedDescriptions, ToolAnswer, ToolDescription, ToolKit,
};
pub use web::{WebSettings, WebTools};
pub use workplace::{Held, NoSandbox, ServiceCharge, ServiceUse, ToolWorkplace};
