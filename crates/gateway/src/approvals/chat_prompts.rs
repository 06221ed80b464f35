//! Questions on chat platforms: who is shown one, with which buttons, and what stands there afterwards.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join_all};
use hermetic_chat::{Chat, ChatReply, OutgoingText, ReplyButton, ReplyRule};
use hermetic_redact::Redactor;
use hermetic_store::{ApprovalRequest, ApprovalScope, PromptNotice, StoreError, StoredSubject};
use hermetic_types::{AccountId, ChatPlace, RunId, UserId};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use hermetic_approvals::{ApprovalPrompt, ApprovalRegistry, NobodyToAsk, RequestText};

/// What a button means besides a scope.
pub(crate) const DENY: &str = "deny";

// The answer is in the store and in the record already; what is lost after this is only that the
// message still shows its buttons, and those say that they are stale.
const LAST_MOMENT: Duration = Duration::from_secs(5);

/// For opening a private chat: less than half of what showing a question may take in all, so that those
/// who can be reached are still shown it.
const OPENING: Duration = Duration::from_secs(4);

/// Where questions hang. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct ChatPrompts(Arc<PromptState>);

#[derive(Debug)]
struct PromptState {
    approvals: ApprovalRegistry,
    chats: HashMap<AccountId, Arc<dyn Chat>>,
    redactor: Redactor,
    approvers: Vec<(AccountId, UserId)>,
    /// Messages that are being changed.
    errands: TaskTracker,
}

/// Somebody whose words lead to questions, and where they said them.
#[derive(Clone, Debug)]
pub(crate) struct PromptSpeaker {
    pub(crate) account: AccountId,
    pub(crate) place: ChatPlace,
    /// May answer, so that the question can be put in the same chat.
    pub(crate) approves: bool,
}

/// The chats as one speaker's questions use them.
#[derive(Debug)]
pub(crate) struct ChatPrompt {
    pub(crate) prompts: ChatPrompts,
    pub(crate) speaker: Option<PromptSpeaker>,
}

impl ChatPrompts {
    pub(crate) fn new(
        approvals: ApprovalRegistry,
        chats: &[Arc<dyn Chat>],
        redactor: Redactor,
        approvers: Vec<(AccountId, UserId)>,
    ) -> Self {
        Self(Arc::new(PromptState {
            approvals,
            chats: chats
                .iter()
                .map(|chat| (chat.account().clone(), Arc::clone(chat)))
                .collect(),
            redactor,
            approvers,
            errands: TaskTracker::new(),
        }))
    }

    /// Writes what came of a question where it was asked.
    pub(crate) fn settle(&self, request: &ApprovalRequest) {
        // On its own: whoever waited for the answer goes on at once, and a platform that is slow to
        // change a message must not hold up the command that was just allowed.
        let (prompts, request) = (self.clone(), request.clone());
        self.0.errands.spawn(async move {
            if let Err(error) = prompts.rewrite(&request).await {
                tracing::warn!(request = %request.id, %error, "an answered question still asks");
            }
        });
    }

    /// What is being written is given a moment.
    pub(crate) async fn close(&self) {
        self.0.errands.close();
        let _ = timeout(LAST_MOMENT, self.0.errands.wait()).await;
    }

    async fn rewrite(&self, request: &ApprovalRequest) -> Result<(), StoreError> {
        let text = OutgoingText::from(self.0.redactor.redact(RequestText(request).outcome()));
        for notice in self.0.approvals.rows().notices(&request.id).await? {
            let account = notice.account.parse::<AccountId>().ok();
            let chat = account.and_then(|account| self.0.chats.get(&account));
            let place = serde_json::from_str::<ChatPlace>(&notice.place);
            let message = hermetic_types::MessageId::new(notice.message);
            // An account that the configuration no longer names, or a message whose number the
            // platform never told us: there is nothing that could be changed.
            let (Some(chat), Ok(place), Ok(message)) = (chat, place, message) else {
                continue;
            };
            if !chat.capabilities().edits {
                continue;
            }
            if let Err(error) = chat.edit(&place, &message, &text, &[]).await {
                tracing::debug!(%error, "a question could not be changed");
            }
        }
        Ok(())
    }

    /// Shows a question in one chat. The message is noted, to be changed later.
    async fn show(
        &self,
        account: &AccountId,
        place: &ChatPlace,
        request: &ApprovalRequest,
    ) -> Result<(), StoreError> {
        let Some(chat) = self.0.chats.get(account) else {
            return Ok(());
        };
        let text = self
            .0
            .redactor
            .redact(RequestText(request).question(self.0.approvals.now()));
        let mut reply = ChatReply::text(text.into());
        if chat.capabilities().buttons.is_some() {
            reply.buttons = self.buttons(request).await?;
        }
        let (rows, name) = (self.0.approvals.rows(), account.to_string());
        let written = serde_json::to_string(place).unwrap_or_default();
        // First, because whoever reads it may answer before the platform has told us its number.
        rows.showing(&request.id, &name, &written).await?;
        match chat.send(place, &reply).await {
            Ok(messages) => {
                let Some(message) = messages.last() else {
                    return Ok(());
                };
                let notice = PromptNotice {
                    account: name,
                    place: written,
                    message: message.as_str().to_owned(),
                };
                rows.shown(&request.id, &notice).await
            }
            Err(error) => {
                tracing::warn!(%account, request = %request.id, %error, "a question could not be shown");
                // Certainly not there: the note is taken back, or an answer without a name could
                // never be told apart from one to this question. If it may be there, the note
                // stays, and with it the doubt.
                match error.failure.is_safe_to_repeat() {
                    true => rows.not_shown(&request.id, &name, &written).await,
                    false => Ok(()),
                }
            }
        }
    }

