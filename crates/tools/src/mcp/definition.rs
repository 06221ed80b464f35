//! What a server says about its tools: untrusted, so bounded and made legible before a model sees it.

use std::collections::{BTreeMap, HashSet};

use hermetic_redact::Redactor;
use serde_json::{Map, Value, json};

use super::document_act::DocumentAct;
use super::settings::{McpServerSettings, digest};
use crate::shown::legible;

/// Tools of one server.
pub(super) const MOST_SERVER_TOOLS: usize = 64;
/// Tools of all servers together. Providers take a bounded number, and each costs room in every request.
const MOST_TOOLS: usize = 100;
const LONGEST_NAME: usize = 128;
/// What providers take for the name of a tool.
const LONGEST_OFFERED_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 2000;
const LONGEST_SCHEMA_TEXT: usize = 1000;
/// Each request to the model carries it.
const LARGEST_SCHEMA: usize = 16 * 1024;
const DEEPEST_SCHEMA: usize = 16;
const MARK: char = '_';

/// One tool as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolDefinition {
    /// The server's own name of it.
    pub(super) name: String,
    pub(super) description: String,
    pub(super) schema: Value,
    /// Of all that the server said about it, before anything was taken out.
    pub(super) digest: String,
    pub(super) act: ToolAct,
}

/// What is done when a tool is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolAct {
    /// The server's own tool of that name.
    Call,
    /// One of ours, which reads what the server has besides tools.
    Document(DocumentAct),
}

/// One tool under the name by which the model calls it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OfferedTool {
    pub(super) offered_name: String,
    pub(super) server: usize,
    pub(super) definition: ToolDefinition,
}

impl ToolDefinition {
    /// `None` for one that cannot be offered; the words say why.
    pub(super) fn read(tool: &Value, redactor: &Redactor) -> Result<Self, String> {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let shown: String = legible(name).chars().take(LONGEST_NAME).collect();
        if name.is_empty() || name.chars().count() > LONGEST_NAME || shown != name {
            return Err(format!("a tool with an unusable name ({shown:?})"));
        }
        let empty = json!({"type": "object", "properties": {}});
        let schema = tool.get("inputSchema").unwrap_or(&empty);
        if !schema.is_object() || depth(schema) > DEEPEST_SCHEMA {
            return Err(format!(
                "{name} (its schema is no object, or nested too deeply)"
            ));
        }
        if schema.to_string().len() > LARGEST_SCHEMA {
            return Err(format!(
                "{name} (its schema is over {LARGEST_SCHEMA} bytes)"
            ));
        }
        let words = tool.get("description").and_then(Value::as_str);
        let words = words.or_else(|| tool.get("title").and_then(Value::as_str));
        let text = |text: &str, most| clean(redactor, text, most);
        Ok(Self {
            name: name.to_owned(),
            description: text(words.unwrap_or("(no description)"), LONGEST_DESCRIPTION),
            schema: as_object_schema(cleaned(schema, redactor)),
            digest: digest(tool.to_string().as_bytes()),
            act: ToolAct::Call,
        })
    }
}

/// Every tool under a name of its own: `mcp_<server>_<tool>`, in the order of the configuration.
pub(super) fn offer(
    servers: &[McpServerSettings],
    tools: &[Option<Vec<ToolDefinition>>],
) -> Vec<OfferedTool> {
    let mut taken = HashSet::new();
    let mut offered = Vec::new();
    for (server, settings) in servers.iter().enumerate() {
        for definition in tools.get(server).into_iter().flatten().flatten() {
            if offered.len() == MOST_TOOLS {
                return offered;
            }
            let full = format!("{}{MARK}{}", settings.name, definition.name);
            let mut name = offered_name(&settings.name, &definition.name, &full);
            if !taken.insert(name.clone()) {
                // Two names that differ only in what no provider takes.
                name = marked_name(&name, &full);
                taken.insert(name.clone());
            }
            offered.push(OfferedTool {
                offered_name: name,
                server,
                definition: definition.clone(),
            });
        }
    }
    offered
}

