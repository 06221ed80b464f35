//! Questions to people, whoever shows them.
//!
//! A question is a row before anybody sees it. [`ApprovalPrompt`] shows it; an answer comes from
//! anywhere (a button, a command in a chat, the command line of another process) through the store, and the first
//! one counts. Whoever waits records the outcome, uses the yes up, and only then hands out what may
//! run: killed at any instruction, nothing has run that is not recorded, and nothing runs twice.
//!
//! A gateway that stops leaves its questions standing, as one that is killed does: the turn that waits
//! is left where it is and taken up at the next start.
//!
//! A question that outlives its process is taken up by the same person asking for exactly the same
//! again, so that a restart in between costs nobody a second answer.

#![forbid(unsafe_code)]

mod agent_permissions;
mod approvals;
mod command_approvals;
mod egress_record;
mod host_approvals;
mod leaving;
mod metrics;
mod model_reviewer;
mod pending_request;
mod prompt;
mod record;
mod request_text;
mod waits;

pub use approvals::{Answerer, ApprovalParts, ApprovalRegistry, TidyError};
pub use command_approvals::{CommandApprovals, Requester};
pub use egress_record::EgressRecord;
pub use host_approvals::HostApprovals;
pub use metrics::ApprovalMetrics;
pub use model_reviewer::ModelReviewer;
pub use prompt::{ApprovalPrompt, FixedPrompt, NobodyToAsk, PromptSource, UnattendedPrompt};
pub use request_text::{ONLY_ONCE, RequestText};
pub use waits::{ApprovalWaits, OpenWait};
