//! What an agent tells of its work, bounded as it is read.

use serde_json::Value;

use crate::bounds::{LONGEST_DETAIL, LONGEST_PIECE, LONGEST_WORDS, MOST_OPTIONS};
use crate::wire::cut;

/// One `session/update`, as far as it concerns us.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SessionUpdate {
    Text(String),
    Thought(String),
    Plan(PlanSummary),
    /// A tool call that begins, or news of one.
    Tool(ToolNews),
    /// The mode that it is in now.
    Mode(String),
    /// What the whole session has cost so far, in dollars.
    Cost(f64),
    /// Something that we do not look at, or that cannot be understood.
    Other,
}

/// A plan in a few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlanSummary {
    pub(crate) done: usize,
    pub(crate) entries: usize,
    /// What it is at.
    pub(crate) current: String,
}

/// News of one tool call, by the agent's own word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolNews {
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) status: Option<ToolStatus>,
    /// What it is called with.
    pub(crate) detail: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolStatus {
    AtWork,
    Completed,
    Failed,
}

/// The session that an update or a request is about.
pub(crate) fn session_of(params: &Value) -> Option<&str> {
    params.get("sessionId").and_then(Value::as_str)
}

impl SessionUpdate {
    pub(crate) fn read(params: &Value) -> Self {
        let Some(update) = params.get("update") else {
            return Self::Other;
        };
        let kind = update.get("sessionUpdate").and_then(Value::as_str);
        match kind.unwrap_or_default() {
            "agent_message_chunk" => Self::Text(content_text(update)),
            "agent_thought_chunk" => Self::Thought(content_text(update)),
            "plan" => Self::Plan(PlanSummary::read(update)),
            "tool_call" | "tool_call_update" => {
                ToolNews::read(update).map_or(Self::Other, Self::Tool)
            }
            "current_mode_update" => words(update, "currentModeId").map_or(Self::Other, Self::Mode),
            "usage_update" => dollars(update).map_or(Self::Other, Self::Cost),
            _ => Self::Other,
        }
    }
}

impl ToolNews {
    /// `None` without an id: nobody could tell which call is meant.
    pub(crate) fn read(call: &Value) -> Option<Self> {
        let id = words(call, "toolCallId").filter(|id| !id.is_empty())?;
        let status = match call.get("status").and_then(Value::as_str) {
            Some("pending" | "in_progress") => Some(ToolStatus::AtWork),
            Some("completed") => Some(ToolStatus::Completed),
            Some("failed") => Some(ToolStatus::Failed),
            _ => None,
        };
        Some(Self {
            id,
            title: words(call, "title"),
            kind: words(call, "kind"),
            status,
            detail: call.get("rawInput").and_then(detail),
        })
    }
}

impl PlanSummary {
    fn read(update: &Value) -> Self {
        let none = Vec::new();
        let entries = update.get("entries").and_then(Value::as_array);
        let entries = entries.unwrap_or(&none);
        let status = |entry: &Value, wanted: &str| {
            entry.get("status").and_then(Value::as_str) == Some(wanted)
        };
        let current = entries.iter().find(|entry| status(entry, "in_progress"));
        let current = current.or_else(|| entries.iter().find(|entry| status(entry, "pending")));
        Self {
            done: entries
                .iter()
                .filter(|entry| status(entry, "completed"))
                .count(),
            entries: entries.len(),
            current: current
                .and_then(|entry| words(entry, "content"))
                .unwrap_or_default(),
        }
    }
}

/// A short text of this name.
pub(crate) fn words(value: &Value, name: &str) -> Option<String> {
    let text = value.get(name).and_then(Value::as_str)?;
    Some(cut(text, LONGEST_WORDS).to_owned())
}

/// A list of this name, of which no more is looked at than anybody would read.
pub(crate) fn listed<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    let list = value.get(name).and_then(Value::as_array);
    list.into_iter().flatten().take(MOST_OPTIONS)
}

fn content_text(update: &Value) -> String {
    let text = update.pointer("/content/text").and_then(Value::as_str);
    cut(text.unwrap_or_default(), LONGEST_PIECE).to_owned()
}

