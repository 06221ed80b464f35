//! Resources and prompts of servers, behind four tools of ours.
//!
//! A server that says it has resources or prompts is offered with tools to list and to read them, under the
//! names that Hermes gives these. Their descriptions are ours, so they are no part of what a person agrees
//! to; what they bring back is the server's, and is treated like the result of any of its tools.

use serde_json::{Map, Value, json};

use super::definition::{ToolAct, ToolDefinition};
use super::settings::McpServerSettings;

/// Entries of one list that are shown; the rest comes with its cursor.
const MOST_ENTRIES: usize = 200;
const LONGEST_CURSOR: usize = 4096;
/// Messages of one prompt, or parts of one resource.
const MOST_PARTS: usize = 256;

/// What a server said about itself when it was greeted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerCapabilities {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
}

/// What one of the four tools does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentAct {
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

impl ServerCapabilities {
    pub(super) fn read(greeting: &Value) -> Self {
        let has = |name: &str| {
            let said = greeting.get("capabilities").and_then(|all| all.get(name));
            said.is_some_and(Value::is_object)
        };
        Self {
            tools: has("tools"),
            resources: has("resources"),
            prompts: has("prompts"),
        }
    }

    /// Whether its tools are asked for. Many do not say that they have some; one that names only others has
    /// none.
    pub(super) fn may_have_tools(self) -> bool {
        self.tools || !(self.resources || self.prompts)
    }

    /// The tools of ours for such a server.
    pub(super) fn document_tools(self, settings: &McpServerSettings) -> Vec<ToolDefinition> {
        use DocumentAct::{GetPrompt, ListPrompts, ListResources, ReadResource};
        let mut acts = Vec::new();
        if self.resources && settings.resources {
            acts.extend([ListResources, ReadResource]);
        }
        if self.prompts && settings.prompts {
            acts.extend([ListPrompts, GetPrompt]);
        }
        acts.into_iter().map(DocumentAct::definition).collect()
    }
}

impl DocumentAct {
    fn definition(self) -> ToolDefinition {
        let cursor = json!({"type": "string", "description": "what the last answer gave to go on"});
        let (name, description, schema) = match self {
            Self::ListResources => (
                "list_resources",
                "Lists what this server has to read, with the address of each.",
                json!({"type": "object", "properties": {"cursor": cursor}}),
            ),
            Self::ReadResource => (
                "read_resource",
                "Reads one resource of this server, by its address from the list.",
                json!({
                    "type": "object",
                    "properties": {"uri": {"type": "string"}},
                    "required": ["uri"],
                }),
            ),
            Self::ListPrompts => (
                "list_prompts",
                "Lists the prompts that this server has prepared, with the arguments of each.",
                json!({"type": "object", "properties": {"cursor": cursor}}),
            ),
            Self::GetPrompt => (
                "get_prompt",
                "Gets one prompt of this server, filled in with arguments.",
                json!({
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
                    },
                    "required": ["name"],
                }),
            ),
        };
        ToolDefinition {
            name: name.to_owned(),
            description: description.to_owned(),
            schema,
            digest: String::new(),
            act: ToolAct::Document(self),
        }
    }

    pub(super) fn method(self) -> &'static str {
        match self {
            Self::ListResources => "resources/list",
            Self::ReadResource => "resources/read",
            Self::ListPrompts => "prompts/list",
            Self::GetPrompt => "prompts/get",
        }
    }

    /// What is sent of what the model wrote: the fields that the protocol knows, and no other.
    pub(super) fn params(self, arguments: &Map<String, Value>) -> Value {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        match self {
            Self::ListResources | Self::ListPrompts => match text("cursor") {
                Some(cursor) if !cursor.is_empty() => json!({"cursor": cursor}),
                Some(_) | None => json!({}),
            },
            Self::ReadResource => json!({"uri": text("uri").unwrap_or_default()}),
            Self::GetPrompt => {
                let given = arguments.get("arguments").and_then(Value::as_object);
                let texts = given.into_iter().flatten().map(|(name, value)| {
                    let text = value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned);
                    (name.clone(), Value::String(text))
                });
                json!({
                    "name": text("name").unwrap_or_default(),
                    "arguments": texts.collect::<Map<_, _>>(),
                })
            }
        }
    }

    /// The answer in the form that the result of a tool has, so that it is bounded and hidden alike.
    pub(super) fn as_content(self, answer: &Value) -> Value {
        let pieces: Vec<Value> = match self {
            Self::ListResources => listing(answer, "resources"),
            Self::ListPrompts => listing(answer, "prompts"),
            Self::ReadResource => {
                let parts = answer.get("contents").and_then(Value::as_array);
                let parts = parts.into_iter().flatten().take(MOST_PARTS);
                parts
                    .map(|part| json!({"type": "resource", "resource": part}))
                    .collect()
            }
            Self::GetPrompt => {
                let messages = answer.get("messages").and_then(Value::as_array);
                let messages = messages.into_iter().flatten().take(MOST_PARTS / 2);
                messages.flat_map(message).collect()
            }
        };
        json!({"content": pieces})
    }
}

