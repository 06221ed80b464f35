//! A question that somebody waits for.

use std::time::Duration;

use hermetic_store::{ApprovalRequest, MessageRow, RequestState, StoreError};
use hermetic_tools::CommandDenied;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::ApprovalRegistry;
use crate::approvals::{WaitStage, cannot_ask};

/// How often the store is looked at: an answer on the command line is given by another process.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Dropped before its end, the question is withdrawn, unless the process leaves.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    approvals: ApprovalRegistry,
    pub(crate) request: ApprovalRequest,
    /// What is being worked on: a question taken up may have come from an earlier message.
    asked: Option<MessageRow>,
    /// By an earlier process.
    pub(crate) was_shown: bool,
    ended: bool,
}

impl PendingRequest {
    /// `None` if somebody in this process waits for it already.
    pub(crate) fn begin(
        approvals: &ApprovalRegistry,
        request: ApprovalRequest,
        asked: Option<MessageRow>,
        was_shown: bool,
    ) -> Option<Self> {
        let mut waited = approvals.waited();
        // Looked at and taken under one lock: two turns that find the same standing question must
        // not both wait for it, because its yes is spent by one.
        if waited.contains_key(&request.id) {
            return None;
        }
        waited.insert(request.id.clone(), WaitStage::Showing);
        approvals.0.metrics.waiting(waited.len());
        drop(waited);
        Some(Self {
            approvals: approvals.clone(),
            request,
            asked,
            was_shown,
            ended: false,
        })
    }

    /// The question as it was settled, which is in the record by then.
    pub(crate) async fn outcome(
        mut self,
        stop: &CancellationToken,
    ) -> Result<ApprovalRequest, CommandDenied> {
        // Only from here on may a stop leave it: whoever shows it has noted where.
        self.approvals.waits(&self.request.id, self.asked);
        let settled = self.until_settled(stop).await;
        let Some(settled) = settled.map_err(|error| cannot_ask(&error))? else {
            return Err(CommandDenied(
                "The gateway stops while this waits for a person's yes. Nothing was run."
                    .to_owned(),
            ));
        };
        self.approvals
            .record_answer(&settled)
            .map_err(|error| cannot_ask(&error))?;
        self.approvals.keep_if_for_good(&settled);
        let recorded = self.approvals.rows().recorded(&settled.id).await;
        recorded.map_err(|error| cannot_ask(&error))?;
        // Only when it is in the record: dropped before that, the question is looked after by
        // `tidy`, which records it then.
        self.ended = true;
        count(&self.approvals, &settled, settled.state);
        Ok(settled)
    }

    pub(crate) async fn withdraw(mut self, why: &str) -> CommandDenied {
        self.ended = true;
        withdraw(&self.approvals, &self.request).await;
        CommandDenied(format!(
            "This needs a person's yes, and {why}. Nothing was run."
        ))
    }

    /// `None` if the process leaves first.
    async fn until_settled(
        &self,
        stop: &CancellationToken,
    ) -> Result<Option<ApprovalRequest>, StoreError> {
        let rows = self.approvals.rows();
        let id = &self.request.id;
        loop {
            // Listened to before looking: an answer in between is heard.
            let answered = self.approvals.0.answered.notified();
            let Some(request) = rows.find(id).await? else {
                let gone = RequestState::Withdrawn;
                return Ok(Some(ApprovalRequest {
                    state: gone,
                    ..self.request.clone()
                }));
            };
            if request.state != RequestState::Pending {
                return Ok(Some(request));
            }
            let left = request.expires_at.since(self.approvals.now());
            if left.is_zero() {
                // Closed and read again, not taken as expired: somebody may have answered in
                // between, and the store knows who was first.
                rows.close(id, RequestState::Expired, self.approvals.now())
                    .await?;
                continue;
            }
            tokio::select! {
                () = answered => {}
                () = sleep(ANSWER_POLL_INTERVAL.min(left)) => {}
                () = stop.cancelled() => {
                    if self.approvals.is_leaving() {
                        // The question stays for the next process. Work on a message is dropped at
                        // once, before it could take this for an answer.
                        if self.asked.is_some() {
                            std::future::pending::<()>().await;
                        }
                        return Ok(None);
                    }
                    // As above: the loop reads what the row says now, which may be an answer that
                    // came with the stop.
                    rows.close(id, RequestState::Withdrawn, self.approvals.now()).await?;
                }
            }
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let (approvals, request) = (self.approvals.clone(), self.request.clone());
        if self.ended || approvals.is_leaving() {
            approvals.let_go(&request.id);
            return;
        }
        // Outside of a runtime the question stays until its time is up.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            approvals.let_go(&request.id);
            return;
        };
        runtime.spawn(async move {
            // Let go last: until the row is closed nobody else may take it up, and `tidy` leaves it
            // alone.
            withdraw(&approvals, &request).await;
            approvals.let_go(&request.id);
        });
    }
}

