//! From the store to the gateway: every message until it is signed for, every press once.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, FuturesUnordered, Stream, StreamExt};
use hermetic_chat::{ChatEvent, ChatState, Receipt, ReceiveError, ReceivedEvent, Signature};
use hermetic_store::{BrowserFile, BrowserMessageState, RowOwner, WaitingMessage};
use hermetic_types::{
    Attachment, AttachmentId, AttachmentKind, ButtonPress, IncomingMessage, InvalidName, MessageId,
    Sender, UpdateId, UserId,
};
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::BrowserAdapter;
use crate::saying::operator_role;

/// What waits to be handed over.
#[derive(Debug, Default)]
pub(crate) struct HandoverQueue {
    waiting: Mutex<VecDeque<HandoverEntry>>,
    came: Notify,
}

/// One of them.
#[derive(Debug)]
pub(crate) enum HandoverEntry {
    /// A row of the store. Whoever said it may wait to hear what came of it.
    Message(i64, Option<oneshot::Sender<Signature>>),
    /// Whoever pressed holds the other half of the receipt.
    Press(Box<ButtonPress>, Receipt),
}

/// A message that was handed over, until it is known what came of it.
type InFlight<'a> = FuturesUnordered<BoxFuture<'a, HandedOver>>;

struct HandedOver {
    id: i64,
    told: Option<oneshot::Sender<Signature>>,
    signature: Option<Signature>,
}

/// Before a message that was not signed for is handed over once more.
const AGAIN: Duration = Duration::from_millis(200);

/// Before a store that does not answer is asked again.
const STORE_PAUSE: Duration = Duration::from_secs(1);

impl HandoverQueue {
    pub(crate) fn push(&self, entry: HandoverEntry) {
        self.waiting().push_back(entry);
        self.came.notify_one();
    }

    /// Takes a press out that nobody was handed. `false` if it is not there any more.
    pub(crate) fn withdraw(&self, query: &str) -> bool {
        let mut waiting = self.waiting();
        let before = waiting.len();
        waiting.retain(
            |entry| !matches!(entry, HandoverEntry::Press(press, _) if press.query == query),
        );
        waiting.len() < before
    }

    async fn next(&self) -> HandoverEntry {
        loop {
            if let Some(entry) = self.waiting().pop_front() {
                return entry;
            }
            self.came.notified().await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<HandoverEntry>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BrowserAdapter {
    /// Everything that is said and pressed, until `stop`; first what an earlier run left.
    pub(crate) fn hand_over(
        &self,
        stop: CancellationToken,
    ) -> impl Stream<Item = Result<ReceivedEvent, ReceiveError>> + '_ {
        let begin = async move {
            let left = stop.run_until_cancelled(self.left_behind()).await;
            for id in left.unwrap_or_default() {
                self.handover.push(HandoverEntry::Message(id, None));
            }
            self.set_state(ChatState::Connected);
            let flying: InFlight<'_> = FuturesUnordered::new();
            stream::unfold((flying, stop), move |(mut flying, stop)| async move {
                let next = stop.run_until_cancelled(self.next_event(&mut flying)).await;
                if next.is_none() {
                    self.set_state(ChatState::Stopped {
                        why: "asked to".to_owned(),
                    });
                }
                next.map(|received| (Ok(received), (flying, stop)))
            })
        };
        begin.flatten_stream()
    }

    /// Rows that nobody signed for. A store in trouble is waited for: without it nothing is said either.
    async fn left_behind(&self) -> Vec<i64> {
        loop {
            match self.rows.waiting(RowOwner::ThisGateway).await {
                Ok(left) => {
                    // What was said in this run stands in the queue already.
                    let queued: Vec<i64> = self.handover.waiting().iter().filter_map(row).collect();
                    let left = left.into_iter().map(|one| one.message.id);
                    return left.filter(|id| !queued.contains(id)).collect();
                }
                Err(error) => {
                    let why = error.to_string();
                    self.set_state(ChatState::Retrying { why });
                    sleep(STORE_PAUSE).await;
                }
            }
        }
    }

    async fn next_event<'a>(&'a self, flying: &mut InFlight<'a>) -> ReceivedEvent {
        loop {
            let entry = tokio::select! {
                biased;
                Some(handed) = flying.next(), if !flying.is_empty() => {
                    self.settle(handed).await;
                    continue;
                }
                entry = self.handover.next() => entry,
            };
            match entry {
                HandoverEntry::Press(press, receipt) => {
                    let event = ChatEvent::Press(*press);
                    return ReceivedEvent { event, receipt };
                }
                HandoverEntry::Message(id, told) => {
                    if let Some(received) = self.message(id, told, flying).await {
                        return received;
                    }
                }
            }
        }
    }

    async fn message<'a>(
        &'a self,
        id: i64,
        told: Option<oneshot::Sender<Signature>>,
        flying: &mut InFlight<'a>,
    ) -> Option<ReceivedEvent> {
        let found = match self.rows.waiting_message(id).await {
            Ok(found) => found?,
            Err(error) => {
                tracing::warn!(%error, row = id, "what was said cannot be read yet");
                let later = async move {
                    sleep(STORE_PAUSE).await;
                    HandedOver {
                        id,
                        told,
                        signature: None,
                    }
                };
                flying.push(later.boxed());
                return None;
            }
        };
        let Ok(message) = self.incoming(found) else {
            // Nobody gets this far under a name that is none.
            tracing::error!(row = id, "a message of somebody without a name");
            let signature = Some(Signature::TurnedAway);
            let refused = HandedOver {
                id,
                told,
                signature,
            };
            self.settle(refused).await;
            return None;
        };
        let (receipt, waiter) = Receipt::pair();
        let outcome = async move {
            let signature = waiter.signature().await;
            if signature.is_none() {
                sleep(AGAIN).await;
            }
            HandedOver {
                id,
                told,
                signature,
            }
        };
        flying.push(outcome.boxed());
        let event = ChatEvent::Message(message);
        Some(ReceivedEvent { event, receipt })
    }

