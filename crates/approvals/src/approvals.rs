//! The questions of one home: opened, answered, used up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hermetic_audit::AuditLog;
use hermetic_egress::RuleBook;
use hermetic_redact::Redactor;
use hermetic_store::{
    AnswerOutcome, ApprovalRequest, ApprovalScope, GivenAnswer, MessageRow, NewRequest,
    RequestReply, RequestState, RowOwner, Store, StoreError, StoredSubject,
};
use hermetic_tools::CommandDenied;
use hermetic_types::{ConversationKey, RequestId, SharedClock, Timestamp};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::pending_request::PendingRequest;
use crate::{ApprovalMetrics, ApprovalPrompt, ModelReviewer, Requester, request_text};

/// The questions of one home. Clones share everything.
#[derive(Clone, Debug)]
pub struct ApprovalRegistry(pub(crate) Arc<ApprovalState>);

/// What approvals are made of.
#[derive(Debug)]
pub struct ApprovalParts<'a> {
    pub store: &'a Store,
    pub audit: Arc<AuditLog>,
    pub redactor: Redactor,
    /// Silence for this long is no.
    pub timeout: Duration,
    /// Looks at a command before a person does (`approvals.mode: smart`).
    pub reviewer: Option<ModelReviewer>,
    pub clock: SharedClock,
    pub metrics: ApprovalMetrics,
}

#[derive(Debug)]
pub(crate) struct ApprovalState {
    rows: hermetic_store::ApprovalRows,
    pub(crate) audit: Arc<AuditLog>,
    pub(crate) redactor: Redactor,
    timeout: Duration,
    pub(crate) reviewer: Option<ModelReviewer>,
    clock: SharedClock,
    pub(crate) metrics: ApprovalMetrics,
    /// Where hosts are written that are allowed for good.
    pub(crate) rules: OnceLock<RuleBook>,
    /// Questions that somebody in this process waits for.
    waited: Mutex<HashMap<RequestId, WaitStage>>,
    pub(crate) begun: Notify,
    pub(crate) answered: Notify,
    /// The process ends; what is asked stays asked.
    pub(crate) leaving: CancellationToken,
}

/// How far a question has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitStage {
    /// Where it is shown is not noted yet.
    Showing,
    /// Only the answer is missing; the message that led to it.
    Answer(Option<MessageRow>),
}

/// Who answers, and how.
#[derive(Clone, Copy, Debug)]
pub struct Answerer<'a> {
    pub by: &'a str,
    pub via: &'static str,
}

/// What a question is about.
#[derive(Clone, Debug)]
pub(crate) struct RequestSubject<'a> {
    pub(crate) subject: StoredSubject,
    /// Redacted, and legible.
    pub(crate) what: &'a str,
    pub(crate) fingerprint: &'a str,
    pub(crate) reasons: &'a [String],
    /// How long a yes can hold at most.
    pub(crate) longest: ApprovalScope,
}

/// Showing a question takes no longer than this; it can be answered elsewhere meanwhile.
const LONGEST_SHOWING: Duration = Duration::from_secs(10);

/// Questions of one conversation at a time: what runs in it cannot flood the people it depends on.
const MOST_AT_ONCE: u32 = 8;

impl ApprovalRegistry {
    pub fn new(parts: ApprovalParts<'_>) -> Self {
        Self(Arc::new(ApprovalState {
            rows: parts.store.approvals(),
            audit: parts.audit,
            redactor: parts.redactor,
            timeout: parts.timeout,
            reviewer: parts.reviewer,
            clock: parts.clock,
            metrics: parts.metrics,
            rules: OnceLock::new(),
            waited: Mutex::default(),
            begun: Notify::new(),
            answered: Notify::new(),
            leaving: CancellationToken::new(),
        }))
    }

    /// The record that all of it goes into.
    pub fn audit(&self) -> &Arc<AuditLog> {
        &self.0.audit
    }

    pub fn timeout(&self) -> Duration {
        self.0.timeout
    }

    /// Those that can be answered now, whichever gateway asked.
    pub async fn pending(&self) -> Result<Vec<ApprovalRequest>, StoreError> {
        self.0.rows.pending(RowOwner::AnyGateway, self.now()).await
    }

    /// Somebody who may answer does. Whether they may is the caller's to know.
    pub async fn answer(
        &self,
        id: &RequestId,
        given: GivenAnswer,
        answerer: Answerer<'_>,
        reason: Option<&str>,
    ) -> Result<AnswerOutcome, StoreError> {
        let reason = reason.map(|text| self.0.redactor.redact(text).into_inner());
        let reply = RequestReply {
            given,
            by: answerer.by,
            via: answerer.via,
            reason: reason.as_deref(),
        };
        let outcome = self.0.rows.answer(id, reply, self.now()).await?;
        // After the row, which is what counts: whoever is woken reads it, and whoever misses this
        // sees it at the next look.
        self.0.answered.notify_waiters();
        Ok(outcome)
    }

    /// The conversation starts anew.
    pub async fn revoke(&self, conversation: &ConversationKey) -> Result<u64, StoreError> {
        self.0.rows.revoke(conversation).await
    }

    /// Closes what nobody waits for any more, and records what a crash kept out of the record. Gives
    /// back what was settled by it.
    pub async fn tidy(&self) -> Result<Vec<ApprovalRequest>, TidyError> {
        self.0.rows.expire(self.now()).await?;
        let mut settled = Vec::new();
        for request in self.0.rows.unrecorded(RowOwner::ThisGateway).await? {
            if self.waited().contains_key(&request.id) {
                continue;
            }
            // In this order: killed after the first it is recorded once more, killed after the
            // second the rule is added again, which changes nothing. The note that it is done comes
            // last, because nobody looks again after it.
            self.record_answer(&request)?;
            self.keep_if_for_good(&request);
            self.0.rows.recorded(&request.id).await?;
            settled.push(request);
        }
        Ok(settled)
    }

