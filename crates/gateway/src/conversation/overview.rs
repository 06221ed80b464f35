//! What a person may look at: `/files`, `/sandbox`, `/egress`, `/model`.

use hermetic_agent::Agent;
use hermetic_egress::RuleMode;
use hermetic_redact::Redacted;
use hermetic_store::{AgentSettingKind, LedgerState, StoreError};
use hermetic_types::{Boundary, ConversationKey};
use hermetic_warden::protocol::{FileKind, FolderEntry, PathAt};

use super::CommandError;
use super::sandbox_tools::holder_of;
use crate::Gateway;
use crate::message::AcceptedMessage;

/// Names of files that are shown at once.
const MOST_NAMES: usize = 100;
/// Hosts and rules that are shown at once.
const MOST_RULES: usize = 40;

impl Gateway {
    /// What lies in a folder of the workspace.
    pub(crate) async fn files(&self, message: &AcceptedMessage, path: &str) -> Redacted<String> {
        let place = self.toolsets.of(message.said().platform());
        let path = if path.is_empty() { "." } else { path };
        // This is only for good words: the warden opens nothing outside of the workspace, whatever
        // it is asked for.
        if path.starts_with('/') || path.contains('\0') || path.split('/').any(|name| name == "..")
        {
            return Redacted::constant(
                "Write a folder below the workspace, as in /files results; /sh ls shows others.",
            );
        }
        let conversation = message.conversation();
        let lease = self
            .sandboxes
            .lease_for(conversation, &holder_of(message))
            .await;
        let lease = match lease {
            Ok(lease) => lease,
            Err(error) => {
                tracing::warn!(%conversation, %error, "no sandbox to look into");
                return Redacted::constant("The sandbox could not be started, so I cannot look.");
            }
        };
        let at = PathAt::beneath(place.facts.workspace.as_str(), path);
        let text = match lease.warden().list_dir(at).await {
            Ok(entries) => listed(path, entries),
            Err(error) => {
                tracing::debug!(%conversation, %error, "a folder was not listed");
                format!("{path} is no folder of the workspace, or cannot be read.")
            }
        };
        self.redactor.redact(text)
    }

    /// Where this conversation's commands run.
    pub(crate) async fn sandbox(
        &self,
        message: &AcceptedMessage,
    ) -> Result<Redacted<String>, StoreError> {
        let conversation = message.conversation();
        let facts = &self.toolsets.of(message.said().platform()).facts;
        let seal = match facts.boundary {
            Boundary::Sealed => "sealed",
            Boundary::Judged => "not sealed: commands are judged",
        };
        let ledger = self.store.ledger();
        let state = match ledger.of(conversation).await? {
            None => "none yet; the first command makes one".to_owned(),
            Some(entry) => {
                let state = match entry.state {
                    LedgerState::Creating => "being made",
                    LedgerState::Running => "running",
                    LedgerState::Stopping => "being stopped",
                    LedgerState::Stopped => {
                        "stopped; its files are kept, and the next command starts it"
                    }
                    LedgerState::Destroying => "being destroyed",
                };
                format!("{} ({state})", entry.id)
            }
        };
        let aside = ledger.set_aside_of(conversation).await?.len();
        let mut text = format!(
            "backend: {} ({seal})\nsandbox: {state}\nworkspace: {}\nnetwork: {}",
            facts.backend,
            facts.workspace,
            self.reach(conversation).await.0
        );
        if aside > 0 {
            text.push_str(&format!("\nkept from before on another backend: {aside}"));
        }
        Ok(self.redactor.redact(text))
    }

    /// What this conversation's sandbox can reach.
    pub(crate) async fn egress(&self, message: &AcceptedMessage) -> Redacted<String> {
        let (summary, rules) = self.reach(message.conversation()).await;
        let mut text = format!("network: {summary}");
        for rule in rules.iter().take(MOST_RULES) {
            text.push_str(&format!("\n{rule}"));
        }
        if rules.len() > MOST_RULES {
            text.push_str(&format!("\nand {} more", rules.len() - MOST_RULES));
        }
        self.redactor.redact(text)
    }