/// A line for each entry, in JSON, and the cursor behind them.
fn listing(answer: &Value, name: &str) -> Vec<Value> {
    let entries = answer.get(name).and_then(Value::as_array);
    let entries: Vec<_> = entries.into_iter().flatten().collect();
    let mut lines: Vec<String> = entries
        .iter()
        .take(MOST_ENTRIES)
        .map(|entry| entry.to_string())
        .collect();
    if entries.len() > MOST_ENTRIES {
        lines.push(format!(
            "[… {} more, not shown]",
            entries.len() - MOST_ENTRIES
        ));
    }
    if entries.is_empty() {
        lines.push(format!("[no {name}]"));
    }
    if let Some(next) = answer.get("nextCursor").and_then(Value::as_str) {
        let next: String = next.chars().take(LONGEST_CURSOR).collect();
        lines.push(format!("[there are more; cursor: {next:?}]"));
    }
    vec![text(&lines.join("\n"))]
}

fn message(message: &Value) -> [Value; 2] {
    let role = message.get("role").and_then(Value::as_str).unwrap_or("?");
    let role: String = role.chars().take(20).collect();
    let content = message.get("content").cloned().unwrap_or_default();
    [text(&format!("{role}:")), content]
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_has_decides_what_is_offered() {
        let read =
            |capabilities: Value| ServerCapabilities::read(&json!({"capabilities": capabilities}));
        assert!(read(json!({})).may_have_tools());
        assert!(read(json!({"tools": {}, "prompts": {}})).may_have_tools());
        assert!(!read(json!({"prompts": {}})).may_have_tools());
        assert!(
            !read(json!({"resources": true})).resources,
            "no object is no capability"
        );
    }

    #[test]
    fn answers_become_text_that_is_bounded_later() {
        let list = json!({"resources": [{"uri": "x:1", "name": "one"}], "nextCursor": "c"});
        let shown = DocumentAct::ListResources.as_content(&list).to_string();
        assert!(shown.contains("x:1") && shown.contains("cursor"), "{shown}");
        let many = json!({"prompts": vec![json!({"name": "p"}); MOST_ENTRIES + 7]});
        let shown = DocumentAct::ListPrompts.as_content(&many).to_string();
        assert!(shown.contains("7 more"), "{shown}");
        let prompt =
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "do"}}]});
        let shown = DocumentAct::GetPrompt.as_content(&prompt);
        assert_eq!(shown["content"][1]["text"], "do");
        for garbage in [
            json!(null),
            json!([]),
            json!({"messages": 7}),
            json!({"contents": [7]}),
        ] {
            for act in [
                DocumentAct::ReadResource,
                DocumentAct::GetPrompt,
                DocumentAct::ListPrompts,
            ] {
                assert!(act.as_content(&garbage)["content"].is_array());
            }
        }
    }

    #[test]
    fn of_what_a_model_writes_only_known_fields_are_sent() {
        let written =
            json!({"name": "p", "uri": "x", "arguments": {"n": 7, "t": "a"}, "method": "y"});
        let written = written.as_object().expect("an object");
        let sent = DocumentAct::GetPrompt.params(written);
        assert_eq!(
            sent,
            json!({"name": "p", "arguments": {"n": "7", "t": "a"}})
        );
        assert_eq!(
            DocumentAct::ReadResource.params(written),
            json!({"uri": "x"})
        );
    }
}
