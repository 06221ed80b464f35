use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{
    Capabilities, ChatState, MissedMessages, OutgoingFile, ReceiveError, ReceivedEvent, Redelivery,
    ReplyRule, ReportedChanges, TextLimit, UnaskedMessages,
};
use hermetic_redact::Redactor;
use hermetic_store::{MessageEnd, RowOwner};
use hermetic_types::{AccountId, ChatPlace, MessageId, Platform, SystemClock};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;
use crate::delivery::{FetchError, FileSource, OutboxParts};
use crate::message::AcceptedMessage;
use crate::test_lab::TestLab;

/// What a platform makes of one file.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Fails,
    /// It may have arrived.
    Hangs,
    Refused,
    /// The platform wants us to wait, and not a moment.
    Throttled,
}

/// A platform that takes every text, and files as it is told to.
#[derive(Debug)]
struct FakeChat {
    account: AccountId,
    capabilities: Capabilities,
    fates: Mutex<VecDeque<Fate>>,
    /// When there is no fate left.
    then: Fate,
    /// Texts as they are, files as `file: name (caption)`, and every attempt that failed.
    seen: watch::Sender<Vec<String>>,
}

/// Texts and files out, and nothing else.
const CAPABILITIES: Capabilities = Capabilities {
    text: TextLimit::characters(4000),
    edits: false,
    reports_changes: ReportedChanges::NONE,
    buttons: None,
    files_in: None,
    files_out: Some(1 << 20),
    threads: false,
    typing: None,
    redelivery: Redelivery::Always,
    missed: MissedMessages::Repeated,
    send_keys: None,
    ordered_messages: true,
    replies: ReplyRule::Free,
    unasked: UnaskedMessages::AnyTime,
};

impl FakeChat {
    fn new(fates: impl IntoIterator<Item = Fate>, then: Fate) -> Arc<Self> {
        Arc::new(Self::with(CAPABILITIES, fates, then))
    }

    fn with(capabilities: Capabilities, fates: impl IntoIterator<Item = Fate>, then: Fate) -> Self {
        Self {
            account: Platform::Telegram.into(),
            capabilities,
            fates: Mutex::new(fates.into_iter().collect()),
            then,
            seen: watch::Sender::new(Vec::new()),
        }
    }

    fn note(&self, what: String) -> MessageId {
        let mut number = 0;
        self.seen.send_modify(|seen| {
            seen.push(what);
            number = seen.len();
        });
        MessageId::new(number.to_string()).unwrap()
    }

    async fn until(&self, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
        let mut seen = self.seen.subscribe();
        let seen = seen.wait_for(|seen| wanted(seen)).await.unwrap();
        seen.clone()
    }
}

impl Chat for FakeChat {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn state(&self) -> ChatState {
        ChatState::Connected
    }

    fn receive(&self, _: CancellationToken) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        stream::pending().boxed()
    }

    fn send<'a>(
        &'a self,
        _: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        let id = self.note(reply.text.as_str().to_owned());
        ready(Ok(vec![id])).boxed()
    }

    fn send_file<'a>(
        &'a self,
        _: &'a ChatPlace,
        file: &'a OutgoingFile,
    ) -> BoxFuture<'a, Result<MessageId, SendError>> {
        let fate = self.fates.lock().unwrap().pop_front().unwrap_or(self.then);
        let name = &file.name;
        let failure = match fate {
            Fate::Arrives => {
                let caption = file.caption.as_ref().map_or("", OutgoingText::as_str);
                let id = self.note(format!("file: {name} ({caption})"));
                return ready(Ok(id)).boxed();
            }
            Fate::Fails => SendFailure::NotSent("no way there".into()),
            Fate::Hangs => {
                self.note(format!("hangs: {name}"));
                return std::future::pending().boxed();
            }
            Fate::Throttled => SendFailure::Throttled {
                retry_after: Duration::ZERO,
            },
            Fate::Refused => SendFailure::Refused {
                description: "too ugly".to_owned(),
            },
        };
        self.note(format!("failed: {name}"));
        ready(Err(failure.into())).boxed()
    }
}

#[derive(Debug)]
struct FakeFiles;

impl FileSource for FakeFiles {
    fn fetch<'a>(
        &'a self,
        _: Platform,
        _: &'a ConversationKey,
        path: &'a str,
    ) -> BoxFuture<'a, Result<OutgoingFile, FetchError>> {
        let file = OutgoingFile {
            name: path.to_owned(),
            bytes: Bytes::from_static(b"x"),
            caption: None,
        };
        ready(Ok(file)).boxed()
    }

    fn folder(&self, _: Platform) -> &str {
        "/workspace"
    }
}

struct OutboxLab {
    lab: TestLab,
    chat: Arc<FakeChat>,
    outbox: Arc<Outbox>,
    stop: CancellationToken,
    resending: tokio::task::JoinHandle<()>,
}

