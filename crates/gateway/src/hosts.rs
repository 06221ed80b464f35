//! Questions about hosts, and the record of connections: the proxy's two seams.

use std::sync::Arc;

use futures::future::BoxFuture;
use hermetic_audit::{Egress, Event, Words};
use hermetic_egress::{Answer, Decision, Entry, How, Question};
use hermetic_store::{Scope, Subject};
use tokio_util::sync::CancellationToken;

use crate::approvals::About;
use crate::asking::Asking;
use crate::board::ChatDesk;

/// Asks people about hosts that no rule speaks of.
#[derive(Clone, Debug)]
pub struct HostAsker(Asking);

/// Writes what the proxy decided into the audit record.
#[derive(Clone, Debug)]
pub struct HostRecord(Asking);

impl Asking {
    pub fn hosts(&self) -> Arc<HostAsker> {
        Arc::new(HostAsker(self.clone()))
    }

    pub fn host_record(&self) -> Arc<HostRecord> {
        Arc::new(HostRecord(self.clone()))
    }
}

impl hermetic_egress::Asker for HostAsker {
    fn ask(&self, question: Question) -> BoxFuture<'static, Answer> {
        let asking = self.0.clone();
        Box::pin(async move { asking.ask_about_host(&question).await })
    }
}

impl Asking {
    async fn ask_about_host(&self, question: &Question) -> Answer {
        let host = question.target.to_string();
        let reasons = ["no rule names this host".to_owned()];
        let about = About {
            subject: Subject::Host,
            what: &host,
            fingerprint: &host,
            reasons: &reasons,
        };
        match self
            .approvals
            .is_granted(&question.conversation, &about)
            .await
        {
            // Asked again for the next connection, because the grant may end by then.
            Ok(true) => return Answer::Once,
            Ok(false) => {}
            Err(error) => {
                tracing::error!(%error, "a grant could not be looked up");
                return Answer::Deny;
            }
        }
        let (asked, speaker) = self.last_speaker(&question.conversation);
        let desk = ChatDesk {
            board: self.board.clone(),
            speaker,
        };
        // Nobody stops it but the proxy, by dropping this future, which withdraws the question.
        let stop = CancellationToken::new();
        match self.approvals.put(&asked, &about, &desk, &stop).await {
            // How long it holds is kept with the grant, which `/new` revokes: the next connection asks.
            Ok(Scope::Once | Scope::TenMinutes | Scope::Session) => Answer::Once,
            Ok(Scope::Always) => Answer::Always,
            Err(_) => Answer::Deny,
        }
    }
}

impl hermetic_egress::Record for HostRecord {
    fn write(&self, entry: &Entry) {
        let words = |text: &str| self.0.approvals.words(text);
        let verdict = match &entry.verdict {
            Decision::Opened => "opened".to_owned(),
            Decision::Closed { fault: None } => "closed".to_owned(),
            Decision::Closed { fault: Some(fault) } => format!("closed: {fault}"),
            Decision::Refused { reason } => format!("refused: {reason}"),
        };
        self.0.note(&Event::Egress(Egress {
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
    }
}
