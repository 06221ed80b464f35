//! A tool of the gateway itself: one that needs no sandbox and knows the conversation.

use std::fmt;

use futures::future::BoxFuture;
use hermetic_agent::{ToolResult, ToolSpec};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// One such tool, for one turn.
///
/// What an implementer promises: what a [`hermetic_agent::ToolSet`] does, for one name.
pub(crate) trait OwnTool: Send + Sync + fmt::Debug {
    fn name(&self) -> &'static str;

    /// What the model is told about it, under that name.
    fn spec(&self) -> ToolSpec;

    fn call<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, ToolResult>;
}