    /// Each carries a token that means nothing by itself.
    async fn buttons(
        &self,
        request: &ApprovalRequest,
    ) -> Result<Vec<Vec<ReplyButton>>, StoreError> {
        let mut rows = Vec::new();
        let choices = match request.subject {
            StoredSubject::Command | StoredSubject::Agent
                if request.longest == ApprovalScope::Once =>
            {
                ABOUT_THIS_ONE_TIME
            }
            StoredSubject::Command | StoredSubject::Agent => ABOUT_A_COMMAND,
            StoredSubject::Host => ABOUT_A_HOST,
        };
        for row in choices {
            let mut buttons = Vec::new();
            for (label, choice) in *row {
                let token = format!("q:{}", RunId::random());
                let rows = self.0.approvals.rows();
                rows.add_button(&request.id, &token, choice).await?;
                buttons.extend(ReplyButton::new(*label, token).ok());
            }
            rows.push(buttons);
        }
        Ok(rows)
    }

    /// Where everybody who may answer is reached alone. Asked all at once: opening a private chat takes a
    /// platform its time, and one that cannot be reached must not hold up the others.
    pub(crate) async fn approvers(&self) -> Vec<(AccountId, ChatPlace)> {
        let reached = self.0.approvers.iter().map(async |(account, user)| {
            let chat = self.0.chats.get(account)?;
            match timeout(OPENING, chat.private_place(user)).await {
                Ok(Ok(place)) => Some((account.clone(), place)),
                Ok(Err(error)) => {
                    tracing::warn!(%account, %user, %error, "an approver cannot be reached");
                    None
                }
                Err(_) => {
                    tracing::warn!(%account, %user, "reaching an approver took too long");
                    None
                }
            }
        });
        join_all(reached).await.into_iter().flatten().collect()
    }
}

impl ApprovalPrompt for ChatPrompt {
    fn show<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<(), NobodyToAsk>> {
        async move {
            let speaker = self.speaker.as_ref();
            let places: Vec<_> = match speaker {
                // Whoever may say yes is asked where they are and nobody else: the approvers'
                // private chats are for those who cannot answer themselves.
                Some(speaker) if speaker.approves => {
                    vec![(speaker.account.clone(), speaker.place.clone())]
                }
                _ => self.prompts.approvers().await,
            };
            if places.is_empty() {
                return Err(NobodyToAsk::NoApprover);
            }
            // All at once: an account that does not get through must not keep the others from asking.
            let showing = places.iter().map(async |(account, place)| {
                if let Err(error) = self.prompts.show(account, place, request).await {
                    tracing::error!(request = %request.id, %error, "a question could not be shown");
                }
            });
            join_all(showing).await;
            if let Some(speaker) = speaker.filter(|speaker| !speaker.approves) {
                self.prompts.tell(speaker, request).await;
            }
            Ok(())
        }
        .boxed()
    }

    fn settled(&self, request: &ApprovalRequest) {
        self.prompts.settle(request);
    }
}

impl ChatPrompts {
    /// Whoever cannot answer themselves learns what the silence is about.
    async fn tell(&self, speaker: &PromptSpeaker, request: &ApprovalRequest) {
        let chat = self.0.chats.get(&speaker.account);
        // Where a message takes one answer, this is not it.
        let free = |chat: &&Arc<dyn Chat>| chat.capabilities().replies == ReplyRule::Free;
        let Some(chat) = chat.filter(free) else {
            return;
        };
        let seconds = request.expires_at.since(self.0.approvals.now()).as_secs();
        let text = self.0.redactor.redact(format!(
            "This needs a yes from somebody who may give it. I have asked ({}), and wait for up to \
             {seconds} seconds.",
            request.id
        ));
        if let Err(error) = chat
            .send(&speaker.place, &ChatReply::text(text.into()))
            .await
        {
            tracing::debug!(%error, "somebody could not be told to wait");
        }
    }
}

/// Rows of labels, and what a press of each means.
type Choices = &'static [&'static [(&'static str, &'static str)]];

const ABOUT_A_COMMAND: Choices = &[
    &[
        ("Allow once", ApprovalScope::Once.name()),
        ("This session", ApprovalScope::Session.name()),
    ],
    &[("Deny", DENY)],
];

/// A command whose operands are only known when it runs.
const ABOUT_THIS_ONE_TIME: Choices =
    &[&[("Allow once", ApprovalScope::Once.name()), ("Deny", DENY)]];

const ABOUT_A_HOST: Choices = &[
    &[
        ("Allow once", ApprovalScope::Once.name()),
        ("10 minutes", ApprovalScope::TenMinutes.name()),
    ],
    &[
        ("This session", ApprovalScope::Session.name()),
        ("Always", ApprovalScope::Always.name()),
    ],
    &[("Deny", DENY)],
];

#[cfg(test)]
#[path = "chat_prompts_tests.rs"]
mod tests;