    /// The rows behind the questions: where each was shown, which button means what.
    pub fn rows(&self) -> &hermetic_store::ApprovalRows {
        &self.0.rows
    }

    pub(crate) async fn is_granted(
        &self,
        conversation: &ConversationKey,
        about: &RequestSubject<'_>,
    ) -> Result<bool, StoreError> {
        let (subject, fingerprint) = (about.subject, about.fingerprint);
        self.0
            .rows
            .is_granted(conversation, subject, fingerprint, self.now())
            .await
    }

    /// From the question to an answer that is recorded and used up.
    pub(crate) async fn put(
        &self,
        requester: &Requester,
        about: &RequestSubject<'_>,
        prompt: &dyn ApprovalPrompt,
        stop: &CancellationToken,
    ) -> Result<ApprovalScope, CommandDenied> {
        let waiting = self.open(requester, about).await?;
        if !waiting.was_shown {
            // In the record before anybody sees it: an answer to a question that is not in there
            // would prove nothing.
            self.record_question(&waiting.request)
                .map_err(|error| cannot_ask(&error))?;
            match timeout(LONGEST_SHOWING, prompt.show(&waiting.request)).await {
                Ok(Ok(())) => {}
                Ok(Err(nobody)) => return Err(waiting.withdraw(&nobody.to_string()).await),
                // It is waited for all the same: it may be on somebody's screen, and the command
                // line can answer it.
                Err(_) => {
                    tracing::warn!(request = %waiting.request.id, "showing a question takes long");
                }
            }
        }
        let settled = waiting.outcome(stop).await?;
        prompt.settled(&settled);
        match (settled.state, settled.scope) {
            // Used up before anything runs, by a write that only one can win: a yes that was read
            // twice allows one thing.
            (RequestState::Approved, Some(scope)) => self.use_up(&settled, scope).await,
            _ => Err(CommandDenied(request_text::refusal(
                &settled,
                self.0.timeout,
            ))),
        }
    }

    async fn use_up(
        &self,
        request: &ApprovalRequest,
        scope: ApprovalScope,
    ) -> Result<ApprovalScope, CommandDenied> {
        match self.0.rows.spend(&request.id, self.now()).await {
            Ok(true) => Ok(scope),
            Ok(false) => Err(CommandDenied(
                "This yes was used already. Nothing was run.".to_owned(),
            )),
            Err(error) => Err(cannot_ask(&error)),
        }
    }

    async fn open(
        &self,
        requester: &Requester,
        about: &RequestSubject<'_>,
    ) -> Result<PendingRequest, CommandDenied> {
        let asked_at = self.now();
        let new = NewRequest {
            subject: about.subject,
            conversation: &requester.conversation,
            message: requester.message,
            what: about.what,
            fingerprint: about.fingerprint,
            reasons: about.reasons,
            longest: about.longest,
            asker: &requester.by,
            asked_at,
            expires_at: asked_at.plus(self.0.timeout),
        };
        let opened = self.open_or_take_up(&new).await;
        opened.map_err(|error| cannot_ask(&error))?.ok_or_else(|| {
            CommandDenied(
                "Too many questions of this conversation wait for an answer already. Nothing was run."
                    .to_owned(),
            )
        })
    }

    async fn open_or_take_up(
        &self,
        new: &NewRequest<'_>,
    ) -> Result<Option<PendingRequest>, StoreError> {
        let since = new.asked_at.minus(self.0.timeout);
        for request in self.0.rows.standing(new, since).await? {
            // Killed between showing it and noting that, it is shown twice.
            let was_shown = request.state != RequestState::Pending
                || !self.0.rows.notices(&request.id).await?.is_empty();
            // One that somebody else waits for is theirs.
            if let Some(waiting) = PendingRequest::begin(self, request, new.message, was_shown) {
                return Ok(Some(waiting));
            }
        }
        let rows = &self.0.rows;
        // Counted after the look for one to take up: what was asked before a restart is no new
        // question.
        if rows.waiting_in(new.conversation, new.asked_at).await? >= MOST_AT_ONCE {
            return Ok(None);
        }
        let opened = rows.open(new).await?;
        Ok(PendingRequest::begin(self, opened, new.message, false))
    }

    /// Ends when every question of this process that is being shown has been, or takes too long.
    pub async fn until_shown(&self) {
        let shown = async {
            loop {
                // Listened to before looking, as below.
                let begun = self.0.begun.notified();
                if !self.waited().values().any(|one| *one == WaitStage::Showing) {
                    return;
                }
                begun.await;
            }
        };
        // What is not noted by then counts as not shown.
        let _ = timeout(LONGEST_SHOWING, shown).await;
    }

    /// What time it is for questions.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    pub(crate) fn waited(&self) -> MutexGuard<'_, HashMap<RequestId, WaitStage>> {
        self.0.waited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was left could not be brought to its end.
#[derive(Debug, thiserror::Error)]
pub enum TidyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Audit(#[from] hermetic_audit::AppendError),
}

/// Doubt is a no. The log learns why.
pub(crate) fn cannot_ask(error: &dyn std::error::Error) -> CommandDenied {
    tracing::error!(error = %in_full(error), "a question could not be asked");
    CommandDenied(
        "This needs a person's yes, and the question could not be asked or its answer recorded, so it \
         is refused. Nothing was run. The operator has been told."
            .to_owned(),
    )
}

fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
