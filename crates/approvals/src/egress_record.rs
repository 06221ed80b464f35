//! What the proxy decided, in the audit record.

use hermetic_audit::{AuditEvent, AuditText, EgressEvent};
use hermetic_egress::{EgressDecision, EgressEntry, EgressMethod};

use crate::ApprovalRegistry;

/// Writes what the proxy decided into the audit record.
#[derive(Clone, Debug)]
pub struct EgressRecord(ApprovalRegistry);

impl ApprovalRegistry {
    pub fn egress_record(&self) -> EgressRecord {
        EgressRecord(self.clone())
    }
}

impl hermetic_egress::EgressRecorder for EgressRecord {
    fn write(&self, entry: &EgressEntry) {
        let words = |text: &str| self.0.words(text);
        let verdict = match &entry.verdict {
            EgressDecision::Opened => "opened".to_owned(),
            EgressDecision::Closed { fault: None } => "closed".to_owned(),
            EgressDecision::Closed { fault: Some(fault) } => format!("closed: {fault}"),
            EgressDecision::Refused { reason } => format!("refused: {reason}"),
        };
        let recorded = self.0.append(&AuditEvent::Egress(EgressEvent {
            conversation: entry.conversation.clone(),
            host: words(&entry.host),
            port: entry.port,
            address: entry.address,
            how: AuditText::constant(match entry.how {
                EgressMethod::Connect => "connect",
                EgressMethod::Http => "http",
                EgressMethod::Socks => "socks",
                EgressMethod::Credential => "credential",
            }),
            rule: words(&entry.rule),
            verdict: words(&verdict),
            bytes_up: entry.bytes_up,
            bytes_down: entry.bytes_down,
            milliseconds: u64::try_from(entry.duration.as_millis()).unwrap_or(u64::MAX),
        }));
        if let Err(error) = recorded {
            tracing::error!(%error, "the record could not be written");
        }
    }
}
