//! The life of one message.
//!
//! This page is the whole way, in order: [`Gateway::accept`] lets a message in and writes it down,
//! [`Gateway::hand_over`] gives it to the task of its conversation, which calls [`Gateway::drive`] when
//! its turn comes; `drive` answers it and delivers the reply. Each step takes what the one before made:
//! no turn without an `Admitted` that is written down, no reply that is not `Redacted`.

use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures::future::FutureExt;
use futures::poll;
use hermetic_access::AdmissionRefusal;
use hermetic_agent::{ModelError, TurnError};
use hermetic_audit::AuditEvent;
use hermetic_chat::Receipt;
use hermetic_redact::Redacted;
use hermetic_store::{MessageEnd, OpenMessage, StoreError};
use hermetic_types::{AccountId, ChatPlace, ConversationKey, IncomingMessage};
use thiserror::Error;
use tokio::time::Instant;

use crate::approvals::person_name;
use crate::conversation::{Answerer, CommandError, Notified, TurnControl};
use crate::delivery::{DeliveredReply, LiveReply, ParsedAnswer, ToolProgress};
use crate::message::{AcceptedMessage, ChatCommand};
use crate::run::{ArrivalTurn, MessageStage, SpanNote, TurnEnd};
use crate::{BusyMode, Gateway, wording};

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
    /// Nothing went wrong with it: this gateway ends, and those that serve beside it go on.
    #[error("left to other gateways")]
    LeftToOthers,
}

/// The note of a message whose sender lost access before its turn came.
pub(crate) const NOT_ALLOWED: &str = "not allowed any more";

/// How working on a message came to an end in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageOutcome {
    Ended,
    /// The message waits for a person, or was cut where others serve: whoever is next takes it up.
    Deferred,
}

/// How a message comes to us.
#[derive(Debug)]
pub(crate) enum MessageArrival {
    /// From a chat platform, which is told when it is written down.
    Chat(Receipt),
    /// From a background process, in the name of whoever had it started.
    Process,
    /// From the store, where an earlier process of ours wrote it.
    Restart(OpenMessage),
}

impl Gateway {
    /// Lets what was said in and writes it down; only then is the receipt signed. `None` if there is
    /// nothing to answer: somebody who may not write, or the same message once more.
    ///
    /// Everything that becomes a turn comes in here. What a restart finds is let in by the rules of
    /// today: who lost access meanwhile is not answered.
    pub(crate) async fn accept(
        &self,
        incoming: IncomingMessage,
        arrival: MessageArrival,
    ) -> Result<Option<AcceptedMessage>, StoreError> {
        let mut turn = ArrivalTurn::alone();
        self.accept_in_order(incoming, arrival, &mut turn).await
    }

    /// The same for one of several that are taken over at once: it is written down when its turn comes.
    pub(crate) async fn accept_in_order(
        &self,
        incoming: IncomingMessage,
        arrival: MessageArrival,
        turn: &mut ArrivalTurn,
    ) -> Result<Option<AcceptedMessage>, StoreError> {
        let begun = Instant::now();
        let (account, place) = (incoming.account.clone(), incoming.place.clone());
        let admitted = match &arrival {
            // A key that only a claim of ours writes, so nobody gets into a job's conversation by a name.
            MessageArrival::Restart(open) if let Some(job) = open.conversation.job() => {
                self.access.admit_job(incoming, &job).await
            }
            _ => self.access.admit(incoming, self.now()).await,
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(refused) => {
                self.refuse(refused, arrival, &account, place).await?;
                return Ok(None);
            }
        };
        let accepted = match &arrival {
            MessageArrival::Chat(_) | MessageArrival::Process => {
                turn.comes().await;
                let mut writing = pin!(AcceptedMessage::write(&self.inbox, admitted, self.now()));
                // Handed to the store by the first poll, and numbered in that order.
                let written = poll!(writing.as_mut());
                turn.is_over();
                match written {
                    Poll::Ready(written) => written?,
                    Poll::Pending => writing.await?,
                }
            }
            MessageArrival::Restart(open) => Some(AcceptedMessage::found(open, admitted)),
        };
        // Not before it is on the disk: the platform forgets it now.
        if let MessageArrival::Chat(receipt) = arrival {
            receipt.stored();
        }
        if let Some(accepted) = &accepted {
            // One that came here and had to wait for those before it comes a second time, by the look.
            let sharing = self.sharing.as_ref();
            if !sharing.is_some_and(|sharing| sharing.was_let_in(accepted.row())) {
                self.note_let_in(accepted, begun);
            }
            self.note_speaker(accepted, accepted.conversation());
            // Before anything of it is done in its sandbox. Where that cannot be read, the look finds the message.
            self.learn_epoch(accepted.conversation()).await?;
        }
        Ok(accepted)
    }

