//! What goes into the audit record.

use hermetic_audit::{AppendError, AuditEvent, AuditText, CommandDecision};
use hermetic_store::{ApprovalRequest, RequestState, StoredSubject};
use hermetic_tools::{DecidedCommand, JudgedAs, shown};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::{ApprovalRegistry, Requester};

impl ApprovalRegistry {
    pub(crate) fn record_question(&self, request: &ApprovalRequest) -> Result<(), AppendError> {
        self.append(&AuditEvent::Asked {
            request: self.words(request.id.as_str()),
            conversation: request.conversation.clone(),
            subject: subject(request.subject),
            what: self.words(&request.what),
            reasons: self.words(&request.reasons.join("; ")),
            by: self.words(&request.asker),
        })
    }

    pub(crate) fn record_answer(&self, request: &ApprovalRequest) -> Result<(), AppendError> {
        let answer = match request.state {
            RequestState::Approved => hermetic_audit::ApprovalAnswer::Approved,
            RequestState::Denied => hermetic_audit::ApprovalAnswer::Denied,
            RequestState::Expired | RequestState::Pending => {
                hermetic_audit::ApprovalAnswer::Expired
            }
            RequestState::Withdrawn => hermetic_audit::ApprovalAnswer::Withdrawn,
        };
        let text = |text: &Option<String>| self.words(text.as_deref().unwrap_or_default());
        self.append(&AuditEvent::Answered {
            request: self.words(request.id.as_str()),
            conversation: request.conversation.clone(),
            subject: subject(request.subject),
            what: self.words(&request.what),
            answer,
            scope: request.scope.map_or(AuditText::constant(""), |scope| {
                AuditText::constant(scope.name())
            }),
            by: text(&request.answered_by),
            via: text(&request.via),
            reason: text(&request.reason),
        })
    }

    pub(crate) fn record_command(
        &self,
        requester: &Requester,
        decided: DecidedCommand<'_>,
    ) -> Result<(), AppendError> {
        let decision = match decided.as_what {
            JudgedAs::Run(_) => CommandDecision::Run,
            JudgedAs::Refused(_) => CommandDecision::Refuse,
            JudgedAs::Denied(_) => CommandDecision::Deny,
        };
        self.append(&AuditEvent::Command {
            conversation: requester.conversation.clone(),
            backend: decided.backend,
            command: self.words(&shown::command(decided.command)),
            decision,
            grounds: self.words(&decided.as_what.grounds()),
        })
    }

    /// Writes one event into the record: a small write, short enough for any task. Another process may
    /// hold the file for seconds, and then this thread's other tasks go on elsewhere.
    pub fn append(&self, event: &AuditEvent) -> Result<(), AppendError> {
        let (audit, at) = (&self.0.audit, self.now());
        // Tried without waiting first, because to leave the runtime's thread moves its other tasks,
        // and that is only worth it where another process holds the file.
        let written = match audit.try_append(event, at) {
            Some(written) => written,
            None => beside_the_runtime(|| audit.append(event, at)),
        };
        written.map(drop)
    }

    /// Why the disk may not have what was recorded.
    pub fn record_trouble(&self) -> Option<String> {
        self.0.audit.disk_trouble()
    }

    /// Text as the record takes it: redacted.
    pub fn words(&self, text: &str) -> AuditText {
        AuditText::from(self.0.redactor.redact(text))
    }
}

/// Lets a worker of the runtime wait without keeping the tasks that are queued behind it.
fn beside_the_runtime<T>(wait: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        // One thread is all there is: a command line, which has nothing else to do.
        _ => wait(),
    }
}

fn subject(subject: StoredSubject) -> hermetic_audit::ApprovalSubject {
    match subject {
        StoredSubject::Command => hermetic_audit::ApprovalSubject::Command,
        StoredSubject::Host => hermetic_audit::ApprovalSubject::Host,
        StoredSubject::Agent => hermetic_audit::ApprovalSubject::Agent,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;
    use std::time::Duration;

    use hermetic_audit::AuditLog;
    use hermetic_redact::Redactor;
    use hermetic_store::Store;
    use hermetic_types::SystemClock;
    use tokio::sync::oneshot;

    use super::*;
    use crate::ApprovalParts;

    /// The one worker that there is waits for the file, and the next task is what lets go of it.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_record_that_another_process_holds_stops_no_other_task() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let store = Store::open(&folder.path().join("state.db"), SystemClock::shared())
            .await
            .unwrap();
        let approvals = ApprovalRegistry::new(ApprovalParts {
            store: &store,
            audit: Arc::new(AuditLog::open(&path).unwrap()),
            redactor: Redactor::new([], hermetic_redact::RedactorSettings::default()),
            timeout: Duration::from_secs(60),
            reviewer: None,
            clock: SystemClock::shared(),
            metrics: crate::ApprovalMetrics::default(),
        });
        let held = File::open(&path).unwrap();
        held.lock().unwrap();
        let (waits, waiting) = oneshot::channel();
        let writing = tokio::spawn(async move {
            let _ = waits.send(());
            approvals.append(&AuditEvent::Sealed {
                key: "a".to_owned(),
            })
        });
        let letting_go = tokio::spawn(async move {
            waiting.await.unwrap();
            held.unlock()
        });
        letting_go.await.unwrap().unwrap();
        writing.await.unwrap().unwrap();
    }
}