    async fn settle(&self, handed: HandedOver) {
        let state = match handed.signature {
            Some(Signature::Stored) => BrowserMessageState::Taken,
            Some(Signature::TurnedAway) => BrowserMessageState::TurnedAway,
            None => {
                let again = HandoverEntry::Message(handed.id, handed.told);
                self.handover.push(again);
                return;
            }
        };
        if let Err(error) = self.rows.settle(handed.id, state).await {
            // The next start hands it over once more, under the same name, which the inbox knows.
            tracing::warn!(%error, row = handed.id, "it could not be noted that it was taken");
        }
        if let (Some(told), Some(signature)) = (handed.told, handed.signature) {
            // Whoever said it may have gone.
            let _ = told.send(signature);
        }
        self.changed();
    }

    fn incoming(&self, waiting: WaitingMessage) -> Result<IncomingMessage, InvalidName> {
        let WaitingMessage {
            person,
            conversation,
            key,
            message,
        } = waiting;
        let sender = sender(&person, pass_of(key.as_deref()))?;
        let place = Self::place(&sender.id, conversation)?;
        let files = message.files.iter();
        let attachments = files.map(|file| attachment(file, &person));
        Ok(IncomingMessage {
            account: self.account.clone(),
            update: UpdateId::from(message.id),
            message: MessageId::from(message.id),
            place,
            sender,
            text: message.text,
            reply_to: None,
            mentions_us: true,
            attachments: attachments.collect::<Result<_, _>>()?,
            received_at: message.said_at,
        })
    }
}

/// Whoever signed in as an operator, by the pass that they had when they spoke: nobody else can say or press
/// anything, and whether the pass still holds is asked at the door.
pub(crate) fn sender(person: &str, pass: Option<&str>) -> Result<Sender, InvalidName> {
    let display = person.split_once(':').map_or(person, |(_, name)| name);
    Ok(Sender {
        id: UserId::new(person)?,
        display: display.to_owned(),
        is_bot: false,
        roles: pass
            .map(operator_role)
            .into_iter()
            .collect::<Result<_, _>>()?,
    })
}

/// The pass in the key of what was said.
fn pass_of(key: Option<&str>) -> Option<&str> {
    let (pass, _) = key?.strip_prefix("form:")?.split_once(':')?;
    (!pass.is_empty()).then_some(pass)
}

fn attachment(file: &BrowserFile, person: &str) -> Result<Attachment, InvalidName> {
    Ok(Attachment {
        // With its owner, so that nobody's file is found by another's message.
        id: AttachmentId::new(format!("{}:{person}", file.id))?,
        kind: AttachmentKind::Document,
        name: Some(file.name.clone()),
        mime: file.mime.clone(),
        bytes: Some(file.size),
    })
}

fn row(entry: &HandoverEntry) -> Option<i64> {
    match entry {
        HandoverEntry::Message(id, _) => Some(*id),
        HandoverEntry::Press(..) => None,
    }
}