    fn note_let_in(&self, accepted: &AcceptedMessage, begun: Instant) {
        self.metrics.accepted(accepted.said().platform());
        let receipt = MessageStage::Receipt;
        self.metrics.stage_ended(receipt, begun.elapsed());
        self.traces
            .stage(accepted.row(), || SpanNote::since(receipt.name(), begun));
        self.note_access(accepted);
    }

    /// Counts what leaves from a conversation as that of whoever said this.
    pub(crate) fn note_speaker(&self, message: &AcceptedMessage, conversation: &ConversationKey) {
        if let Some(day) = &self.outgoing {
            let said = message.said();
            let person = person_name(said.platform(), &said.sender.id);
            day.note_speaker(conversation, &person);
        }
    }

    async fn refuse(
        &self,
        refused: AdmissionRefusal,
        arrival: MessageArrival,
        account: &AccountId,
        place: ChatPlace,
    ) -> Result<(), StoreError> {
        match arrival {
            // Not signed and not ended: it comes again, or is found again by the next start.
            _ if refused == AdmissionRefusal::CannotTell => {
                tracing::error!(%account, "who wrote could not be looked up, so the message has to wait");
            }
            MessageArrival::Chat(receipt) => {
                // Strangers are not written down: they could fill the disk.
                receipt.turned_away();
                if let AdmissionRefusal::OfferPairing(code) = refused {
                    self.note_offer(account, &place);
                    self.outbox.offer_pairing(account, place, &code);
                }
            }
            MessageArrival::Process => {
                tracing::info!("nobody who may be told of a process any more");
            }
            MessageArrival::Restart(open) => {
                let note = Some(NOT_ALLOWED);
                self.inbox
                    .end(open.row, MessageEnd::Refused, note, self.now())
                    .await?;
            }
        }
        Ok(())
    }

    /// Hands a message to the task of its conversation, which decides when it runs.
    pub(crate) fn hand_over(self: &Arc<Self>, message: AcceptedMessage, busy: BusyMode) {
        let handed = match &self.sharing {
            None => self.conversations.hand_over(self, message, busy),
            Some(sharing) => {
                let hand_over = || self.conversations.hand_over(self, message.clone(), busy);
                sharing
                    .hand_over_once(&message, hand_over)
                    .unwrap_or(Ok(()))
            }
        };
        if let Err(message) = handed {
            self.not_heard(*message, wording::QUEUE_FULL, Notified::Already);
        }
    }

    /// An orderly stop is no failure of the message: it may wait over any number of them.
    async fn take_back_attempt(&self, message: &AcceptedMessage) {
        if let Err(error) = self.inbox.take_back_attempt(message.row()).await {
            tracing::warn!(row = message.row().0, %error, "an attempt could not be taken back");
        }
    }

