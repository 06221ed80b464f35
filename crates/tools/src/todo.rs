//! `todo`: the tasks that an agent wrote down for a conversation, as models trained on Hermes know them.

use hermetic_store::{StoreError, TodoRows};
use hermetic_types::ConversationKey;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::ToolDescription;
use crate::toolbox::RawAnswer;

pub(crate) const NAME: &str = "todo";

/// The lists of all conversations.
#[derive(Clone, Debug)]
pub struct TodoLists(TodoRows);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TodoItem {
    id: String,
    content: String,
    status: TodoStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

/// A plan has some ten items; all of them stand before the model whenever it is asked.
const MOST_ITEMS: usize = 100;
const CONTENT_CHARS: usize = 1000;
const ID_CHARS: usize = 80;

impl TodoLists {
    pub fn new(rows: TodoRows) -> Self {
        Self(rows)
    }

    /// What is still to be done, a line each; nothing where nothing is.
    pub async fn open_items(&self, conversation: &ConversationKey) -> Option<String> {
        let items = self.load(conversation).await.ok()?;
        let lines: Vec<_> = items
            .iter()
            .filter_map(|item| {
                let mark = match item.status {
                    TodoStatus::Pending => "[ ]",
                    TodoStatus::InProgress => "[>]",
                    TodoStatus::Completed | TodoStatus::Cancelled => return None,
                };
                Some(format!("{mark} {}: {}", item.id, item.content))
            })
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    pub(crate) async fn call(
        &self,
        conversation: &ConversationKey,
        arguments: &Map<String, Value>,
    ) -> RawAnswer {
        let worked = self.work(conversation, arguments).await;
        match worked {
            Ok(items) => RawAnswer {
                json: told(&items),
                failed: false,
            },
            Err(error) => RawAnswer {
                json: json!({"error": error}),
                failed: true,
            },
        }
    }

    async fn work(
        &self,
        conversation: &ConversationKey,
        arguments: &Map<String, Value>,
    ) -> Result<Vec<TodoItem>, String> {
        let Some(written) = written(arguments)? else {
            return self.load(conversation).await;
        };
        let merges = match arguments.get("merge") {
            Some(Value::Bool(merges)) => *merges,
            Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
            _ => false,
        };
        let items = match merges {
            true => merged(self.load(conversation).await?, &written),
            false => replaced(&written),
        };
        if items.len() > MOST_ITEMS {
            let many = items.len();
            return Err(format!(
                "{many} items are too many, the limit is {MOST_ITEMS}; the list stays as it was"
            ));
        }
        self.save(conversation, &items).await?;
        Ok(items)
    }

    async fn load(&self, conversation: &ConversationKey) -> Result<Vec<TodoItem>, String> {
        let text = self
            .0
            .of(conversation)
            .await
            .map_err(|error| not_kept(&error))?;
        Ok(text
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default())
    }

    async fn save(&self, conversation: &ConversationKey, items: &[TodoItem]) -> Result<(), String> {
        let text = serde_json::to_string(items).unwrap_or_default();
        let written = self.0.write(conversation, &text).await;
        written.map_err(|error| not_kept(&error))
    }
}

fn not_kept(error: &StoreError) -> String {
    tracing::error!(%error, "a list of tasks could not be read or written");
    "the list could not be read or written; the operator has been told".to_owned()
}

pub(crate) fn description() -> ToolDescription {
    ToolDescription {
        name: NAME.into(),
        description: "Keeps your list of tasks for this conversation. For work of three steps or more. Without \
             arguments it shows the list; todos replaces it, or with merge=true changes items by their id and \
             adds new ones. The order is the priority; one item is in_progress at a time; mark one completed when \
             it is done. Always answers with the whole list."
            .to_owned(),
        schema: json!({
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "description": "items to write; leave it out to read",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string", "description": "its name, chosen by you"},
                            "content": {"type": "string", "description": "what is to be done"},
                            "status": {
                                "type": "string",
                                "enum": ["pending", "in_progress", "completed", "cancelled"],
                            },
                        },
                        "required": ["id", "content", "status"],
                    },
                },
                "merge": {
                    "type": "boolean", "default": false,
                    "description": "change items by id instead of replacing the list",
                },
            },
        }),
    }
}

/// The items of a call; some models send them as text.
fn written(arguments: &Map<String, Value>) -> Result<Option<Vec<Value>>, String> {
    match arguments.get("todos") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(Value::String(text)) => {
            let items = serde_json::from_str::<Vec<Value>>(text);
            items.map(Some).map_err(|_| NO_LIST.to_owned())
        }
        Some(_) => Err(NO_LIST.to_owned()),
    }
}

const NO_LIST: &str = "todos must be a list of objects with id, content and status";

/// Of items with one id the last counts, where it stands.
fn replaced(written: &[Value]) -> Vec<TodoItem> {
    let items: Vec<_> = written.iter().map(item).collect();
    let is_last = |at: usize| {
        let later = &items[at + 1..];
        !later.iter().any(|other| other.id == items[at].id)
    };
    let kept = (0..items.len()).filter(|at| is_last(*at));
    kept.map(|at| items[at].clone()).collect()
}

