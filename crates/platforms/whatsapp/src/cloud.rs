//! A business number, by Meta's Cloud API.

mod check;
mod config;
mod files;
mod graph;
mod intake;
mod media_kind;
mod message;
mod newest_message;
mod notification;
mod people;
mod refusal;
mod requests;
mod send;
mod signature;
mod status;
mod typing;
mod undelivered;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{
    AccountCheck, AttachmentStream, Backoff, ButtonLimits, Capabilities, Chat, ChatReply,
    ChatState, CheckError, ChoiceShape, DownloadError, HttpIntake, MissedMessages, OutgoingFile,
    OutgoingText, ReceiveError, ReceivedEvent, RecentKeys, Redelivery, RefusalLog, ReplyRule,
    ReportedChanges, SendError, SendFailure, TextLimit, UnaskedMessages,
};
use hermetic_types::{
    AccountId, Attachment, ButtonPress, ChatId, ChatKind, ChatPlace, MessageId, Secret,
    SharedClock, Timestamp, UserId,
};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard, mpsc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::WhatsAppHearing;
use crate::pace::SendPace;
use graph::{GraphApi, GraphCallError};
use newest_message::NewestMessage;
use people::CloudPeople;
use status::DeliveryStatuses;
use typing::LastMessage;
use undelivered::UndeliveredNotes;

pub use config::{CloudConfig, CloudConfigError, CloudTiming, GraphVersion, MessageTemplate};
pub(crate) use message::{CloudReader, CloudSender};
pub(crate) use notification::CloudNotification;

/// What WhatsApp takes in one message.
const MESSAGE: TextLimit = TextLimit::utf16(4096);
/// The same above buttons.
const CHOICE_TEXT: TextLimit = TextLimit::utf16(1024);

/// For so long after somebody wrote Meta takes words that it has not approved.
const FREE_WORDS: Duration = Duration::from_secs(24 * 3600);

const CAPABILITIES: Capabilities = Capabilities {
    text: MESSAGE,
    edits: false,
    // Of numbers that are used in the WhatsApp Business app as well; of others Meta tells neither.
    reports_changes: ReportedChanges::ALL,
    buttons: Some(ButtonLimits {
        most: requests::MOST_ROWS,
        data_bytes: requests::ROW_ID_BYTES,
        shown: ChoiceShape::Buttons,
    }),
    files_in: Some(files::FILE_BYTES),
    files_out: Some(files::FILE_BYTES),
    threads: false,
    typing: Some(Duration::from_secs(25)),
    redelivery: Redelivery::Always,
    missed: MissedMessages::Repeated,
    send_keys: None,
    ordered_messages: false,
    replies: ReplyRule::Free,
    unasked: UnaskedMessages::After(FREE_WORDS),
};

/// Events that wait to be stored.
const WAITING: usize = 64;
/// Messages that are known to be stored, so that a repeated notification is not handed out again. As
/// many as Hermes remembers.
const KNOWN_MESSAGES: usize = 5000;
/// Chats whose last message is remembered.
const KNOWN_CHATS: usize = 5000;

/// One business number.
#[derive(Debug)]
pub struct WhatsAppCloud {
    account: AccountId,
    phone_number_id: String,
    /// Where messages go, below the address of the API; and files.
    messages: String,
    media: String,
    app_secret: Secret,
    verify_token: Option<Secret>,
    webhook_path: String,
    version: GraphVersion,
    template: Option<MessageTemplate>,
    hearing: WhatsAppHearing,
    timing: CloudTiming,
    clock: SharedClock,
    graph: GraphApi,
    pace: SendPace,
    people: CloudPeople,
    statuses: DeliveryStatuses,
    refusals: RefusalLog,
    newest: NewestMessage,
    undelivered: UndeliveredNotes,
    state: Mutex<ChatState>,
    stored: Mutex<RecentKeys<MessageId, ()>>,
    last: Mutex<RecentKeys<ChatId, LastMessage>>,
    hand_in: mpsc::Sender<ReceivedEvent>,
    take_out: AsyncMutex<mpsc::Receiver<ReceivedEvent>>,
    /// Other numbers of the same app, for which Meta calls here.
    others: OnceLock<Vec<Arc<Self>>>,
    /// Meta calls at another number's address for this one.
    is_answered_for: AtomicBool,
}

impl WhatsAppCloud {
    pub fn new(config: CloudConfig) -> Result<Self, CloudConfigError> {
        config.check()?;
        if config.version.is_expired() {
            warn!(
                account = %config.account, version = %config.version, newest = %GraphVersion::DEFAULT,
                "this version of the Graph API has expired; leave api_version out, or write a newer one"
            );
        }
        let graph = GraphApi::new(&config)?;
        let (hand_in, take_out) = mpsc::channel(WAITING);
        Ok(Self {
            graph,
            messages: format!("{}/messages", config.phone_number_id),
            media: format!("{}/media", config.phone_number_id),
            phone_number_id: config.phone_number_id,
            account: config.account,
            app_secret: config.app_secret,
            verify_token: config.verify_token,
            webhook_path: config.webhook_path,
            version: config.version,
            template: config.template,
            hearing: config.hearing,
            timing: config.timing,
            clock: config.clock,
            pace: SendPace::default(),
            people: CloudPeople::new(config.listed_numbers, Arc::clone(&config.state)),
            statuses: DeliveryStatuses::default(),
            refusals: RefusalLog::default(),
            newest: NewestMessage::new(Arc::clone(&config.state)),
            undelivered: UndeliveredNotes::new(config.state),
            state: Mutex::new(ChatState::Starting),
            stored: Mutex::new(RecentKeys::new(KNOWN_MESSAGES)),
            last: Mutex::new(RecentKeys::new(KNOWN_CHATS)),
            hand_in,
            take_out: AsyncMutex::new(take_out),
            others: OnceLock::new(),
            is_answered_for: AtomicBool::new(false),
        })
    }