    /// Brings a message to its end, whatever happens: answered, or reported as failed. Only one that
    /// waits for a person when the gateway stops is left for the next start.
    pub(crate) async fn drive(
        &self,
        message: &AcceptedMessage,
        control: &TurnControl,
    ) -> MessageOutcome {
        let begun = Instant::now();
        let waited = begun.saturating_duration_since(message.since());
        self.metrics.stage_ended(MessageStage::Queue, waited);
        let queue = MessageStage::Queue.name();
        self.traces
            .stage(message.row(), || SpanNote::since(queue, message.since()));
        if self.is_left_to_others(message) {
            return self.defer(message, begun);
        }
        // Caught here, where the message is still known: a panic would otherwise leave it open, to
        // be begun anew and to panic again with every start.
        let working = AssertUnwindSafe(self.work(message, control)).catch_unwind();
        let worked = tokio::select! {
            // First: a turn that waits for a person is dropped before it can take the stop for an
            // answer.
            biased;
            () = self.approvals.questions.left_waiting(message.row()) => {
                self.take_back_attempt(message).await;
                return self.defer(message, begun);
            }
            worked = working => worked,
        };
        let worked = worked.unwrap_or(Err(HandleError::Panicked));
        if matches!(worked, Err(HandleError::LeftToOthers)) {
            self.take_back_attempt(message).await;
            return self.defer(message, begun);
        }
        self.settle_steering(control, worked.is_ok()).await;
        // Its run has ended, so another may have its place; the ticker does not look at messages.
        if message.is_scheduled() {
            self.schedule_wake.notify_one();
        }
        let Err(error) = worked else {
            self.turn_ended(message, TurnEnd::Answered, begun);
            return MessageOutcome::Ended;
        };
        self.turn_ended(message, TurnEnd::Failed, begun);
        tracing::error!(
            row = message.row().0,
            conversation = %message.conversation(),
            error = %in_full(&error),
            "a message was not answered"
        );
        if let Err(error) = self.report_failure(message, error.for_chat()).await {
            // It stays open in the store, and the next start takes it up again.
            tracing::error!(row = message.row().0, %error, "the failure could not be reported");
        }
        MessageOutcome::Ended
    }

    /// Nothing that comes behind it is begun here.
    fn defer(&self, message: &AcceptedMessage, begun: Instant) -> MessageOutcome {
        self.turn_ended(message, TurnEnd::Deferred, begun);
        if let Some(sharing) = &self.sharing {
            sharing.leave_to_others(message.conversation());
        }
        MessageOutcome::Deferred
    }

    /// Counts a turn and tells its trace. With the turn the message is over too, unless it waits on.
    fn turn_ended(&self, message: &AcceptedMessage, end: TurnEnd, begun: Instant) {
        self.metrics.turn_ended(end, begun.elapsed());
        let row = message.row();
        let note = |name, since| {
            SpanNote::since(name, since)
                .text("hermetic.outcome", end.name())
                .failed(end == TurnEnd::Failed)
        };
        self.traces.turn(row, || note("turn", begun));
        if end != TurnEnd::Deferred {
            let platform = message.said().platform().name();
            self.traces.message(row, message.conversation(), || {
                note("message", message.since()).text("hermetic.platform", platform)
            });
        }
    }

    async fn report_failure(
        &self,
        message: &AcceptedMessage,
        why: &'static str,
    ) -> Result<(), HandleError> {
        if message.is_scheduled() {
            let reported = self.report_failed_job(message, why).await;
            self.schedule_wake.notify_one();
            return reported;
        }
        let reply = Redacted::constant(why);
        let delivered = self.outbox.deliver(message, &reply, MessageEnd::Failed);
        let _ = delivered.await?;
        Ok(())
    }