async fn withdraw(approvals: &ApprovalRegistry, request: &ApprovalRequest) {
    let rows = approvals.rows();
    let closed = rows
        .close(&request.id, RequestState::Withdrawn, approvals.now())
        .await;
    // It is recorded by the next round that tidies up.
    if let Err(error) = closed {
        tracing::warn!(request = %request.id, %error, "a question could not be withdrawn");
    }
    // Somebody may have answered before whoever waited broke off: then that is what it came to.
    let found = rows.find(&request.id).await.ok().flatten();
    let settled = found.map(|found| found.state);
    let settled = settled.filter(|state| *state != RequestState::Pending);
    count(
        approvals,
        request,
        settled.unwrap_or(RequestState::Withdrawn),
    );
}

fn count(approvals: &ApprovalRegistry, request: &ApprovalRequest, state: RequestState) {
    let waited = approvals.now().since(request.asked_at);
    approvals.0.metrics.settled(request, state, waited);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hermetic_audit::AuditLog;
    use hermetic_redact::{Redactor, RedactorSettings};
    use hermetic_store::{
        AnswerOutcome, ApprovalScope, GivenAnswer, NewRequest, Store, StoredSubject,
    };
    use hermetic_types::{ConversationKey, SystemClock};
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::{Answerer, ApprovalMetrics, ApprovalParts};

    #[tokio::test]
    async fn a_yes_is_counted_as_one_also_where_whoever_waited_broke_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = Store::open(&path, SystemClock::shared()).await.unwrap();
        let mut registry = Registry::default();
        let approvals = ApprovalRegistry::new(ApprovalParts {
            store: &store,
            audit: Arc::new(AuditLog::open(&folder.path().join("audit.jsonl")).unwrap()),
            redactor: Redactor::new([], RedactorSettings::default()),
            timeout: Duration::from_secs(60),
            reviewer: None,
            clock: SystemClock::shared(),
            metrics: ApprovalMetrics::registered(&mut registry),
        });
        let now = approvals.now();
        let question = NewRequest {
            subject: StoredSubject::Command,
            conversation: &ConversationKey::new("k"),
            message: None,
            what: "rm -rf build",
            fingerprint: "f",
            reasons: &[],
            longest: ApprovalScope::Once,
            asker: "telegram:7",
            asked_at: now,
            expires_at: now.plus(Duration::from_secs(60)),
        };
        let asked = approvals.rows().open(&question).await.unwrap();
        let id = asked.id.clone();
        let pending = PendingRequest::begin(&approvals, asked, None, false).unwrap();
        let answerer = Answerer {
            by: "the operator",
            via: "test",
        };
        let yes = GivenAnswer::Yes(ApprovalScope::Once);
        let answered = approvals.answer(&id, yes, answerer, None).await;
        assert!(matches!(answered.unwrap(), AnswerOutcome::First(_)));
        drop(pending);
        while approvals.waited().contains_key(&id) {
            tokio::task::yield_now().await;
        }
        let mut counted = String::new();
        encode(&mut counted, &registry).unwrap();
        let one = |outcome: &str| {
            let line = format!("approvals_total{{subject=\"command\",outcome=\"{outcome}\"}} 1");
            counted.contains(&line)
        };
        assert!(one("approved") && !one("withdrawn"), "{counted}");
    }
}