/// What is otherwise than it was: what a person is asked about.
pub(super) fn differences(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Vec<String> {
    let names = |kind: &str, names: Vec<&String>| {
        let shown: Vec<_> = names.iter().take(8).map(|name| name.as_str()).collect();
        let more = match names.len().saturating_sub(shown.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!names.is_empty()).then(|| format!("{kind}: {}{more}", shown.join(", ")))
    };
    let added = now.keys().filter(|name| !before.contains_key(*name));
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    let other = |(name, digest): &(&String, &String)| {
        before.get(*name).is_some_and(|before| before != *digest)
    };
    let changed = now.iter().filter(other).map(|(name, _)| name);
    let kinds = [
        names("new", added.collect()),
        names("described otherwise", changed.collect()),
        names("gone", gone.collect()),
    ];
    kinds.into_iter().flatten().collect()
}

fn offered_name(server: &str, tool: &str, full: &str) -> String {
    let plain = |text: &str| -> String {
        let letters = text.chars();
        letters
            .map(|c| if c.is_ascii_alphanumeric() { c } else { MARK })
            .collect()
    };
    let name = format!("mcp{MARK}{}{MARK}{}", plain(server), plain(tool));
    if name.len() > LONGEST_OFFERED_NAME {
        marked_name(&name, full)
    } else {
        name
    }
}

/// Cut, with the beginning of a digest of the whole.
fn marked_name(name: &str, full: &str) -> String {
    let digest = &digest(full.as_bytes())[..8];
    let room = LONGEST_OFFERED_NAME - digest.len() - 1;
    // ASCII by now.
    format!("{}{MARK}{digest}", &name[..name.len().min(room)])
}

fn clean(redactor: &Redactor, text: &str, most: usize) -> String {
    let text = redactor.redact(legible(text)).into_inner();
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn cleaned(schema: &Value, redactor: &Redactor) -> Value {
    match schema {
        Value::String(text) => clean(redactor, text, LONGEST_SCHEMA_TEXT).into(),
        Value::Array(items) => items.iter().map(|item| cleaned(item, redactor)).collect(),
        Value::Object(fields) => {
            // A name that cannot be read cannot be written by a model either.
            let fields = fields.iter().filter(|(name, _)| legible(name) == **name);
            let fields = fields.map(|(name, field)| (name.clone(), cleaned(field, redactor)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn as_object_schema(schema: Value) -> Value {
    let Value::Object(mut fields) = schema else {
        return json!({"type": "object", "properties": {}});
    };
    fields.remove("$schema");
    fields.remove("$id");
    fields.insert("type".to_owned(), "object".into());
    if !fields.get("properties").is_some_and(Value::is_object) {
        fields.insert("properties".to_owned(), Map::new().into());
    }
    Value::Object(fields)
}

fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::mcp::McpServerPlace;

    fn redactor() -> Redactor {
        Redactor::new([], hermetic_redact::RedactorSettings::default())
    }

    fn settings(name: &str) -> McpServerSettings {
        McpServerSettings {
            name: name.to_owned(),
            place: McpServerPlace::Refused(String::new()),
            timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(1),
            include: None,
            exclude: Vec::new(),
            resources: true,
            prompts: true,
        }
    }

    fn tool(name: &str) -> ToolDefinition {
        ToolDefinition::read(&json!({"name": name}), &redactor()).expect("usable")
    }

    #[test]
    fn every_tool_has_a_name_of_its_own_that_providers_take() {
        let servers = [settings("a.b"), settings("a"), settings(&"long".repeat(40))];
        let tools = [
            Some(vec![tool("c"), tool("c!")]),
            Some(vec![tool("b_c"), tool("ünï")]),
            Some(vec![tool("x"), tool("y")]),
        ];
        let offered = offer(&servers, &tools);
        let names: HashSet<_> = offered.iter().map(|tool| &tool.offered_name).collect();
        assert_eq!(names.len(), 6, "{names:?}");
        assert!(names.contains(&"mcp_a_b_c".to_owned()));
        for name in names {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            assert!(name.len() <= 64 && name.chars().all(plain), "{name}");
            assert!(name.starts_with("mcp_"));
        }
    }

    #[test]
    fn what_cannot_be_offered_is_named() {
        let deep = (0..40).fold(json!({}), |inner, _| json!({"properties": {"x": inner}}));
        let wide: String = "x".repeat(LARGEST_SCHEMA);
        for bad in [
            json!({"description": "no name"}),
            json!({"name": ""}),
            json!({"name": "x\u{202e}y"}),
            json!({"name": "n".repeat(LONGEST_NAME + 1)}),
            json!({"name": "deep", "inputSchema": deep}),
            json!({"name": "wide", "inputSchema": {"description": wide}}),
            json!({"name": "odd", "inputSchema": [1, 2]}),
            json!(7),
        ] {
            let read = ToolDefinition::read(&bad, &redactor());
            assert!(read.is_err(), "{bad}");
        }
    }

    #[test]
    fn descriptions_are_bounded_and_legible() {
        let said = json!({
            "name": "t",
            "description": format!("a\u{200b}\u{1b}[2Jb{}", "x".repeat(9000)),
            "inputSchema": {
                "$schema": "x",
                "properties": {"p": {"type": "string", "description": "y".repeat(5000)}},
            },
        });
        let tool = ToolDefinition::read(&said, &redactor()).expect("usable");
        assert!(tool.description.chars().count() <= LONGEST_DESCRIPTION + 1);
        assert!(!tool.description.contains(['\u{200b}', '\u{1b}']));
        let inner = tool.schema["properties"]["p"]["description"].as_str();
        assert!(inner.is_some_and(|text| text.chars().count() <= LONGEST_SCHEMA_TEXT + 1));
        assert_eq!(tool.schema["type"], "object");
        assert!(tool.schema.get("$schema").is_none());
    }

    #[test]
    fn a_difference_is_told_by_name() {
        let map = |pairs: &[(&str, &str)]| {
            let owned = |(name, digest): &(&str, &str)| ((*name).to_owned(), (*digest).to_owned());
            pairs.iter().map(owned).collect::<BTreeMap<_, _>>()
        };
        let before = map(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let now = map(&[("a", "1"), ("b", "2"), ("d", "1")]);
        assert_eq!(
            differences(&before, &now),
            ["new: d", "described otherwise: b", "gone: c"]
        );
        assert!(differences(&before, &before).is_empty());
    }
}
