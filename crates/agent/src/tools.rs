//! The seam to whatever acts.

use futures::future::{self, BoxFuture, FutureExt};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::CallId;

/// The tools of one conversation.
///
/// What an implementer promises: `call` does not panic on any arguments, ends soon after `stop` is
/// cancelled with nothing left running, and its content holds no secret.
pub trait Tools: Send + Sync {
    fn specs(&self) -> Vec<ToolSpec>;

    fn call<'a>(
        &'a self,
        invocation: Invocation<'a>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, ToolResult>;
}

/// What the model is told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// A JSON schema of an object. Arguments that do not keep it never reach the tool.
    pub schema: Value,
}

/// A call whose arguments have been checked.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    pub id: &'a CallId,
    pub name: &'a str,
    pub arguments: &'a Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    pub content: String,
    /// Whether it went wrong, for those who watch. The model reads the content.
    pub failed: bool,
}

impl ToolResult {
    pub fn new(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            failed: false,
        }
    }

    pub fn failed(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            failed: true,
        }
    }
}

/// For a conversation that only talks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTools;

impl Tools for NoTools {
    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn call<'a>(
        &'a self,
        invocation: Invocation<'a>,
        _: CancellationToken,
    ) -> BoxFuture<'a, ToolResult> {
        let text = format!("there is no tool {:?}", invocation.name);
        future::ready(ToolResult::failed(text)).boxed()
    }
}
