//! Questions on chat platforms: who is shown one, with which buttons, and what stands there afterwards.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use hermetic_chat::{Button, Chat, Outgoing, Reply};
use hermetic_redact::Redactor;
use hermetic_store::{Notice, Request, Scope, StoreError, Subject};
use hermetic_types::{ChatId, ChatKind, Place, Platform, RunId, UserId};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use hermetic_approvals::{ApprovalPrompt, Approvals, NobodyToAsk, RequestText};

/// What a button means besides a scope.
pub(crate) const DENY: &str = "deny";

const LAST_MOMENT: Duration = Duration::from_secs(5);

/// Where questions hang. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct ChatPrompts(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    approvals: Approvals,
    chats: HashMap<Platform, Arc<dyn Chat>>,
    redactor: Redactor,
    approvers: Vec<(Platform, UserId)>,
    /// Messages that are being changed.
    errands: TaskTracker,
}

/// Somebody whose words lead to questions, and where they said them.
#[derive(Clone, Debug)]
pub(crate) struct Speaker {
    pub(crate) platform: Platform,
    pub(crate) place: Place,
    /// May answer, so that the question can be put in the same chat.
    pub(crate) approves: bool,
}

/// The chats as one speaker's questions use them.
#[derive(Debug)]
pub(crate) struct ChatPrompt {
    pub(crate) prompts: ChatPrompts,
    pub(crate) speaker: Option<Speaker>,
}

impl ChatPrompts {
    pub(crate) fn new(
        approvals: Approvals,
        chats: &[Arc<dyn Chat>],
        redactor: Redactor,
        approvers: Vec<(Platform, UserId)>,
    ) -> Self {
        Self(Arc::new(Shared {
            approvals,
            chats: chats
                .iter()
                .map(|chat| (chat.platform(), Arc::clone(chat)))
                .collect(),
            redactor,
            approvers,
            errands: TaskTracker::new(),
        }))
    }