const PACE: FilePace = FilePace {
    first_attempt: Duration::from_millis(50),
    later_attempt: Duration::from_millis(50),
    first_pause: Duration::from_millis(1),
    longest_pause: Duration::from_millis(5),
    most_tries: 4,
    whole: Duration::from_secs(600),
};

impl OutboxLab {
    async fn new(chat: Arc<FakeChat>, pace: FilePace) -> Self {
        Self::over(TestLab::new().await, chat, pace)
    }

    fn over(lab: TestLab, chat: Arc<FakeChat>, pace: FilePace) -> Self {
        let mut outbox = Outbox::new(OutboxParts {
            chats: &[Arc::clone(&chat) as Arc<dyn Chat>],
            store: &lab.store,
            files: Arc::new(FakeFiles),
            redactor: Redactor::new([], hermetic_redact::RedactorSettings::default()),
            clock: SystemClock::shared(),
            tasks: TaskTracker::new(),
            cut: CancellationToken::new(),
            metrics: crate::GatewayMetrics::default(),
            traces: crate::MessageTraces::default(),
        });
        outbox.pace = pace;
        let (outbox, stop) = (Arc::new(outbox), CancellationToken::new());
        let resending = tokio::spawn({
            let (outbox, stop) = (Arc::clone(&outbox), stop.clone());
            async move { outbox.resend(stop).await }
        });
        Self {
            lab,
            chat,
            outbox,
            stop,
            resending,
        }
    }

    async fn says(&self) -> AcceptedMessage {
        self.lab.says(7, "hi").await
    }

    async fn answer(&self, message: &AcceptedMessage, text: &'static str, files: &[&str]) {
        let files = files.iter().map(|path| (*path).to_owned()).collect();
        let text = Redacted::constant(text);
        let delivered = self
            .outbox
            .deliver_with(message, &text, files, MessageEnd::Answered)
            .await;
        let _ = delivered.unwrap();
    }

    async fn end(self) -> TestLab {
        self.stop.cancel();
        self.resending.await.unwrap();
        self.lab
    }
}

