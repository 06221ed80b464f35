//! `/memory`, `/skills` and `/<skill>`.

use hermetic_access::SenderRole;
use hermetic_audit::{AuditEvent, AuditText, MemoryEvent, MemorySubject};
use hermetic_memory::{MemoryError, MemoryTarget, SkillSummary};
use hermetic_redact::Redacted;
use hermetic_store::StoreError;

use super::MemoryParts;
use super::scope::MemoryScope;
use crate::Gateway;
use crate::message::{AcceptedMessage, ChatCommand};

/// Skills that are listed at once.
const MOST_LISTED: usize = 40;

const USAGE: &str = "/memory shows what I remember here. /memory pending lists what waits for your word, /memory \
    approve ID and /memory reject ID give it, /memory remove TEXT forgets the one entry that has this text in it.";

const BY_CHAT: &str = "a command in the chat";

impl Gateway {
    pub(crate) async fn memory_command(
        &self,
        message: &AcceptedMessage,
        words: &str,
    ) -> Result<Redacted<String>, StoreError> {
        let scope = self.memory_scope(message).await?;
        // In a group whatever is remembered is everybody's.
        let may = scope.person.is_some() || message.admitted().role() == SenderRole::Operator;
        let parts = self.memory_parts();
        parts.obey(&scope, may, (words, BY_CHAT)).await
    }

    pub(crate) async fn skills_command(&self) -> Redacted<String> {
        self.memory_parts().listed_skills().await
    }

    /// Whether what looks like an unknown command calls a skill.
    pub(crate) fn is_skill(&self, slash: &ChatCommand) -> bool {
        match slash {
            ChatCommand::Unknown(name) => self.memory.skills.find_command(name).is_some(),
            _ => false,
        }
    }

    /// What the model is told where a message calls a skill: the skill, and what was said with it.
    pub(crate) async fn skill_words(&self, message: &AcceptedMessage) -> Option<String> {
        if self.slash(message).is_some() {
            return None;
        }
        self.memory_parts().called_skill(&message.said().text).await
    }
}