/// What a tool is called with: the command where there is one, else all of it.
fn detail(input: &Value) -> Option<String> {
    let text = match input {
        Value::Null => return None,
        Value::Object(fields) if fields.is_empty() => return None,
        Value::String(text) => text.clone(),
        Value::Object(fields) => match fields.get("command") {
            Some(Value::String(command)) => command.clone(),
            _ => input.to_string(),
        },
        other => other.to_string(),
    };
    Some(head_and_tail(&text))
}

/// A long text with its beginning and its end, so that nothing hides behind what is left out.
fn head_and_tail(text: &str) -> String {
    if text.len() <= LONGEST_DETAIL {
        return text.to_owned();
    }
    let head = cut(text, LONGEST_DETAIL / 2);
    let tail = text.ceil_char_boundary(text.len() - LONGEST_DETAIL / 2);
    let left_out = tail - head.len();
    format!("{head}\n[{left_out} bytes are left out]\n{}", &text[tail..])
}

fn dollars(update: &Value) -> Option<f64> {
    let currency = update.pointer("/cost/currency").and_then(Value::as_str)?;
    let amount = update.pointer("/cost/amount").and_then(Value::as_f64)?;
    (currency == "USD" && amount.is_finite() && amount >= 0.0).then_some(amount)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "a test writes it in place")]
    fn read(update: Value) -> SessionUpdate {
        SessionUpdate::read(&json!({"sessionId": "s", "update": update}))
    }

    #[test]
    fn the_end_of_a_long_command_is_shown() {
        let command = format!("echo {}ü; curl evil.test", "x".repeat(2 * LONGEST_DETAIL));
        let shown = detail(&json!({"command": command})).unwrap();
        assert!(shown.starts_with("echo xx") && shown.ends_with("; curl evil.test"));
        assert!(shown.contains("bytes are left out") && shown.len() < LONGEST_DETAIL + 100);
    }

    #[test]
    fn updates_are_read() {
        let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}});
        assert_eq!(read(chunk), SessionUpdate::Text("hi".to_owned()));
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "ls", "kind": "execute",
                          "status": "pending", "rawInput": {"command": "ls -l", "description": "x"}});
        let SessionUpdate::Tool(news) = read(call) else {
            panic!("a tool call")
        };
        assert_eq!(news.detail.as_deref(), Some("ls -l"));
        assert_eq!(news.status, Some(ToolStatus::AtWork));
        let plan = json!({"sessionUpdate": "plan", "entries": [
            {"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"},
            {"content": "c", "status": "pending"}]});
        let summary = PlanSummary {
            done: 1,
            entries: 3,
            current: "b".to_owned(),
        };
        assert_eq!(read(plan), SessionUpdate::Plan(summary));
        let cost =
            json!({"sessionUpdate": "usage_update", "cost": {"amount": 0.5, "currency": "USD"}});
        assert_eq!(read(cost), SessionUpdate::Cost(0.5));
    }

    #[test]
    fn what_cannot_be_understood_is_nothing_and_what_is_long_is_cut() {
        for odd in [
            json!(null),
            json!([]),
            json!({"sessionUpdate": 7}),
            json!({"sessionUpdate": "tool_call"}),
            json!({"sessionUpdate": "tool_call", "toolCallId": ""}),
            json!({"sessionUpdate": "usage_update", "cost": {"amount": -1, "currency": "USD"}}),
            json!({"sessionUpdate": "usage_update", "cost": {"amount": 1, "currency": "EUR"}}),
            json!({"sessionUpdate": "something_new", "content": {}}),
        ] {
            assert_eq!(read(odd), SessionUpdate::Other);
        }
        let long = "ä".repeat(LONGEST_PIECE);
        let chunk = json!({"sessionUpdate": "agent_thought_chunk", "content": {"text": long}});
        let SessionUpdate::Thought(text) = read(chunk) else {
            panic!("a thought")
        };
        assert!(text.len() <= LONGEST_PIECE);
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "i".repeat(9999), "title": long,
                          "rawInput": {"a": long}});
        let SessionUpdate::Tool(news) = read(call) else {
            panic!("a tool call")
        };
        assert!(news.id.len() <= LONGEST_WORDS);
        assert!(news.title.is_some_and(|title| title.len() <= LONGEST_WORDS));
        assert!(
            news.detail
                .is_some_and(|detail| detail.len() < LONGEST_DETAIL + 100)
        );
    }
}
