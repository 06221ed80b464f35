//! The seam to whatever acts.

use std::borrow::Cow;
use std::sync::Arc;

use futures::future::{self, BoxFuture, FutureExt};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::message::joined;
use crate::{CallId, MessagePart, ModelText};

/// The tools of one conversation.
///
/// What an implementer promises: `call` does not panic on any arguments, ends soon after `stop` is
/// cancelled with nothing left running, and an image or a file it hands over holds no secret. That its
/// text holds none is proven by the text's type.
pub trait ToolSet: Send + Sync {
    fn specs(&self) -> Vec<ToolSpec>;

    /// Makes ready for a call of this tool while the call is being written down. It may be all that happens: what
    /// cannot be written down is not called.
    fn make_ready<'a>(&'a self, _tool: &'a str, _stop: CancellationToken) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn call<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, ToolResult>;
}

/// What the model is told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Shared, as the rest: every turn holds what it offers.
    pub name: Arc<str>,
    pub description: Arc<str>,
    /// A JSON schema of an object. Arguments that do not keep it never reach the tool.
    pub schema: Arc<Value>,
}

/// A call whose arguments have been checked.
#[derive(Clone, Copy, Debug)]
pub struct ToolInvocation<'a> {
    pub id: &'a CallId,
    pub name: &'a str,
    pub arguments: &'a Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    pub parts: Vec<MessagePart>,
    /// Whether it went wrong. Models whose provider has a word for that are told.
    pub failed: bool,
}

impl ToolResult {
    pub fn new(text: impl Into<ModelText>) -> Self {
        Self {
            parts: vec![MessagePart::text(text)],
            failed: false,
        }
    }

    /// All of its text.
    pub fn text(&self) -> Cow<'_, str> {
        joined(&self.parts, "\n")
    }

    pub fn failed(text: impl Into<ModelText>) -> Self {
        Self {
            parts: vec![MessagePart::text(text)],
            failed: true,
        }
    }
}

/// For a conversation that only talks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTools;

impl ToolSet for NoTools {
    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn call<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
        _: CancellationToken,
    ) -> BoxFuture<'a, ToolResult> {
        // The name is the model's own word.
        let text = format!("there is no tool {:?}", invocation.name);
        future::ready(ToolResult::failed(ModelText::assembled(text))).boxed()
    }
}
