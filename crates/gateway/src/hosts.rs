//! Questions about hosts, and the record of connections: the proxy's two seams.

use std::sync::Arc;

use futures::future::BoxFuture;
use hermetic_audit::{Egress, Event, Words};
use hermetic_egress::{
    Answer, Decision, Entry, How, Listing, Question, RuleBook, Scope as Whose, WrittenRule,
};
use hermetic_store::{Scope, Subject};
use hermetic_types::ConversationKey;
use tokio_util::sync::CancellationToken;

use crate::approvals::{About, Approvals, Asked, Desk};
use crate::asking::Asking;
use crate::board::ChatDesk;

/// Asks people about hosts that no rule speaks of, and keeps what they allow for good among the rules.
#[derive(Clone, Debug)]
pub struct HostAsker {
    approvals: Approvals,
    whom: Whom,
    book: RuleBook,
}

#[derive(Clone, Debug)]
enum Whom {
    /// Whoever spoke last in the conversation.
    Speaker(Asking),
    One(Asked, Arc<dyn Desk>),
}

/// Writes what the proxy decided into the audit record.
#[derive(Clone, Debug)]
pub struct HostRecord(Approvals);

impl Asking {
    pub fn hosts(&self, book: RuleBook) -> HostAsker {
        HostAsker {
            approvals: self.approvals.clone(),
            whom: Whom::Speaker(self.clone()),
            book,
        }
    }

    pub fn host_record(&self) -> HostRecord {
        self.approvals.host_record()
    }
}

impl Approvals {
    /// Asks at this desk, in this person's name.
    pub fn hosts(&self, asked: Asked, desk: Arc<dyn Desk>, book: RuleBook) -> HostAsker {
        HostAsker {
            approvals: self.clone(),
            whom: Whom::One(asked, desk),
            book,
        }
    }

    pub fn host_record(&self) -> HostRecord {
        HostRecord(self.clone())
    }
}

impl hermetic_egress::Asker for HostAsker {
    fn ask(&self, question: Question) -> BoxFuture<'static, Answer> {
        let asker = self.clone();
        Box::pin(async move { asker.put(&question).await })
    }

    fn still_holds(&self, question: Question) -> BoxFuture<'static, bool> {
        let asker = self.clone();
        Box::pin(async move { asker.has_granted(&question).await.unwrap_or(false) })
    }
}

impl HostAsker {
    async fn put(&self, question: &Question) -> Answer {
        match self.has_granted(question).await {
            Ok(true) => return Answer::Kept,
            Ok(false) => {}
            Err(NotFoundOut) => return Answer::Deny,
        }
        match self.ask_about_host(question).await {
            Some(Scope::Once) => Answer::Once,
            // How long it holds is kept with the grant, which `/new` revokes.
            Some(Scope::TenMinutes | Scope::Session) => Answer::Kept,
            Some(Scope::Always) => {
                self.keep(question);
                Answer::Once
            }
            None => Answer::Deny,
        }
    }

    /// A small file, changed because a person said so. What cannot be kept is asked about again.
    fn keep(&self, question: &Question) {
        let whose = Whose::of(&question.conversation);
        let rule = WrittenRule::new(Listing::Allow, &question.target.to_string(), Some(whose));
        let kept = rule
            .map_err(|error| error.to_string())
            .and_then(|rule| self.book.add(&rule).map_err(|error| error.to_string()));
        if let Err(error) = kept {
            tracing::error!(%error, host = %question.target, "a rule could not be kept");
        }
    }
}

/// Told to the log already.
struct NotFoundOut;

impl HostAsker {
    async fn has_granted(&self, question: &Question) -> Result<bool, NotFoundOut> {
        let host = question.target.to_string();
        let about = about(&host, &[]);
        let granted = self.approvals.is_granted(&question.conversation, &about);
        granted.await.map_err(|error| {
            tracing::error!(%error, "a grant could not be looked up");
            NotFoundOut
        })
    }

    async fn ask_about_host(&self, question: &Question) -> Option<Scope> {
        let host = question.target.to_string();
        let reasons = ["no rule names this host".to_owned()];
        let (asked, desk) = self.desk(&question.conversation);
        // Nobody stops it but the proxy, by dropping this future, which withdraws the question.
        let stop = CancellationToken::new();
        let about = about(&host, &reasons);
        let put = self.approvals.put(&asked, &about, &*desk, &stop);
        put.await.ok()
    }

    fn desk(&self, conversation: &ConversationKey) -> (Asked, Arc<dyn Desk>) {
        match &self.whom {
            Whom::One(asked, desk) => (asked.clone(), Arc::clone(desk)),
            Whom::Speaker(asking) => {
                let (asked, speaker) = asking.last_speaker(conversation);
                let board = asking.board.clone();
                (asked, Arc::new(ChatDesk { board, speaker }))
            }
        }
    }
}

fn about<'a>(host: &'a str, reasons: &'a [String]) -> About<'a> {
    About {
        subject: Subject::Host,
        what: host,
        fingerprint: host,
        reasons,
    }
}

impl hermetic_egress::Record for HostRecord {
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
