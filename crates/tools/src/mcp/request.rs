//! What is asked of a connected server: its tools, and calls of them.

use hermetic_types::Command;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::conversation::ConversationServers;
use super::definition::{MOST_SERVER_TOOLS, OfferedTool, ToolAct, ToolDefinition};
use super::link::ServerConnection;
use super::message::RequestFailure;
use super::result::{self, ServerAnswer};
use super::{McpCaller, McpServerSettings, McpShared};

/// Pages of a list of tools.
const MOST_PAGES: usize = 64;

impl McpShared {
    pub(super) async fn call(
        &self,
        tool: &OfferedTool,
        own: &ConversationServers,
        arguments: &Map<String, Value>,
        caller: McpCaller<'_>,
    ) -> Result<ServerAnswer, RequestFailure> {
        let settings = &self.servers[tool.server];
        // Held until the answer, so that nobody begins the connection anew under a call.
        let mut seat = own.seats[tool.server].lock().await;
        let _held = self.enter(tool.server, &mut seat, caller).await?;
        let definition = &tool.definition;
        let now = seat.tools.iter().flatten();
        if !now.clone().any(|now| now == definition) {
            return Err(RequestFailure(format!(
                "the MCP server {:?} does not offer this tool in this form any more; nothing was called. \
                 Its tools of now are offered with the next message",
                settings.name
            )));
        }
        let json = Value::Object(arguments.clone());
        let record = Command::words([tool.offered_name.clone(), json.to_string()]);
        self.settle(settings, record.clone(), caller, |context| {
            self.policy.judge_configured(record.clone(), context)
        })
        .await?;
        let Some(connection) = &seat.connection else {
            return Err(RequestFailure("its connection is gone".to_owned()));
        };
        let (method, params) = match definition.act {
            ToolAct::Call => (
                "tools/call",
                json!({"name": definition.name, "arguments": json}),
            ),
            ToolAct::Document(act) => (act.method(), act.params(arguments)),
        };
        let called = connection.link.request(method, &params, settings.timeout);
        let called = called.await;
        if !connection.link.is_alive() {
            // One that was given up is begun anew with the next call.
            seat.connection = None;
        }
        let result = called
            .map_err(|why| RequestFailure(format!("the MCP server {:?}: {why}", settings.name)))?;
        let result = match definition.act {
            ToolAct::Call => result,
            ToolAct::Document(act) => act.as_content(&result),
        };
        Ok(result::answer(&result, &self.redactor, self.result_chars))
    }

    pub(super) async fn list(
        &self,
        settings: &McpServerSettings,
        connection: &ServerConnection,
    ) -> Result<Vec<ToolDefinition>, RequestFailure> {
        // For all pages together, however many the server has.
        let deadline = Instant::now() + settings.connect_timeout;
        let (mut tools, mut left_out) = (Vec::<ToolDefinition>::new(), Vec::new());
        let mut cursor = None;
        let pages = match connection.capabilities.may_have_tools() {
            true => MOST_PAGES,
            false => 0,
        };
        for _ in 0..pages {
            let params = match &cursor {
                Some(cursor) => json!({"cursor": cursor}),
                None => json!({}),
            };
            let patience = deadline.saturating_duration_since(Instant::now());
            let page = connection
                .link
                .request("tools/list", &params, patience)
                .await?;
            for tool in page
                .get("tools")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                match ToolDefinition::read(tool, &self.redactor) {
                    Err(why) => left_out.push(why),
                    Ok(tool) if !settings.offers(&tool.name) => {}
                    // The first of a name: with two, nobody could say which of them was agreed to.
                    Ok(tool) if tools.iter().any(|known| known.name == tool.name) => {}
                    Ok(tool) if tools.len() == MOST_SERVER_TOOLS => left_out.push(tool.name),
                    Ok(tool) => tools.push(tool),
                }
            }
            let next = page.get("nextCursor").and_then(Value::as_str);
            cursor = next.map(|next| next.chars().take(4096).collect::<String>());
            if cursor.is_none() || left_out.len() > MOST_SERVER_TOOLS {
                break;
            }
        }
        if !left_out.is_empty() {
            left_out.truncate(8);
            let left_out = self.redactor.redact(left_out.join(", ")).into_inner();
            tracing::warn!(server = %settings.name, left_out, "tools of an MCP server are not offered");
        }
        tools.extend(connection.capabilities.document_tools(settings));
        Ok(tools)
    }
}
