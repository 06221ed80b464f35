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

    /// What went to the hosts of the agent's model and came from there, since some moment before the turn.
    fn model_traffic(&self) -> ModelTraffic {
        ModelTraffic::default()
    }
}

/// What was seen of requests to a model from outside, by a proxy that does not read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelTraffic {
    pub requests: u64,
    pub bytes_up: u64,
    pub bytes_down: u64,
}

impl ModelTraffic {
    /// Of a question, most is text, and a token of that is some four bytes.
    const BYTES_OF_A_TOKEN: u64 = 4;
    /// An answer comes in pieces of a word each, with names and numbers around it.
    const BYTES_OF_AN_ANSWERED_TOKEN: u64 = 32;

    /// What came about since then. A count that shrank was begun anew.
    pub(crate) fn since(self, earlier: Self) -> Self {
        let more = |now: u64, then: u64| now.checked_sub(then).unwrap_or(now);
        Self {
            requests: more(self.requests, earlier.requests),
            bytes_up: more(self.bytes_up, earlier.bytes_up),
            bytes_down: more(self.bytes_down, earlier.bytes_down),
        }
    }

    /// The tokens that this may have been, as what was asked and what was answered.
    pub(crate) fn tokens(self) -> (u64, u64) {
        let asked = self.bytes_up / Self::BYTES_OF_A_TOKEN;
        (asked, self.bytes_down / Self::BYTES_OF_AN_ANSWERED_TOKEN)
    }
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