    async fn work(
        &self,
        message: &AcceptedMessage,
        control: &TurnControl,
    ) -> Result<(), HandleError> {
        if message.was_begun() && self.outbox.has_reply(message).await? {
            // Killed between writing the reply and closing the message.
            self.inbox
                .end(message.row(), MessageEnd::Answered, None, self.now())
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
        // One that got no further than its question has not run, so it is asked about again instead
        // of being given up.
        if attempts > 1 && happens_once && !self.only_asked(message.row()).await? {
            return Err(HandleError::NotRepeated);
        }
        if attempts > self.settings.attempts {
            return Err(HandleError::TooOften { attempts });
        }
        let working = async {
            match &slash {
                Some(ChatCommand::Retry) => {
                    let retried = Box::pin(self.retry(message, control));
                    retried.await.map(drop)
                }
                Some(slash) => self.obey(message, slash, control).await.map(drop),
                None if message.is_scheduled() => Box::pin(self.answer_job(message, control)).await,
                None => Box::pin(self.answer(message, control)).await.map(drop),
            }
        };
        tokio::select! {
            done = working => done,
            // Never ends by itself: it goes on for as long as the work does and is dropped with it.
            never = self.show_typing(message) => match never {},
        }
    }

    /// One turn, from the conversation as it was left to a reply on its way.
    pub(crate) async fn answer(
        &self,
        message: &AcceptedMessage,
        control: &TurnControl,
    ) -> Result<DeliveredReply, HandleError> {
        // Before the history is read, or the model would be shown what was just put away.
        let reset_note = self.reset_if_due(message).await?;
        let session = self.open_session(message, control).await?;
        let streaming = self.settings.streaming.as_ref();
        let progress = streaming.map_or(ToolProgress::Off, |streaming| streaming.progress);
        let live = LiveReply::new(&self.redactor, progress);
        let answerer = self.answerer(message).await?;
        let asks_our_model = matches!(answerer, Answerer::Own(_));
        let turn = Box::pin(session.take_turn(answerer, control, &live));
        let answered = tokio::select! {
            // First: the turn is dropped before it takes the end of this gateway for an interruption and says so.
            biased;
            () = self.left_to_others(message) => return Err(HandleError::LeftToOthers),
            answered = self.stream_while(message, &live, turn) => answered,
        };
        if asks_our_model {
            self.note_model(answered.as_ref().err());
        }
        let answer = answered?;
        let answer =
            ParsedAnswer::read(&answer, self.toolsets.workspace(message.said().platform()));
        let refused = self.refused_hosts(message);
        let text = format!("{}{}{refused}", reset_note.unwrap_or_default(), answer.text);
        let reply = self.redactor.redact(text);
        Ok(self
            .outbox
            .deliver_with(message, &reply, answer.files, MessageEnd::Answered)
            .await?)
    }

    /// Whether this gateway ends and others serve beside it: what a turn has done is written down, and whoever adopts
    /// its message goes on there, as if this gateway had been killed. A command is brought to its end here.
    fn is_left_to_others(&self, message: &AcceptedMessage) -> bool {
        self.sharing.is_some() && self.cut.is_cancelled() && self.slash(message).is_none()
    }

    /// Returns when that is so.
    pub(crate) async fn left_to_others(&self, message: &AcceptedMessage) {
        self.cut.cancelled().await;
        if !self.is_left_to_others(message) {
            std::future::pending::<()>().await;
        }
    }

    /// The same for a command.
    async fn obey(
        &self,
        message: &AcceptedMessage,
        slash: &ChatCommand,
        control: &TurnControl,
    ) -> Result<DeliveredReply, HandleError> {
        let reply = self.run_command(message, slash, control).await?;
        Ok(self
            .outbox
            .deliver_with(message, &reply.text, reply.files, MessageEnd::Answered)
            .await?)
    }

    /// What a turn says about the model. That a conversation is too long, or a turn was interrupted, says
    /// nothing.
    pub(crate) fn note_model(&self, failed: Option<&TurnError>) {
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
        self.model_health.degraded(why, self.now());
    }

    fn note_access(&self, accepted: &AcceptedMessage) {
        let (admitted, said) = (accepted.admitted(), accepted.said());
        let words = |text: String| self.approvals.questions.words(&text.to_lowercase());
        self.approvals.note(&AuditEvent::Access {
            conversation: accepted.conversation().clone(),
            platform: said.platform(),
            user: said.sender.id.clone(),
            role: words(format!("{:?}", admitted.role())),
            grounds: words(format!("{:?}", admitted.grounds())),
        });
    }

    /// A private chat is named after the stranger in it.
    fn note_offer(&self, account: &AccountId, place: &ChatPlace) {
        self.approvals.note(&AuditEvent::Pairing {
            platform: account.platform(),
            act: hermetic_audit::PairingEvent::Offered,
            user: self.approvals.questions.words(place.chat.as_str()),
            by: hermetic_audit::AuditText::constant("the gateway"),
        });
    }

    async fn show_typing(&self, message: &AcceptedMessage) -> std::convert::Infallible {
        let said = message.said();
        let shown = !self.settings.typing_off.contains(&said.platform()) && !message.is_scheduled();
        let chat = self.outbox.chat(&said.account).filter(|_| shown);
        let every = chat.and_then(|chat| chat.capabilities().typing_every());
        let (Some(chat), Some(every)) = (chat, every) else {
            return std::future::pending().await;
        };
        loop {
            if let Err(error) = chat.typing(&said.place).await {
                tracing::debug!(%error, "typing could not be shown");
            }
            tokio::time::sleep(every).await;
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
            // Nobody is told: it goes on.
            Self::LeftToOthers => wording::CUT,
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
