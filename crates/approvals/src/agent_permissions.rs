//! What somebody else's agent asks, put to people like any other question.
//!
//! The words are the agent's own, and so the question says whose they are. A yes tells the agent to go on
//! and opens nothing: what it can do is what its sandbox lets it.

use hermetic_acp::{PermissionAnswer, PermissionKind, PermissionRequest, ReportedTool};
use hermetic_audit::{AuditEvent, AuditText};
use hermetic_store::{ApprovalScope, StoredSubject};
use hermetic_tools::shown::legible;
use tokio_util::sync::CancellationToken;

use crate::CommandApprovals;
use crate::approvals::RequestSubject;

/// Of what an agent calls a choice.
const MOST_SHOWN: usize = 80;

const COURTESY: &str =
    "the agent asks by itself, in its own words; its sandbox holds it either way";

impl CommandApprovals {
    /// Puts an agent's question to a person; silence, doubt and failure are a no.
    pub async fn ask_for_agent(
        &self,
        request: &PermissionRequest,
        stop: &CancellationToken,
    ) -> PermissionAnswer {
        let redactor = &self.approvals.0.redactor;
        let what = match &request.detail {
            Some(detail) => format!("{}: {}\n{detail}", request.agent, request.title),
            None => format!("{}: {}", request.agent, request.title),
        };
        let what = redactor.redact(legible(&what));
        let fingerprint = request.fingerprint();
        let mut reasons = vec![COURTESY.to_owned()];
        let own_words = own_words(request);
        if !own_words.is_empty() {
            reasons.push(redactor.redact(legible(&own_words)).into_inner());
        }
        let about = RequestSubject {
            subject: StoredSubject::Agent,
            what: what.as_str(),
            fingerprint: &fingerprint,
            reasons: &reasons,
            longest: match request.offers_always() {
                true => ApprovalScope::Session,
                false => ApprovalScope::Once,
            },
        };
        match self.is_granted(&about).await {
            // Never "always", as an agent understands it: that may be wider than what was asked, and outlives
            // what we remember. The same question is answered by us again.
            Ok(true) => return PermissionAnswer::AllowOnce,
            Ok(false) => {}
            Err(_) => return PermissionAnswer::Deny,
        }
        let _waits = self.waits().begin();
        let put = self
            .approvals
            .put(&self.requester, &about, &*self.prompt, stop);
        match put.await {
            Ok(_) => PermissionAnswer::AllowOnce,
            Err(_) => PermissionAnswer::Deny,
        }
    }

    /// Writes down what an agent says that it does. That it cannot be written holds nothing up: nobody
    /// could keep the agent from doing it.
    pub fn note_agent_tool(&self, tool: &ReportedTool) {
        let words = |text: &str| self.approvals.words(&legible(text));
        let what = match &tool.detail {
            Some(detail) => format!("{}: {detail}", tool.title),
            None => tool.title.clone(),
        };
        let state = match (tool.is_at_work, tool.has_failed) {
            (true, _) => "begun",
            (false, false) => "completed",
            (false, true) => "failed",
        };
        let noted = self.approvals.append(&AuditEvent::AgentTool {
            conversation: self.requester.conversation.clone(),
            agent: words(&tool.agent),
            tool: words(&tool.kind),
            what: words(&what),
            state: AuditText::constant(state),
        });
        if let Err(error) = noted {
            tracing::error!(%error, "what an agent does could not be recorded");
        }
    }
}

/// What the agent calls what it would be told: its names may say more than our buttons do, or something else.
fn own_words(request: &PermissionRequest) -> String {
    let choices = [
        ("a yes", PermissionKind::AllowOnce),
        ("a no", PermissionKind::RejectOnce),
    ];
    let named = choices.into_iter().filter_map(|(ours, kind)| {
        let name: String = request.name_of(kind)?.chars().take(MOST_SHOWN).collect();
        Some(format!("{ours} is its “{name}”"))
    });
    named.collect::<Vec<_>>().join(", ")
}
