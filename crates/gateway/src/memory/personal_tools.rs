//! Tools that are about whoever speaks: `memory`, `session_search`, and those of skills.
//!
//! They belong to the gateway and not to the sandbox: whose memories they touch is decided by who was let in,
//! and nothing that a model writes names somebody else.

use std::sync::{Arc, LazyLock};

use hermetic_agent::{ModelText, ToolResult, ToolSpec};
use hermetic_audit::{AuditEvent, MemoryEvent, MemorySubject};
use hermetic_memory::{MemoryChange, SkillDrafts};
use hermetic_store::StoreError;
use serde_json::{Map, Value, json};

use super::MemoryParts;
use super::scope::MemoryScope;
use super::session_search;

#[derive(Debug)]
pub struct PersonalTools<'a> {
    parts: MemoryParts<'a>,
    scope: MemoryScope,
    /// Who is noted in the record.
    speaker: String,
}

const SKILLS_LIST: &str = "skills_list";
const SKILL_VIEW: &str = "skill_view";

/// What every turn is offered of these.
static SPECS: LazyLock<[ToolSpec; 5]> = LazyLock::new(|| {
    let spec = |name: &str, description: &str, schema| ToolSpec {
        name: name.into(),
        description: description.into(),
        schema: Arc::new(schema),
    };
    [
        spec(
            session_search::NAME,
            session_search::ABOUT,
            session_search::schema(),
        ),
        spec(
            SKILLS_LIST,
            "Lists the skills there are, with what each is for.",
            json!({
            "type": "object", "properties": {"category": {"type": "string"}}, "required": []}),
        ),
        spec(
            SKILL_VIEW,
            "Shows a skill whole, or one of its files.",
            json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "As skills_list names it."},
                "file_path": {"type": "string", "description": "A file of it, such as references/api.md."}},
            "required": ["name"]}),
        ),
        spec(SkillDrafts::TOOL, MANAGE, manage_schema()),
        spec(MemoryChange::TOOL, MEMORY, MemoryChange::schema()),
    ]
});

impl<'a> PersonalTools<'a> {
    pub(crate) fn new(parts: MemoryParts<'a>, scope: MemoryScope, speaker: String) -> Self {
        Self {
            parts,
            scope,
            speaker,
        }
    }

    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        let remembers = self.parts.memory.memories.is_enabled();
        let offered = SPECS
            .iter()
            .filter(|spec| remembers || *spec.name != *MemoryChange::TOOL);
        offered.cloned().collect()
    }

    /// `None` if it is another tool.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Option<ToolResult> {
        let answered = match name {
            MemoryChange::TOOL => self.remember(arguments).await,
            SkillDrafts::TOOL => self.manage_skill(arguments).await,
            SKILLS_LIST | SKILL_VIEW => Ok(self.look_at_skills(name, arguments).await),
            session_search::NAME => {
                session_search::search(&self.parts, &self.scope.search, arguments).await
            }
            _ => return None,
        };
        let (json, failed) = answered.unwrap_or_else(|error| {
            tracing::error!(%error, tool = name, "a tool failed");
            let error = "the gateway's store does not answer; nothing was changed";
            (json!({"success": false, "error": error}), true)
        });
        let text: ModelText = self.parts.redactor.redact_json(json).to_text().into();
        Some(match failed {
            true => ToolResult::failed(text),
            false => ToolResult::new(text),
        })
    }

    async fn remember(&self, arguments: &Map<String, Value>) -> Result<(Value, bool), StoreError> {
        let terms = (self.scope.is_guest, self.parts.clock.now());
        let change = MemoryChange::read(arguments);
        let memories = &self.parts.memory.memories;
        let (json, failed) = memories.call(&self.scope.owner, change, terms).await?;
        if !failed {
            self.note(MemorySubject::Memory, &json, arguments);
        }
        Ok((json, failed))
    }

    async fn manage_skill(
        &self,
        arguments: &Map<String, Value>,
    ) -> Result<(Value, bool), StoreError> {
        let drafts = &self.parts.memory.drafts;
        let now = self.parts.clock.now();
        let (json, failed) = drafts.call(&self.scope.owner, arguments, now).await?;
        if !failed {
            self.note(MemorySubject::Skill, &json, arguments);
        }
        Ok((json, failed))
    }

    async fn look_at_skills(&self, name: &str, arguments: &Map<String, Value>) -> (Value, bool) {
        let text = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let skills = self.parts.memory.skills.clone();
        let is_list = name == SKILLS_LIST;
        let (category, skill, file) = (text("category"), text("name"), text("file_path"));
        // Folders are read aside.
        let read = tokio::task::spawn_blocking(move || match is_list {
            true => (skills.list_json(category.as_deref()), false),
            false => skills.view_json(&skill.unwrap_or_default(), file.as_deref()),
        });
        let failed = |_| {
            (
                json!({"success": false, "error": "skills cannot be read"}),
                true,
            )
        };
        read.await.unwrap_or_else(failed)
    }

    fn note(&self, subject: MemorySubject, answer: &Value, arguments: &Map<String, Value>) {
        let questions = self.parts.questions;
        let is_staged = answer["staged"] == true;
        self.parts.note(&AuditEvent::Memory {
            subject,
            act: match is_staged {
                true => MemoryEvent::Proposed,
                false => MemoryEvent::Written,
            },
            owner: questions.words(&self.scope.owner.to_string()),
            what: questions.words(&Value::Object(arguments.clone()).to_string()),
            by: questions.words(&format!("the agent, for {}", self.speaker)),
        });
    }
}

const MEMORY: &str = "Remembers short facts beyond this conversation: 'user' for who the person is and what they \
    prefer, 'memory' for notes about the work. Several changes go into one call, as operations: all of them or \
    none. What is full says what it holds; make room by replacing or removing in the same call. Remember what \
    would otherwise be asked or told again; not what is easily looked up, not progress of a task, no secrets. \
    What is remembered is shown from the next conversation on.";

const MANAGE: &str = "Writes a skill down: how something is done, for later conversations. create and edit take a \
    whole SKILL.md, which begins with a head between lines of --- with name and description; patch replaces \
    old_string by new_string; write_file and remove_file are about files below references/, templates/, scripts/ \
    or assets/; delete removes it. A person reviews it, and nothing of it is used before. Ask before you write one.";

fn manage_schema() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    json!({
        "type": "object",
        "properties": {
            "action": {"type": "string",
                "enum": ["create", "patch", "edit", "delete", "write_file", "remove_file"]},
            "name": text("Small letters, digits, dots, dashes, underscores; at most 64."),
            "content": text("The whole SKILL.md, for create and edit."),
            "old_string": text("For patch: what is replaced; unique unless replace_all."),
            "new_string": text("For patch: what comes in its place."),
            "replace_all": {"type": "boolean"},
            "category": text("For create: the folder it belongs to."),
            "file_path": text("For write_file and remove_file, and patch of another file than SKILL.md."),
            "file_content": text("For write_file."),
            "absorbed_into": text("For delete: the skill that says the same now."),
        },
        "required": ["action", "name"],
    })
}
