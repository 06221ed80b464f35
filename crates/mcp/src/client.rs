//! One client: what it is told, and its calls.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hermetic_tools::{NoOneToAsk, ToolDescription, ToolWorkplace};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};
use tokio::time::{Instant, interval_at};

use crate::ClientSandboxes;
use crate::client_approvals::ClientApprovals;
use crate::client_sandbox::ClientSandbox;

/// How often a client that wants to know is told that a call goes on.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(crate) struct McpClient {
    sandboxes: ClientSandboxes,
    client_sandbox: ClientSandbox,
}

impl McpClient {
    pub(crate) fn new(sandboxes: ClientSandboxes) -> Self {
        Self {
            client_sandbox: ClientSandbox::new(sandboxes.clone()),
            sandboxes,
        }
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let name = request.name.as_ref();
        let ask = ClientApprovals {
            peer: &context.peer,
            redactor: self.sandboxes.kit().terminal.redactor(),
            patience: self.sandboxes.patience(),
            client: self.client_sandbox.conversation(),
            audit: self.sandboxes.audit(),
            clock: self.sandboxes.clock(),
        };
        let toolbox = self.sandboxes.kit().toolbox(&self.client_sandbox, &ask);
        // Cancelled by the client's word, and when the client is gone.
        let calling = Box::pin(toolbox.call(name, &arguments, &context.ct));
        let answered = match context.meta.get_progress_token() {
            Some(token) => {
                let tell = |passed: f64| {
                    let mut progress = ProgressNotificationParam::new(token.clone(), passed);
                    progress.message = Some(format!("{name} goes on"));
                    progress
                };
                watched(calling, &context.peer, tell).await
            }
            None => calling.await,
        };
        let Some(answered) = answered else {
            let text = format!("there is no tool {name:?}");
            return Err(ErrorData::invalid_params(text, None));
        };
        let mut content = vec![ContentBlock::text(answered.json.to_text().into_inner())];
        let pictures = answered.media.iter().filter(|media| media.is_image());
        content.extend(pictures.map(|picture| {
            ContentBlock::image(STANDARD.encode(&picture.bytes), picture.media_type)
        }));
        let result = if answered.failed {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        Ok(result.into())
    }

    fn tools(&self) -> Vec<Tool> {
        let toolbox = self
            .sandboxes
            .kit()
            .toolbox(&self.client_sandbox, &NoOneToAsk);
        let described = toolbox.described().into_iter();
        described
            .map(|tool| {
                let hints = self.hints(&tool);
                Tool::new(tool.name, tool.description, Arc::new(object(tool.schema)))
                    .with_annotations(hints)
            })
            .collect()
    }
}

impl McpClient {
    /// What a client may show its user before a call. Hints and no more: what holds is the sandbox.
    fn hints(&self, tool: &ToolDescription) -> ToolAnnotations {
        let reads = tool.only_reads();
        let only_inside =
            reads || FILE_TOOLS.contains(&&*tool.name) || !self.sandboxes.reaches_out();
        ToolAnnotations::new()
            .read_only(reads)
            .destructive(!reads)
            .idempotent(reads)
            .open_world(!only_inside)
    }
}

/// Change files in the sandbox, and reach nothing else.
const FILE_TOOLS: [&str; 2] = ["write_file", "patch"];

/// Waits for the call and says every now and then that it goes on.
async fn watched<T>(
    mut calling: impl Future<Output = T> + Unpin,
    peer: &Peer<RoleServer>,
    tell: impl Fn(f64) -> ProgressNotificationParam,
) -> T {
    let begun = Instant::now();
    let mut ticks = interval_at(begun + PROGRESS_EVERY, PROGRESS_EVERY);
    loop {
        tokio::select! {
            done = &mut calling => return done,
            _ = ticks.tick() => {
                // Who does not listen misses nothing.
                let _ = peer.notify_progress(tell(begun.elapsed().as_secs_f64())).await;
            }
        }
    }
}

impl ServerHandler for McpClient {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let server = Implementation::new("hermetic", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(server)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_instructions(format!(
                "A sandbox of your own: every call of this session acts in it, and it is gone with \
                     the session. {}",
                self.sandboxes.reach()
            ))
    }

    /// Those that have sessions: without one, each call would meet another sandbox.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        let newest = ProtocolVersion::LATEST_WITH_INITIALIZE;
        Cow::Borrowed(ProtocolVersion::known_up_to(&newest))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let begun = Instant::now();
        let name = request.name.clone();
        let answered = self.call(request, context).await;
        let client = self.client_sandbox.conversation();
        tracing::info!(%client, tool = %name, milliseconds = begun.elapsed().as_millis(), "called");
        answered
    }
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}