    async fn reach(&self, conversation: &ConversationKey) -> (&'static str, Vec<String>) {
        match self.sandboxes.reach_of(conversation).await {
            None => ("closed: nothing can be reached", Vec::new()),
            Some(reach) => {
                let summary = match (reach.mode, reach.asks) {
                    (RuleMode::Closed, _) => "closed: nothing can be reached",
                    (RuleMode::Open, _) => "open: every public host can be reached",
                    (RuleMode::Allowlist, true) => {
                        "what these rules allow can be reached; somebody is asked about the rest"
                    }
                    (RuleMode::Allowlist, false) => {
                        "what these rules allow can be reached, nothing else"
                    }
                };
                (summary, reach.allowed)
            }
        }
    }

    /// Whoever takes this conversation's turns: the usual one, or the one that was chosen for it.
    pub(crate) async fn agent_of(
        &self,
        conversation: &ConversationKey,
    ) -> Result<&Agent, StoreError> {
        if self.models.is_empty() {
            return Ok(&self.agent);
        }
        let chosen = self.store.conversation_models().of(conversation).await?;
        // One that the configuration does not name any more is not asked.
        let chosen = chosen.and_then(|name| self.models.get(&name));
        Ok(chosen.unwrap_or(&self.agent))
    }

    /// Shows which model answers here, or has another answer.
    pub(crate) async fn model(
        &self,
        message: &AcceptedMessage,
        wanted: &str,
    ) -> Result<Redacted<String>, CommandError> {
        let conversation = message.conversation();
        if let Some(agent) = self.agent_name(message).await? {
            let chosen = (AgentSettingKind::Model, wanted);
            return self.agent_setting(message, &agent, chosen).await;
        }
        let rows = self.store.conversation_models();
        if wanted.is_empty() {
            let here = self.agent_of(conversation).await?.model_name();
            let mut text = format!("here: {here}\n{}", self.settings.models);
            for name in self.models.keys().filter(|name| *name != here) {
                text.push_str(&format!("\n/model {name} - let it answer here"));
            }
            return Ok(self.redactor.redact(text));
        }
        // It may be dearer, and whoever pays chose the first.
        if !message.may_answer() {
            return Ok(Redacted::constant(
                "Only somebody who may approve chooses the model. /model alone says which answers here.",
            ));
        }
        let usual = self.agent.model_name();
        if wanted == usual || wanted == "default" {
            rows.forget(conversation).await?;
            return Ok(self
                .redactor
                .redact(format!("From now on {usual} answers here.")));
        }
        if !self.models.contains_key(wanted) {
            let known: Vec<_> = self.models.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            return Ok(self.redactor.redact(format!(
                "{wanted} is not among the models of this gateway. Besides {usual}: {known}. The operator \
                 names others under fallback_model in config.yaml."
            )));
        }
        rows.choose(conversation, wanted).await?;
        Ok(self.redactor.redact(format!(
            "From now on {wanted} answers here; /model default brings {usual} back."
        )))
    }
}

fn listed(path: &str, mut entries: Vec<FolderEntry>) -> String {
    if entries.is_empty() {
        return format!("{path} is empty.");
    }
    entries.sort_by(|one, two| one.name.0.cmp(&two.name.0));
    let count = entries.len();
    let names = entries.iter().take(MOST_NAMES).map(|entry| {
        let end = match entry.kind {
            FileKind::Directory => "/",
            FileKind::Symlink => "@",
            FileKind::File | FileKind::Other => "",
        };
        // A name may hold anything, also what looks like a line of ours.
        let name = String::from_utf8_lossy(&entry.name.0);
        let name: String = name
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
        format!("{name}{end}")
    });
    let names = names.collect::<Vec<_>>().join("\n");
    let more = match count > MOST_NAMES {
        true => format!("\n[{} more]", count - MOST_NAMES),
        false => String::new(),
    };
    format!("{path}:\n{names}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_one_each_and_not_too_many() {
        let entry = |name: &[u8], kind| FolderEntry {
            name: name.to_vec().into(),
            kind,
        };
        let shown = listed(
            ".",
            vec![
                entry(b"src", FileKind::Directory),
                entry(b"a\nfalse", FileKind::File),
                entry(b"link", FileKind::Symlink),
            ],
        );
        assert_eq!(shown, ".:\na?false\nlink@\nsrc/");
        assert_eq!(listed("x", vec![]), "x is empty.");
        let many = (0..150).map(|n| entry(format!("{n:03}").as_bytes(), FileKind::File));
        let shown = listed(".", many.collect());
        assert!(shown.ends_with("099\n[50 more]"), "{shown}");
    }
}
