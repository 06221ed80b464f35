//! Questions to the person at the client, by MCP's elicitation, and the record of what was decided.
//!
//! Whoever starts this server, or holds its token, has the rights it runs with already; so a client
//! that shows a question to its user may carry the answer back. A yes is for this one command. It has
//! to be spelled out: a client that accepts whatever it is sent has not filled in the form.

use std::fmt;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use hermetic_audit::{AuditEvent, AuditLog, AuditText, CommandDecision};
use hermetic_policy::{AnswerScope, ApprovalQuestion, Cleared, CommandApproval};
use hermetic_redact::Redactor;
use hermetic_tools::shown::{command, legible};
use hermetic_tools::{CommandApprover, CommandDenied, DecidedCommand, JudgedAs, NoOneToAsk};
use hermetic_types::{Clock, ConversationKey};
use rmcp::RoleServer;
use rmcp::model::{
    BooleanSchema, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
};
use rmcp::service::{ElicitationMode, Peer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// What has to be true in an answer.
const ALLOW: &str = "allow";
/// More of a command than this is not read by anybody.
const SHOWN_CHARS: usize = 4000;

pub(crate) struct ClientApprovals<'a> {
    pub(crate) peer: &'a Peer<RoleServer>,
    pub(crate) redactor: &'a Redactor,
    pub(crate) patience: Duration,
    pub(crate) client: &'a ConversationKey,
    pub(crate) audit: &'a AuditLog,
    pub(crate) clock: &'a dyn Clock,
}

impl CommandApprover for ClientApprovals<'_> {
    fn ask<'a>(
        &'a self,
        question: ApprovalQuestion,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Cleared, CommandDenied>> {
        let modes = self.peer.supported_elicitation_modes();
        if !modes.contains(&ElicitationMode::Form) {
            return NoOneToAsk.ask(question, stop);
        }
        self.put(question, stop).boxed()
    }

    fn decided(&self, decided: DecidedCommand<'_>) -> Result<(), CommandDenied> {
        let words = |text: String| AuditText::from(self.redactor.redact(text));
        let event = AuditEvent::Command {
            conversation: self.client.clone(),
            backend: decided.backend,
            command: words(command(decided.command)),
            decision: match decided.as_what {
                JudgedAs::Run(_) => CommandDecision::Run,
                JudgedAs::Refused(_) => CommandDecision::Refuse,
                JudgedAs::Denied(_) => CommandDecision::Deny,
            },
            grounds: words(decided.as_what.grounds()),
        };
        let appended = self.audit.append(&event, self.clock.now());
        appended.map(drop).map_err(|error| {
            tracing::error!(%error, "what was decided could not be recorded");
            CommandDenied(
                "What is run here is written down first, and that failed. Nothing was run."
                    .to_owned(),
            )
        })
    }
}

impl ClientApprovals<'_> {
    async fn put(
        &self,
        question: ApprovalQuestion,
        stop: &CancellationToken,
    ) -> Result<Cleared, CommandDenied> {
        let asked = self
            .peer
            .create_elicitation_with_timeout(self.form(&question)?, Some(self.patience));
        let answered = tokio::select! {
            answered = asked => answered,
            () = stop.cancelled() => return Err(no("was not answered before the call was cancelled")),
        };
        match answered {
            Ok(answer) if allows(&answer) => {
                let yes = CommandApproval::yes(question.fingerprint().clone(), AnswerScope::Once);
                question
                    .answered(&yes)
                    .map_err(|mismatch| CommandDenied(mismatch.to_string()))
            }
            Ok(_) => Err(no("was answered with no")),
            Err(error) => {
                tracing::warn!(%error, "a question to the client failed");
                Err(no("was not answered in time"))
            }
        }
    }

    fn form(&self, question: &ApprovalQuestion) -> Result<ElicitRequestParams, CommandDenied> {
        let allow = BooleanSchema::new()
            .title("Let it run")
            .description("Once, exactly as it is written above")
            .with_default(false);
        let schema = ElicitationSchema::builder()
            .required_bool_property(ALLOW, |_| allow)
            .build();
        let requested_schema = schema.map_err(|error| CommandDenied(error.to_owned()))?;
        let text = format!(
            "A tool wants to do what no sandbox holds in:\n\n{}\n\nWhy it is asked about: {}.",
            shown(question),
            question.reasons().join("; ")
        );
        Ok(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.redactor.redact(legible(&text)).into_inner(),
            requested_schema,
        })
    }
}

fn allows(answer: &ElicitResult) -> bool {
    let content = answer.content.as_ref();
    // Both: some clients accept a form without anybody having seen it.
    answer.action == ElicitationAction::Accept
        && content.and_then(|content| content.get(ALLOW)) == Some(&Value::Bool(true))
}

fn no(what: &str) -> CommandDenied {
    CommandDenied(format!(
        "This needs a person's yes; the question at the client {what}, so it is refused. Nothing was \
         run."
    ))
}

fn shown(question: &ApprovalQuestion) -> String {
    let whole = command(question.command());
    match whole.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}\n[… the rest is not shown …]", &whole[..end]),
        None => whole,
    }
}

impl fmt::Debug for ClientApprovals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientApprovals")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_yes_that_is_spelled_out_is_one() {
        let answer = |action, content: Value| {
            let mut answer = ElicitResult::new(action);
            answer.content = Some(content);
            allows(&answer)
        };
        assert!(answer(ElicitationAction::Accept, json!({"allow": true})));
        for content in [
            json!({}),
            json!({"allow": false}),
            json!({"allow": "true"}),
            json!(true),
        ] {
            assert!(
                !answer(ElicitationAction::Accept, content.clone()),
                "{content}"
            );
        }
        assert!(!answer(ElicitationAction::Decline, json!({"allow": true})));
        assert!(!answer(ElicitationAction::Cancel, json!({"allow": true})));
        assert!(!allows(&ElicitResult::new(ElicitationAction::Accept)));
    }
}