    /// Writes what came of a question where it was asked.
    pub(crate) fn settle(&self, request: &Request) {
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

    async fn rewrite(&self, request: &Request) -> Result<(), StoreError> {
        let text = Outgoing::from(self.0.redactor.redact(RequestText(request).outcome()));
        for notice in self.0.approvals.rows().notices(&request.id).await? {
            let chat = notice
                .platform
                .parse::<Platform>()
                .ok()
                .and_then(|platform| self.0.chats.get(&platform));
            let place = serde_json::from_str::<Place>(&notice.place);
            let message = hermetic_types::MessageId::new(notice.message);
            let (Some(chat), Ok(place), Ok(message)) = (chat, place, message) else {
                continue;
            };
            if !chat.edits() {
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
        platform: Platform,
        place: &Place,
        request: &Request,
    ) -> Result<(), StoreError> {
        let Some(chat) = self.0.chats.get(&platform) else {
            return Ok(());
        };
        let text = self
            .0
            .redactor
            .redact(RequestText(request).question(self.0.approvals.now()));
        let mut reply = Reply::text(text.into());
        reply.buttons = self.buttons(request).await?;
        let (rows, name) = (self.0.approvals.rows(), platform.name());
        let written = serde_json::to_string(place).unwrap_or_default();
        // First, because whoever reads it may answer before the platform has told us its number.
        rows.showing(&request.id, name, &written).await?;
        match chat.send(place, &reply).await {
            Ok(messages) => {
                let Some(message) = messages.last() else {
                    return Ok(());
                };
                let notice = Notice {
                    platform: name.to_owned(),
                    place: written,
                    message: message.as_str().to_owned(),
                };
                rows.shown(&request.id, &notice).await
            }
            Err(error) => {
                tracing::warn!(%platform, request = %request.id, %error, "a question could not be shown");
                match error.failure.is_safe_to_repeat() {
                    true => rows.not_shown(&request.id, name, &written).await,
                    false => Ok(()),
                }
            }
        }
    }

    /// Each carries a token that means nothing by itself.
    async fn buttons(&self, request: &Request) -> Result<Vec<Vec<Button>>, StoreError> {
        let mut rows = Vec::new();
        let choices = match request.subject {
            Subject::Command if request.longest == Scope::Once => ABOUT_THIS_ONE_TIME,
            Subject::Command => ABOUT_A_COMMAND,
            Subject::Host => ABOUT_A_HOST,
        };
        for row in choices {
            let mut buttons = Vec::new();
            for (label, choice) in *row {
                let token = format!("q:{}", RunId::random());
                let rows = self.0.approvals.rows();
                rows.add_button(&request.id, &token, choice).await?;
                buttons.extend(Button::new(*label, token).ok());
            }
            rows.push(buttons);
        }
        Ok(rows)
    }

    fn approvers(&self) -> impl Iterator<Item = (Platform, Place)> {
        let approvers = self.0.approvers.iter();
        approvers
            .filter(|(platform, _)| self.0.chats.contains_key(platform))
            .filter_map(|(platform, user)| Some((*platform, private(*platform, user)?)))
    }
}

impl ApprovalPrompt for ChatPrompt {
    fn show<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<(), NobodyToAsk>> {
        async move {
            let speaker = self.speaker.as_ref();
            let places: Vec<_> = match speaker {
                Some(speaker) if speaker.approves => {
                    vec![(speaker.platform, speaker.place.clone())]
                }
                _ => self.prompts.approvers().collect(),
            };
            if places.is_empty() {
                return Err(NobodyToAsk::NoApprover);
            }
            for (platform, place) in &places {
                if let Err(error) = self.prompts.show(*platform, place, request).await {
                    tracing::error!(request = %request.id, %error, "a question could not be shown");
                }
            }
            if let Some(speaker) = speaker.filter(|speaker| !speaker.approves) {
                self.prompts.tell(speaker, request).await;
            }
            Ok(())
        }
        .boxed()
    }

    fn settled(&self, request: &Request) {
        self.prompts.settle(request);
    }
}

impl ChatPrompts {
    /// Whoever cannot answer themselves learns what the silence is about.
    async fn tell(&self, speaker: &Speaker, request: &Request) {
        // A webhook's request takes one answer, and this is not it.
        let chat = self.0.chats.get(&speaker.platform);
        let Some(chat) = chat.filter(|_| speaker.platform != Platform::Webhook) else {
            return;
        };
        let seconds = request.expires_at.since(self.0.approvals.now()).as_secs();
        let text = self.0.redactor.redact(format!(
            "This needs a yes from somebody who may give it. I have asked ({}), and wait for up to \
             {seconds} seconds.",
            request.id
        ));
        if let Err(error) = chat.send(&speaker.place, &Reply::text(text.into())).await {
            tracing::debug!(%error, "somebody could not be told to wait");
        }
    }
}

/// Rows of labels, and what a press of each means.
type Choices = &'static [&'static [(&'static str, &'static str)]];

const ABOUT_A_COMMAND: Choices = &[
    &[
        ("Allow once", Scope::Once.name()),
        ("This session", Scope::Session.name()),
    ],
    &[("Deny", DENY)],
];

/// A command whose operands are only known when it runs.
const ABOUT_THIS_ONE_TIME: Choices = &[&[("Allow once", Scope::Once.name()), ("Deny", DENY)]];

const ABOUT_A_HOST: Choices = &[
    &[
        ("Allow once", Scope::Once.name()),
        ("10 minutes", Scope::TenMinutes.name()),
    ],
    &[
        ("This session", Scope::Session.name()),
        ("Always", Scope::Always.name()),
    ],
    &[("Deny", DENY)],
];

/// Where somebody is reached alone, on platforms that name a private chat after the person in it.
fn private(platform: Platform, user: &UserId) -> Option<Place> {
    match platform {
        Platform::Telegram | Platform::Signal | Platform::Whatsapp => Some(Place {
            chat: ChatId::new(user.as_str()).ok()?,
            kind: ChatKind::Dm,
            thread: None,
        }),
        Platform::Discord | Platform::Slack | Platform::Webhook => None,
    }
}
