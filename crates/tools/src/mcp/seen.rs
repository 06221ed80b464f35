//! The tools that a conversation has agreed to.

use std::collections::BTreeMap;
use std::fmt;

use hermetic_policy::JudgementContext;
use hermetic_store::ReplaceOutcome;
use hermetic_types::Command;
use serde::{Deserialize, Serialize};

use super::definition::{ToolAct, ToolDefinition, differences};
use super::message::RequestFailure;
use super::settings::digest;
use super::{McpCaller, McpServerSettings, McpShared};

/// The tools that a conversation has seen, as the store keeps them: by name, and a digest of what the server
/// said about each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenTools {
    settings: String,
    tools: BTreeMap<String, String>,
}

impl McpShared {
    /// The first tools that a conversation sees of a server are agreed to by whoever configured it. Others
    /// need a yes.
    pub(super) async fn agree_to(
        &self,
        settings: &McpServerSettings,
        in_memory: &Option<SeenTools>,
        tools: &[ToolDefinition],
        caller: McpCaller<'_>,
    ) -> Result<(), RequestFailure> {
        let cannot = |why: &dyn fmt::Display| {
            RequestFailure(format!("what it offered before cannot be read: {why}"))
        };
        // To a subagent in a fresh sandbox a list that changed would be the first one.
        let agreed_in = caller.workplace.agreed_in();
        let name = format!("mcp-tools:{agreed_in}:{}", settings.name);
        let stored = match &self.seen {
            Some(rows) => rows.load(&name).await.map_err(|error| cannot(&error))?,
            None => None,
        };
        let before = match &stored {
            Some(document) => {
                let read = serde_json::from_str::<SeenTools>(&document.body);
                // Not taken for none: the first tools that are seen need no yes.
                Some(read.map_err(|error| cannot(&error))?)
            }
            None => in_memory.clone(),
        };
        let now = SeenTools::of(settings, tools);
        let before = before.filter(|before| before.settings == now.settings);
        if before.as_ref() == Some(&now) {
            return Ok(());
        }
        let whole = digest(format!("{now:?}").as_bytes());
        let record = Command::words(["mcp-tools", &settings.name, &whole]);
        let judge = |context: &JudgementContext| match &before {
            None => self.policy.judge_configured(record.clone(), context),
            Some(before) => {
                let mut reasons = vec![format!(
                    "the MCP server {:?} offers other tools than when this conversation first saw it",
                    settings.name
                )];
                reasons.extend(differences(&before.tools, &now.tools));
                self.policy
                    .judge_changed_server(record.clone(), reasons, context)
            }
        };
        self.settle(settings, record.clone(), caller, judge).await?;
        let Some(rows) = &self.seen else {
            return Ok(());
        };
        let version = stored.as_ref().map_or(0, |document| document.version);
        let body = serde_json::to_string(&now).map_err(|error| cannot(&error))?;
        match rows.replace(&name, &body, version).await {
            Ok(ReplaceOutcome::Yes) => Ok(()),
            Ok(ReplaceOutcome::Outrun) => Err(RequestFailure(
                "its tools were looked at twice at once; try again".to_owned(),
            )),
            Err(error) => Err(RequestFailure(format!(
                "its tools could not be written down, so it is not used: {error}"
            ))),
        }
    }
}

impl SeenTools {
    pub(super) fn of(settings: &McpServerSettings, tools: &[ToolDefinition]) -> Self {
        // Tools of ours are not what a server says.
        let tools = tools.iter().filter(|tool| tool.act == ToolAct::Call);
        Self {
            settings: settings.fingerprint(),
            tools: tools
                .map(|tool| (tool.name.clone(), tool.digest.clone()))
                .collect(),
        }
    }
}