#[tokio::test]
async fn what_was_written_after_a_file_that_does_not_arrive_passes_it() {
    let lab = OutboxLab::new(
        FakeChat::new([], Fate::Fails),
        FilePace {
            first_pause: Duration::from_secs(3600),
            longest_pause: Duration::from_secs(3600),
            whole: Duration::from_secs(36000),
            ..PACE
        },
    )
    .await;
    let message = lab.says().await;
    lab.answer(&message, "here it is", &["a.png"]).await;
    lab.answer(&lab.says().await, "and on", &[]).await;
    let seen = lab.chat.until(|seen| seen.len() >= 3).await;
    assert_eq!(seen, ["here it is", "failed: a.png", "and on"]);
    // The word of a person ends it.
    let given_up = lab.outbox.drop_late_files(message.conversation()).await;
    assert_eq!(given_up.unwrap(), ["a.png"]);
    let lab = lab.end().await;
    assert_eq!(
        lab.store
            .deliveries()
            .due(RowOwner::ThisGateway)
            .await
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn a_file_that_arrives_late_says_so() {
    let lab = OutboxLab::new(FakeChat::new([Fate::Fails; 2], Fate::Arrives), PACE).await;
    lab.answer(&lab.says().await, "here it is", &["a.png", "b.png"])
        .await;
    let files = |seen: &[String]| seen.iter().filter(|one| one.starts_with("file")).count();
    let seen = lab.chat.until(|seen| files(seen) == 2).await;
    let texts = seen.iter().filter(|one| *one == "here it is").count();
    assert_eq!(texts, 1, "{seen:?}");
    for name in ["a.png", "b.png"] {
        let late = format!("file: {name} ({LATE})");
        assert!(seen.contains(&late), "{seen:?}");
    }
}

#[tokio::test]
async fn after_some_attempts_it_is_said_why_and_where_the_file_is() {
    let lab = OutboxLab::new(FakeChat::new([], Fate::Fails), PACE).await;
    lab.answer(&lab.says().await, "here it is", &["out/a.png"])
        .await;
    let said = |seen: &[String]| seen.iter().any(|one| one.contains("was not sent"));
    let seen = lab.chat.until(said).await;
    let word = seen.last().unwrap();
    assert!(word.contains("could not be sent"), "{word}");
    assert!(word.contains("/workspace/out/a.png"), "{word}");
    let tries = seen.iter().filter(|one| one.starts_with("failed")).count();
    assert_eq!(tries, 4);
}

#[tokio::test]
async fn a_platform_that_asks_for_no_pause_gets_one() {
    // No time for a pause of half a second, and time enough for attempts without one.
    let pace = FilePace {
        whole: Duration::from_millis(400),
        ..PACE
    };
    let lab = OutboxLab::new(FakeChat::new([], Fate::Throttled), pace).await;
    lab.answer(&lab.says().await, "here it is", &["a.png"])
        .await;
    let said = |seen: &[String]| seen.iter().any(|one| one.contains("was not sent"));
    let seen = lab.chat.until(said).await;
    let tries = seen.iter().filter(|one| one.starts_with("failed")).count();
    assert_eq!(tries, 2, "with its text, and once more: {seen:?}");
}

#[tokio::test]
async fn a_platform_that_takes_a_file_and_never_answers_holds_up_nothing() {
    let lab = OutboxLab::new(FakeChat::new([Fate::Hangs], Fate::Arrives), PACE).await;
    lab.answer(&lab.says().await, "here it is", &["a.png"])
        .await;
    lab.answer(&lab.says().await, "and on", &[]).await;
    let arrived = |seen: &[String]| seen.iter().any(|one| one.starts_with("file"));
    let seen = lab.chat.until(arrived).await;
    // It may have arrived the first time.
    assert!(
        seen.iter().any(|one| one.contains("Possible duplicate")),
        "{seen:?}"
    );
    assert!(seen.contains(&"and on".to_owned()), "{seen:?}");
}

#[tokio::test]
async fn a_file_that_is_refused_is_not_tried_again() {
    let lab = OutboxLab::new(FakeChat::new([], Fate::Refused), PACE).await;
    lab.answer(&lab.says().await, "here it is", &["a.png"])
        .await;
    let seen = lab.chat.until(|seen| seen.len() >= 3).await;
    assert!(
        seen[2].contains("too ugly") && seen[2].contains("/workspace/a.png"),
        "{seen:?}"
    );
    assert_eq!(
        lab.lab
            .store
            .deliveries()
            .due(RowOwner::ThisGateway)
            .await
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn restarts_give_a_file_no_more_attempts() {
    let mut lab = TestLab::new().await;
    let message = lab.says(7, "hi").await;
    let patient = FilePace {
        first_pause: Duration::from_secs(3600),
        longest_pause: Duration::from_secs(3600),
        whole: Duration::from_secs(36000),
        ..PACE
    };
    let first = OutboxLab::over(lab, FakeChat::new([], Fate::Fails), patient);
    first.answer(&message, "here it is", &["a.png"]).await;
    lab = first.end().await;
    let mut tries = 1;
    for _ in 0..PACE.most_tries {
        let chat = FakeChat::new([], Fate::Fails);
        let again = OutboxLab::over(lab, Arc::clone(&chat), patient);
        again.outbox.take_over().await.unwrap();
        let seen = chat.until(|seen| !seen.is_empty()).await;
        assert!(!seen.contains(&"here it is".to_owned()), "{seen:?}");
        tries += 1;
        if tries == PACE.most_tries {
            let said = |seen: &[String]| seen.iter().any(|one| one.contains("was not sent"));
            chat.until(said).await;
            again.end().await;
            return;
        }
        lab = again.end().await;
    }
    panic!("tried for ever");
}

/// What is shown of a reply that an earlier process had begun to send.
async fn shown_of_one_begun_before(capabilities: Capabilities) -> String {
    let chat = Arc::new(FakeChat::with(capabilities, [], Fate::Arrives));
    let lab = OutboxLab::new(chat, FilePace::default()).await;
    let message = lab.says().await;
    let address = DeliveryAddress {
        place: message.said().place.clone(),
        reply_to: None,
        draft: None,
        files: Vec::new(),
        conversation: None,
        late: false,
    };
    let address = serde_json::to_string(&address).unwrap();
    let (deliveries, now) = (lab.lab.store.deliveries(), lab.outbox.now());
    let written = ("telegram", address.as_str(), "hello");
    let queued = deliveries.queue_and_end(message.row(), MessageEnd::Answered, written, now);
    deliveries.begin(queued.await.unwrap()).await.unwrap();
    lab.outbox.take_over().await.unwrap();
    let seen = lab.chat.until(|seen| !seen.is_empty()).await;
    lab.end().await;
    seen.concat()
}

#[tokio::test]
async fn where_a_send_has_a_key_a_second_one_needs_no_mark() {
    let marked = format!("{POSSIBLE_DUPLICATE}hello");
    assert_eq!(shown_of_one_begun_before(CAPABILITIES).await, marked);
    let with_keys = |known_for| Capabilities {
        send_keys: Some(known_for),
        ..CAPABILITIES
    };
    let hour = Duration::from_secs(3600);
    assert_eq!(shown_of_one_begun_before(with_keys(hour)).await, "hello");
    // The platform has forgotten the key by now.
    let at_once = with_keys(Duration::ZERO);
    assert_eq!(shown_of_one_begun_before(at_once).await, marked);
}
