//! What goes into the audit record.

use hermetic_audit::{AppendError, Decision, Event, Words};
use hermetic_store::{Request, State, Subject};
use hermetic_tools::{Decided, Judged, shown};

use crate::{Approvals, Requester};

impl Approvals {
    pub(crate) fn record_question(&self, request: &Request) -> Result<(), AppendError> {
        self.append(&Event::Asked {
            request: self.words(request.id.as_str()),
            conversation: request.conversation.clone(),
            subject: subject(request.subject),
            what: self.words(&request.what),
            reasons: self.words(&request.reasons.join("; ")),
            by: self.words(&request.asker),
        })
    }

    pub(crate) fn record_answer(&self, request: &Request) -> Result<(), AppendError> {
        let answer = match request.state {
            State::Approved => hermetic_audit::Answer::Approved,
            State::Denied => hermetic_audit::Answer::Denied,
            State::Expired | State::Pending => hermetic_audit::Answer::Expired,
            State::Withdrawn => hermetic_audit::Answer::Withdrawn,
        };
        let text = |text: &Option<String>| self.words(text.as_deref().unwrap_or_default());
        self.append(&Event::Answered {
            request: self.words(request.id.as_str()),
            conversation: request.conversation.clone(),
            subject: subject(request.subject),
            what: self.words(&request.what),
            answer,
            scope: request
                .scope
                .map_or(Words::constant(""), |scope| Words::constant(scope.name())),
            by: text(&request.answered_by),
            via: text(&request.via),
            reason: text(&request.reason),
        })
    }

    pub(crate) fn record_command(
        &self,
        requester: &Requester,
        decided: Decided<'_>,
    ) -> Result<(), AppendError> {
        let decision = match decided.as_what {
            Judged::Run(_) => Decision::Run,
            Judged::Refused(_) => Decision::Refuse,
            Judged::Denied(_) => Decision::Deny,
        };
        self.append(&Event::Command {
            conversation: requester.conversation.clone(),
            backend: decided.backend,
            command: self.words(&shown::command(decided.command)),
            decision,
            grounds: self.words(&decided.as_what.grounds()),
        })
    }

    /// Writes one event into the record. A small write under a lock that is held for as long as one: short enough for any task.
    pub fn append(&self, event: &Event) -> Result<(), AppendError> {
        self.0.audit.append(event, self.now()).map(drop)
    }

    /// Text as the record takes it: redacted.
    pub fn words(&self, text: &str) -> Words {
        Words::from(self.0.redactor.redact(text))
    }
}

fn subject(subject: Subject) -> hermetic_audit::Subject {
    match subject {
        Subject::Command => hermetic_audit::Subject::Command,
        Subject::Host => hermetic_audit::Subject::Host,
    }
}
