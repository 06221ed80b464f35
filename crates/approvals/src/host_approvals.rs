//! Questions about hosts that no egress rule names.

use std::sync::Arc;

use futures::future::BoxFuture;
use hermetic_egress::{
    ConversationScope as RuleScope, HostAnswer, HostQuestion, RuleBook, RuleEffect, WrittenRule,
};
use hermetic_store::{ApprovalRequest, ApprovalScope, RequestState, StoredSubject};
use hermetic_types::ConversationKey;
use tokio_util::sync::CancellationToken;

use crate::approvals::RequestSubject;
use crate::{ApprovalRegistry, PromptSource};

/// Asks people about hosts that no rule speaks of, and keeps what they allow for good among the rules.
#[derive(Clone, Debug)]
pub struct HostApprovals {
    approvals: ApprovalRegistry,
    prompts: Arc<dyn PromptSource>,
}

impl ApprovalRegistry {
    /// Asks whoever `prompts` names for the conversation.
    pub fn hosts(&self, prompts: Arc<dyn PromptSource>, rules: RuleBook) -> HostApprovals {
        // One book for one home: whoever comes second brings the same.
        let _ = self.0.rules.set(rules);
        HostApprovals {
            approvals: self.clone(),
            prompts,
        }
    }

    /// Makes a rule of a host that was allowed for good: the person was told that it holds from now on. Before the
    /// answer counts as recorded, because nobody looks at it again after that, and whoever asked may be gone.
    pub(crate) fn keep_if_for_good(&self, request: &ApprovalRequest) {
        if request.state == RequestState::Approved
            && request.subject == StoredSubject::Host
            && request.scope == Some(ApprovalScope::Always)
        {
            self.keep_rule(&request.conversation, &request.fingerprint);
        }
    }

    /// Writes down what a person allowed for good; a small file. What cannot be kept is asked about again.
    fn keep_rule(&self, conversation: &ConversationKey, host: &str) {
        let Some(rules) = self.0.rules.get() else {
            return;
        };
        let scope = RuleScope::of(conversation);
        let rule = WrittenRule::new(RuleEffect::Allow, host, Some(scope));
        // An error is only logged: this one time is allowed by the answer itself, and the host is
        // asked about again.
        let kept = rule
            .map_err(|error| error.to_string())
            .and_then(|rule| rules.add(&rule).map_err(|error| error.to_string()));
        if let Err(error) = kept {
            tracing::error!(%error, host, "a rule could not be kept");
        }
    }
}

impl hermetic_egress::HostApprover for HostApprovals {
    fn ask(&self, question: HostQuestion) -> BoxFuture<'static, HostAnswer> {
        let asker = self.clone();
        Box::pin(async move { asker.decide(&question).await })
    }

    fn still_holds(&self, question: HostQuestion) -> BoxFuture<'static, bool> {
        let asker = self.clone();
        Box::pin(async move { asker.has_granted(&question).await.unwrap_or(false) })
    }
}

impl HostApprovals {
    async fn decide(&self, question: &HostQuestion) -> HostAnswer {
        match self.has_granted(question).await {
            Ok(true) => return HostAnswer::Kept,
            Ok(false) => {}
            // Not to know whether it was allowed is a no, and nobody is asked: the store that
            // cannot be read could not keep the answer either.
            Err(NotFoundOut) => return HostAnswer::Deny,
        }
        match self.ask_about_host(question).await {
            Some(ApprovalScope::Once) => HostAnswer::Once,
            // How long it holds is kept with the grant, which `/new` revokes.
            Some(ApprovalScope::TenMinutes | ApprovalScope::Session) => HostAnswer::Kept,
            // The rule is written down, and the next question finds it.
            Some(ApprovalScope::Always) => HostAnswer::Once,
            None => HostAnswer::Deny,
        }
    }
}

/// Told to the log already.
struct NotFoundOut;

impl HostApprovals {
    async fn has_granted(&self, question: &HostQuestion) -> Result<bool, NotFoundOut> {
        let host = question.target.to_string();
        let about = about(&host, &[]);
        let granted = self.approvals.is_granted(&question.conversation, &about);
        granted.await.map_err(|error| {
            tracing::error!(%error, "a grant could not be looked up");
            NotFoundOut
        })
    }

    async fn ask_about_host(&self, question: &HostQuestion) -> Option<ApprovalScope> {
        let host = question.target.to_string();
        let reasons = ["no rule names this host".to_owned()];
        let (requester, prompt) = self.prompts.prompt_for(&question.conversation);
        // Nobody stops it but the proxy, by dropping this future, which withdraws the question.
        let stop = CancellationToken::new();
        let about = about(&host, &reasons);
        let put = self.approvals.put(&requester, &about, &*prompt, &stop);
        put.await.ok()
    }
}

fn about<'a>(host: &'a str, reasons: &'a [String]) -> RequestSubject<'a> {
    RequestSubject {
        subject: StoredSubject::Host,
        what: host,
        fingerprint: host,
        reasons,
        longest: ApprovalScope::Always,
    }
}
