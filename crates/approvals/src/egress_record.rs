//! What the proxy decided, in the audit record.

use hermetic_audit::{Egress, Event, Words};
use hermetic_egress::{Decision, Entry, How};

use crate::Approvals;

/// Writes what the proxy decided into the audit record.
#[derive(Clone, Debug)]
pub struct EgressRecord(Approvals);

impl Approvals {
    pub fn egress_record(&self) -> EgressRecord {
        EgressRecord(self.clone())
    }
}

impl hermetic_egress::Record for EgressRecord {
    fn write(&self, entry: &Entry) {
        let words = |text: &str| self.0.words(text);
        let verdict = match &entry.verdict {
            Decision::Opened => "opened".to_owned(),
            Decision::Closed { fault: None } => "closed".to_owned(),
            Decision::Closed { fault: Some(fault) } => format!("closed: {fault}"),
            Decision::Refused { reason } => format!("refused: {reason}"),
        };
        let recorded = self.0.append(&Event::Egress(Egress {
            conversation: entry.conversation.clone(),
            host: words(&entry.host),
            port: entry.port,
            address: entry.address,
            how: Words::constant(match entry.how {
                How::Connect => "connect",
                How::Http => "http",
                How::Socks => "socks",
                How::Credential => "credential",
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
