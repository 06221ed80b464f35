//! The life of one message.
//!
//! [`Gateway::take_in`] and [`Gateway::handle`] are the whole way, and each step takes what the one
//! before made: no turn without an `Admitted` that is written down, no reply that is not `Redacted`.

use std::error::Error;
use std::panic::AssertUnwindSafe;

use futures::future::FutureExt;
use hermetic_access::Refused;
use hermetic_agent::{ModelError, TurnError};
use hermetic_audit::Event;
use hermetic_chat::Receipt;
use hermetic_redact::Redacted;
use hermetic_store::{End, StoreError};
use hermetic_types::{Incoming, Place, Platform};
use thiserror::Error;

use crate::Gateway;
use crate::commands::CommandError;
use crate::files::Answer;
use crate::growing::Growing;
use crate::kept::Kept;
use crate::lanes::Control;
use crate::post::Delivered;
use crate::slash::Slash;
use crate::wording;

#[derive(Debug, Error)]
pub(crate) enum HandleError {
    #[error("the store does not answer")]
    Store(#[from] StoreError),
    #[error("the turn failed")]
    Turn(#[from] TurnError),
    #[error("the command failed")]
    Command(#[from] CommandError),
    #[error("begun {attempts} times and never brought to an end")]
    TooOften { attempts: u32 },
    #[error("cut by a restart, and not repeated")]
    NotRepeated,
    #[error("something here panicked")]
    Panicked,
}

/// How working on a message came to an end in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tended {
    Ended,
    /// It waits for a person, and the next start takes it up.
    Left,
}

impl Gateway {
    /// Lets what was said in and writes it down; only then is the receipt signed. `None` if there is
    /// nothing to answer: a stranger, or the same message once more.
    pub(crate) async fn take_in(
        &self,
        incoming: Incoming,
        receipt: Receipt,
    ) -> Result<Option<Kept>, StoreError> {
        let (platform, place) = (incoming.platform, incoming.place.clone());
        let admitted = match self.access.admit(incoming, jiff::Timestamp::now()).await {
            Ok(admitted) => admitted,
            Err(refused) => {
                // Strangers are not written down: they could fill the disk.
                receipt.stored();
                if let Refused::OfferPairing(code) = refused {
                    self.note_offer(platform, &place);
                    self.post.offer_pairing(platform, place, &code);
                }
                return Ok(None);
            }
        };
        let kept = Kept::keep(&self.inbox, admitted).await?;
        receipt.stored();
        if let Some(kept) = &kept {
            self.note_access(kept);
        }
        Ok(kept)
    }

    /// One turn, from the conversation as it was left to a reply on its way.
    pub(crate) async fn handle(
        &self,
        message: &Kept,
        control: &Control,
    ) -> Result<Delivered, HandleError> {
        let afresh = self.start_afresh_if_due(message).await?;
        let session = self.open_session(message, control).await?;
        let growing = Growing::new(&self.redactor);
        let turn = session.take_turn(&self.agent, control, &growing);
        let answered = self.showing(message, &growing, turn).await;
        self.note_model(answered.as_ref().err());
        let answer = answered?;
        let answer = Answer::read(&answer, self.worksites.workspace(message.said().platform));
        let text = format!("{}{}", afresh.unwrap_or_default(), answer.text);
        let reply = self.redactor.redact(text);
        Ok(self
            .post
            .deliver_with(message, &reply, answer.files, End::Answered)
            .await?)
    }

    /// The same for a command, which needs no model.
    pub(crate) async fn obey(
        &self,
        message: &Kept,
        slash: &Slash,
        control: &Control,
    ) -> Result<Delivered, HandleError> {
        let reply = self.run_command(message, slash, control).await?;
        Ok(self.post.deliver(message, &reply, End::Answered).await?)
    }

    /// Brings a message to its end, whatever happens: answered, or reported as failed. Only one that
    /// waits for a person when the gateway stops is left for the next start.
    pub(crate) async fn tend(&self, message: &Kept, control: &Control) -> Tended {
        let working = AssertUnwindSafe(self.work(message, control)).catch_unwind();
        let worked = tokio::select! {
            biased;
            () = self.asking.approvals.left_waiting(message.row()) => return Tended::Left,
            worked = working => worked,
        };
        let worked = worked.unwrap_or(Err(HandleError::Panicked));
        self.settle_riders(control, worked.is_ok()).await;
        let Err(error) = worked else {
            return Tended::Ended;
        };
        tracing::error!(
            row = message.row().0,
            conversation = %message.conversation(),
            error = %in_full(&error),
            "a message was not answered"
        );
        let reply = Redacted::constant(error.for_chat());
        if let Err(error) = self.post.deliver(message, &reply, End::Failed).await {
            // It stays open in the store, and the next start takes it up again.
            tracing::error!(row = message.row().0, %error, "the failure could not be reported");
        }
        Tended::Ended
    }

    async fn work(&self, message: &Kept, control: &Control) -> Result<(), HandleError> {
        if message.was_begun() && self.post.has_reply(message).await? {
            // Killed between writing the reply and closing the message.
            self.inbox
                .end(message.row(), End::Answered, None, wording::now())
                .await?;
            return Ok(());
        }
        let slash = self.slash(message);
        let happens_once = slash.as_ref().is_some_and(|slash| !slash.may_be_repeated());
        let attempts = if happens_once {
            self.inbox.begin_once(message.row()).await?
        } else {
            self.inbox.begin(message.row()).await?
        };
        if attempts > 1 && happens_once && !self.only_asked(message.row()).await? {
            return Err(HandleError::NotRepeated);
        }
        if attempts > self.settings.attempts {
            return Err(HandleError::TooOften { attempts });
        }
        let working = async {
            match &slash {
                Some(slash) => self.obey(message, slash, control).await,
                None => self.handle(message, control).await,
            }
        };
        tokio::select! {
            done = working => done.map(drop),
            never = self.show_typing(message) => match never {},
        }
    }

    /// What a turn says about the model. That a conversation is too long, or a turn was interrupted, says
    /// nothing.
    fn note_model(&self, failed: Option<&TurnError>) {
        let why = match failed {
            None => {
                self.model_health.recovered();
                return;
            }
            Some(TurnError::Model(ModelError::Unreachable { .. })) => "it cannot be reached",
            Some(TurnError::Model(ModelError::Busy { .. })) => "it is busy or broken",
            Some(TurnError::Model(ModelError::KeyRejected { .. })) => "it does not accept the key",
            Some(TurnError::Model(ModelError::Cut { .. } | ModelError::Silent { .. })) => {
                "it breaks off its answers"
            }
            Some(TurnError::Model(ModelError::Unreadable { .. } | ModelError::TooLarge { .. })) => {
                "its answers cannot be read"
            }
            Some(TurnError::Model(_) | TurnError::Journal(_)) => return,
        };
        self.model_health.degraded(why, wording::now());
    }

    fn note_access(&self, kept: &Kept) {
        let (admitted, said) = (kept.admitted(), kept.said());
        let words = |text: String| self.asking.approvals.words(&text.to_lowercase());
        self.asking.note(&Event::Access {
            conversation: kept.conversation().clone(),
            platform: said.platform,
            user: said.sender.id.clone(),
            role: words(format!("{:?}", admitted.role())),
            grounds: words(format!("{:?}", admitted.grounds())),
        });
    }

    /// A private chat is named after the stranger in it.
    fn note_offer(&self, platform: Platform, place: &Place) {
        self.asking.note(&Event::Pairing {
            platform,
            act: hermetic_audit::Pairing::Offered,
            user: self.asking.approvals.words(place.chat.as_str()),
            by: hermetic_audit::Words::constant("the gateway"),
        });
    }

    async fn show_typing(&self, message: &Kept) -> std::convert::Infallible {
        let chat = self
            .post
            .chat(message.said().platform)
            .filter(|_| self.settings.typing);
        let Some(chat) = chat else {
            return std::future::pending().await;
        };
        loop {
            if let Err(error) = chat.typing(&message.said().place).await {
                tracing::debug!(%error, "typing could not be shown");
            }
            tokio::time::sleep(self.settings.typing_every).await;
        }
    }
}

impl HandleError {
    /// What the person in the chat may read.
    fn for_chat(&self) -> &'static str {
        match self {
            Self::Turn(error) => error.for_chat(),
            Self::Command(error) => error.for_chat(),
            Self::Store(_) | Self::Panicked => wording::BROKEN,
            Self::TooOften { .. } => wording::TOO_OFTEN,
            Self::NotRepeated => wording::NOT_REPEATED,
        }
    }
}

pub(crate) fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