impl MemoryParts<'_> {
    /// Does what a person typed about their memories; `may` is whether they may change them, and `by` stands in
    /// the record.
    pub(super) async fn obey(
        &self,
        scope: &MemoryScope,
        may: bool,
        (words, by): (&str, &'static str),
    ) -> Result<Redacted<String>, StoreError> {
        if !self.memory.memories.is_enabled() {
            return Ok(Redacted::constant(
                "Nothing is remembered here: the operator switched it off.",
            ));
        }
        let (verb, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let rest = rest.trim();
        let text = match verb.to_lowercase().as_str() {
            "" => self.shown_memories(scope).await?,
            "pending" => self.waiting_memories(scope).await?,
            verb @ ("approve" | "reject" | "remove") => match may {
                false => "In a group only who may approve changes what is remembered.".to_owned(),
                true => self.change_memory(scope, (verb, rest), by).await?,
            },
            _ => USAGE.to_owned(),
        };
        Ok(self.redactor.redact(text))
    }

    async fn shown_memories(&self, scope: &MemoryScope) -> Result<String, StoreError> {
        let memories = &self.memory.memories;
        let whose = match scope.person {
            Some(_) => "What I remember of you, and nobody else sees:",
            None => "What I remember of this group:",
        };
        let mut text = whose.to_owned();
        for target in MemoryTarget::ALL {
            let entries = memories.read(&scope.owner, target).await?;
            let limit = memories.of_target(target).char_limit;
            text.push_str(&format!(
                "\n\n{} ({} of {limit} characters)",
                target.file(),
                entries.chars()
            ));
            for entry in entries.iter() {
                text.push_str(&format!("\n- {}", entry.replace('\n', "\n  ")));
            }
        }
        let waiting = memories.rows().waiting_of(&scope.owner.to_string()).await?;
        if !waiting.is_empty() {
            text.push_str(&format!(
                "\n\n{} more wait for review: /memory pending",
                waiting.len()
            ));
        }
        Ok(text)
    }

    async fn waiting_memories(&self, scope: &MemoryScope) -> Result<String, StoreError> {
        let rows = self.memory.memories.rows();
        let waiting = rows.waiting_of(&scope.owner.to_string()).await?;
        if waiting.is_empty() {
            return Ok("Nothing waits for review.".to_owned());
        }
        let mut text = "To be remembered, if you say so:".to_owned();
        for request in waiting {
            text.push_str(&format!(
                "\n{} ({}): {}",
                request.id, request.target, request.operations
            ));
        }
        Ok(text)
    }

    async fn change_memory(
        &self,
        scope: &MemoryScope,
        (verb, what): (&str, &str),
        by: &'static str,
    ) -> Result<String, StoreError> {
        if what.is_empty() {
            return Ok(USAGE.to_owned());
        }
        let (memories, owner) = (&self.memory.memories, &scope.owner);
        let now = self.clock.now();
        let (done, act, told) = match verb {
            "approve" => (
                memories.approve(owner, what, now).await,
                MemoryEvent::Approved,
                "It is remembered.",
            ),
            "reject" => (
                memories.reject(owner, what).await,
                MemoryEvent::Rejected,
                "It is not remembered.",
            ),
            _ => {
                let mut removed = memories
                    .remove(owner, MemoryTarget::Memory, what, now)
                    .await;
                if matches!(removed, Err(MemoryError::Bad(_))) {
                    removed = memories.remove(owner, MemoryTarget::User, what, now).await;
                }
                (removed, MemoryEvent::Removed, "It is forgotten.")
            }
        };
        match done {
            Ok(()) => {
                self.note(&AuditEvent::Memory {
                    subject: MemorySubject::Memory,
                    act,
                    owner: self.questions.words(&owner.to_string()),
                    what: self.questions.words(what),
                    by: AuditText::constant(by),
                });
                Ok(told.to_owned())
            }
            Err(MemoryError::Store(error)) => Err(error),
            Err(error) => Ok(format!("Nothing changed: {error}")),
        }
    }

    pub(super) async fn listed_skills(&self) -> Redacted<String> {
        let skills = self.memory.skills.clone();
        let all = tokio::task::spawn_blocking(move || skills.all());
        let all = all.await.unwrap_or_default();
        if all.is_empty() {
            return Redacted::constant("There are no skills here.");
        }
        let mut text = "What I know how to do:".to_owned();
        for skill in all.iter().take(MOST_LISTED) {
            let about: String = skill.description.chars().take(100).collect();
            text.push_str(&format!(
                "\n/{} - {about}",
                hermetic_memory::command_name(&skill.name)
            ));
        }
        if all.len() > MOST_LISTED {
            text.push_str(&format!("\nand {} more", all.len() - MOST_LISTED));
        }
        self.redactor.redact(text)
    }

    /// What the model is told where somebody calls a skill as `/<skill> and what they want`.
    pub(super) async fn called_skill(&self, said: &str) -> Option<String> {
        let said = said.trim();
        let ChatCommand::Unknown(name) = ChatCommand::unknown(said)? else {
            return None;
        };
        let skills = self.memory.skills.clone();
        let found = tokio::task::spawn_blocking(move || -> Option<(SkillSummary, String)> {
            let skill = skills.find_command(&name)?;
            let text = skills.text(&skill)?;
            Some((skill, text))
        });
        let (skill, text) = found.await.ok()??;
        let rest = said
            .split_once(char::is_whitespace)
            .map_or("", |(_, rest)| rest.trim());
        Some(format!(
            "[The person calls the skill {}. It says:]\n\n{text}\n\n[End of the skill. What they said with it:]\n{rest}",
            skill.name
        ))
    }

    /// What need not hold anything up if it cannot be written.
    pub(super) fn note(&self, event: &AuditEvent) {
        if let Err(error) = self.questions.append(event) {
            tracing::error!(%error, "the record could not be written");
        }
    }
}
