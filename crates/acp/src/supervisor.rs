//! The seam to people and to the record.

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::permission::{PermissionAnswer, PermissionRequest};

/// Looks after an agent while it works.
///
/// What an implementer promises: a yes comes from a person who may give it, the wait is bounded and ends
/// soon after `stop` is cancelled, and silence, doubt and failure are a no. What is noted is marked as the
/// agent's own word.
pub trait AgentSupervisor: Send + Sync {
    fn ask<'a>(
        &'a self,
        request: &'a PermissionRequest,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionAnswer>;

    /// Writes a tool call down, when it is first told of and when it has ended.
    fn note_tool(&self, tool: &ReportedTool);

    /// Tells the person of hosts that were refused since this was last called. Called again and again
    /// while the agent works.
    fn look_out(&self) -> BoxFuture<'_, ()>;
}

/// A tool call, by the agent's own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedTool {
    /// The agent's name.
    pub agent: String,
    pub id: String,
    /// `execute`, `edit` and the like.
    pub kind: String,
    pub title: String,
    /// What it is called with.
    pub detail: Option<String>,
    pub is_at_work: bool,
    pub has_failed: bool,
}