    /// Takes what is posted for other numbers of the same app, too: Meta has one address for all of them.
    /// Said once, before anything is served.
    pub fn answers_for(&self, others: &[Arc<Self>]) {
        for other in others {
            other.is_answered_for.store(true, Ordering::SeqCst);
        }
        // Whoever said it first is right.
        let _ = self.others.set(others.to_vec());
    }

    /// This number, and those that it answers for.
    fn numbers(&self) -> impl Iterator<Item = &Self> {
        let others = self.others.get().into_iter().flatten();
        std::iter::once(self).chain(others.map(|other| &**other))
    }

    fn set_state(&self, state: ChatState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn next<'a>(
        &'a self,
        stage: CloudStage<'a>,
    ) -> Option<(Result<ReceivedEvent, ReceiveError>, CloudStage<'a>)> {
        let mut inbox = match stage {
            CloudStage::Introduce => {
                if let Err(error) = self.introduce().await {
                    return Some((Err(error), CloudStage::Over));
                }
                // Held for as long as somebody listens: of two at once, neither would get all of
                // it.
                self.take_out.lock().await
            }
            CloudStage::Listen(inbox) => inbox,
            CloudStage::Over => return None,
        };
        let received = inbox.recv().await?;
        Some((Ok(received), CloudStage::Listen(inbox)))
    }

    /// Asks Meta who we are, until it answers. What is posted meanwhile waits and is not lost.
    async fn introduce(&self) -> Result<(), ReceiveError> {
        let mut backoff = Backoff::new(self.timing.retry.0, self.timing.retry.1);
        loop {
            let error = match self.number().await {
                Ok(number) => {
                    let (number, name) = (number.display_phone_number, number.verified_name);
                    info!(account = %self.account, number, name, "meta knows this number");
                    self.set_state(ChatState::Connected);
                    return Ok(());
                }
                Err(error) => error,
            };
            let why = error.to_string();
            if let GraphCallError::Refused(refusal) = &error
                && refusal.is_about_the_token()
            {
                let description = refusal.words();
                self.set_state(ChatState::Stopped { why });
                return Err(ReceiveError::Ended {
                    account: self.account.clone(),
                    description,
                });
            }
            warn!(account = %self.account, %error, "meta did not say who we are");
            self.set_state(ChatState::Retrying { why });
            sleep(backoff.next_wait()).await;
        }
    }
}

enum CloudStage<'a> {
    Introduce,
    Listen(AsyncMutexGuard<'a, mpsc::Receiver<ReceivedEvent>>),
    Over,
}

impl Chat for WhatsAppCloud {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn state(&self) -> ChatState {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clone()
    }

    fn check(&self) -> BoxFuture<'_, Result<AccountCheck, CheckError>> {
        self.check_account().boxed()
    }

    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        let listen = move |stage| {
            let stop = stop.clone();
            async move {
                // What is left in the channel then was not stored, so Meta was not told that we
                // have it and posts it again.
                let next = stop.run_until_cancelled(self.next(stage)).await;
                if next.is_none() {
                    self.set_state(ChatState::Stopped {
                        why: "asked to".to_owned(),
                    });
                }
                next.flatten()
            }
        };
        stream::unfold(CloudStage::Introduce, listen).boxed()
    }

    fn intake(self: Arc<Self>) -> Option<HttpIntake> {
        if self.is_answered_for.load(Ordering::SeqCst) {
            return None;
        }
        Some(HttpIntake {
            path: self.webhook_path.trim_matches('/').to_owned(),
            router: intake::router(self),
        })
    }

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        self.send_reply(place, reply).boxed()
    }

    fn typing<'a>(&'a self, place: &'a ChatPlace) -> BoxFuture<'a, Result<(), SendError>> {
        self.show_typing(place).boxed()
    }

    /// As a message under the question: WhatsApp shows nothing else.
    fn answer_press<'a>(
        &'a self,
        press: &'a ButtonPress,
        notice: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        async move {
            let reply = ChatReply {
                reply_to: Some(press.message.clone()),
                ..ChatReply::text(notice.clone())
            };
            self.send_reply(&press.place, &reply).await.map(drop)
        }
        .boxed()
    }

    fn send_file<'a>(
        &'a self,
        place: &'a ChatPlace,
        file: &'a OutgoingFile,
    ) -> BoxFuture<'a, Result<MessageId, SendError>> {
        self.upload_and_send(place, file).boxed()
    }

    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        limit: u64,
    ) -> BoxFuture<'a, Result<AttachmentStream, DownloadError>> {
        self.fetch(attachment, limit).boxed()
    }

    /// A private chat is named after the person in it.
    fn private_place<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<ChatPlace, SendError>> {
        async move {
            let chat = self.people.private_chat(user).await;
            let chat = chat.ok_or_else(|| SendFailure::Refused {
                description: format!("{:?} is nobody on WhatsApp", user.as_str()),
            })?;
            Ok(ChatPlace {
                chat,
                kind: ChatKind::Dm,
                thread: None,
            })
        }
        .boxed()
    }
}