fn merged(mut items: Vec<TodoItem>, written: &[Value]) -> Vec<TodoItem> {
    for value in written {
        let new = item(value);
        match items.iter_mut().find(|item| item.id == new.id) {
            Some(known) => {
                // Only what was said changes.
                if field(value, "content").is_some() {
                    known.content = new.content;
                }
                if let Some(status) = status(value) {
                    known.status = status;
                }
            }
            None => items.push(new),
        }
        // So that a long list of new ones does not grow first and is refused then.
        if items.len() > MOST_ITEMS {
            break;
        }
    }
    items
}

fn item(value: &Value) -> TodoItem {
    let bounded = |text: String, most: usize| text.chars().take(most).collect::<String>();
    let id = field(value, "id").unwrap_or_else(|| "?".to_owned());
    let content = field(value, "content").unwrap_or_else(|| "(no description)".to_owned());
    TodoItem {
        id: bounded(id, ID_CHARS),
        content: bounded(content, CONTENT_CHARS),
        status: status(value).unwrap_or(TodoStatus::Pending),
    }
}

/// Numbers are taken for ids, too.
fn field(value: &Value, name: &str) -> Option<String> {
    let text = match value.get(name)? {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

fn status(value: &Value) -> Option<TodoStatus> {
    let text = field(value, "status")?.to_ascii_lowercase();
    serde_json::from_value(text.into()).ok()
}

fn told(items: &[TodoItem]) -> Value {
    let count = |status: TodoStatus| items.iter().filter(|item| item.status == status).count();
    json!({
        "todos": items,
        "summary": {
            "total": items.len(),
            "pending": count(TodoStatus::Pending),
            "in_progress": count(TodoStatus::InProgress),
            "completed": count(TodoStatus::Completed),
            "cancelled": count(TodoStatus::Cancelled),
        },
    })
}

#[cfg(test)]
mod tests {
    use hermetic_store::Store;
    use hermetic_types::SystemClock;

    use super::*;

    async fn lists() -> (tempfile::TempDir, TodoLists) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let store = Store::open(&path, SystemClock::shared()).await.unwrap();
        (folder, TodoLists::new(store.todo_lists()))
    }

    async fn call(lists: &TodoLists, arguments: Value) -> Value {
        let key = ConversationKey::new("a");
        let arguments = arguments.as_object().unwrap().clone();
        lists.call(&key, &arguments).await.json
    }

    #[tokio::test]
    async fn a_list_is_replaced_merged_and_read() {
        let (_folder, lists) = lists().await;
        let two = json!([
            {"id": "1", "content": "old", "status": "completed"},
            {"id": "2", "content": "test", "status": "in_progress"},
            {"id": "1", "content": "build", "status": "pending"},
        ]);
        let told = call(&lists, json!({"todos": two})).await;
        let ids: Vec<_> = told["todos"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| &item["id"])
            .collect();
        assert_eq!(ids, ["2", "1"]);
        assert_eq!(
            told["summary"],
            json!({"total": 2, "pending": 1, "in_progress": 1, "completed": 0, "cancelled": 0})
        );
        let change = json!({"todos": [{"id": 1, "status": "cancelled"}, {"id": "3", "content": "ship"}],
            "merge": true});
        call(&lists, change).await;
        let read = call(&lists, json!({})).await;
        assert_eq!(
            read["todos"][1],
            json!({"id": "1", "content": "build", "status": "cancelled"})
        );
        assert_eq!(read["todos"][2]["status"], "pending");
        let open = lists.open_items(&ConversationKey::new("a")).await.unwrap();
        assert_eq!(open, "[>] 2: test\n[ ] 3: ship");
        assert_eq!(lists.open_items(&ConversationKey::new("b")).await, None);
        call(&lists, json!({"todos": []})).await;
        assert_eq!(lists.open_items(&ConversationKey::new("a")).await, None);
    }

    #[tokio::test]
    async fn whatever_a_model_sends_is_answered_and_bounded() {
        let (_folder, lists) = lists().await;
        let text = r#"[{"id":"1","content":"x","status":"pending"}]"#;
        assert_eq!(
            call(&lists, json!({"todos": text})).await["summary"]["total"],
            1
        );
        for bad in [json!("no"), json!(7), json!({"a": 1})] {
            assert!(call(&lists, json!({"todos": bad})).await["error"].is_string());
        }
        let odd = call(&lists, json!({"todos": [7, null, {"status": "flying"}]})).await;
        assert_eq!(odd["todos"][0]["status"], "pending");
        let many: Vec<_> = (0..200)
            .map(|id| json!({"id": id, "content": "x"}))
            .collect();
        for merge in [true, false] {
            let told = call(&lists, json!({"todos": many, "merge": merge})).await;
            assert!(
                told["error"].as_str().unwrap().contains("too many"),
                "{told}"
            );
        }
        assert_eq!(
            call(&lists, json!({})).await["summary"]["total"],
            1,
            "it stayed"
        );
        let long = call(
            &lists,
            json!({"todos": [{"id": "i".repeat(999), "content": "c".repeat(9999)}]}),
        )
        .await;
        assert_eq!(
            long["todos"][0]["content"].as_str().unwrap().len(),
            CONTENT_CHARS
        );
    }
}
