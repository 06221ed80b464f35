//! A platform that hands nothing over again: what a gap took is swept from its history, under the names
//! that live events have.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{
    AdapterState, Capabilities, ChannelPositions, Chat, ChatEvent, ChatReply, ChatState,
    InMemoryState, MissedMessages, Position, Receipt, ReceiveError, ReceivedEvent, Redelivery,
    ReplyRule, ReportedChanges, SendError, TextLimit, UnaskedMessages,
};
use hermetic_types::{
    AccountId, ChatId, ChatKind, ChatPlace, IncomingMessage, MessageId, Platform, Sender, UpdateId,
    UserId,
};
use tokio_util::sync::CancellationToken;

const CHANNEL: i64 = 7;

/// The platform: a history that keeps everything, and a socket that does not.
#[derive(Debug, Default)]
struct LossyPlatform {
    history: Mutex<Vec<String>>,
    socket: Mutex<Vec<Frame>>,
}

/// What comes over the socket.
#[derive(Clone, Copy, Debug)]
enum Frame {
    Message(Position),
    /// It was away, and nobody knows for how long.
    Reconnected,
}

impl LossyPlatform {
    /// Said while the socket is away.
    fn misses(&self, text: &str) -> Position {
        let mut history = self.history.lock().unwrap();
        history.push(text.to_owned());
        Position::try_from(history.len()).unwrap()
    }

    fn says(&self, text: &str) {
        let at = self.misses(text);
        self.socket.lock().unwrap().push(Frame::Message(at));
    }

    fn reconnects(&self) {
        self.socket.lock().unwrap().push(Frame::Reconnected);
    }

    fn last(&self) -> Position {
        Position::try_from(self.history.lock().unwrap().len()).unwrap()
    }

    fn text(&self, at: Position) -> String {
        let index = usize::try_from(at - 1).unwrap();
        self.history.lock().unwrap()[index].clone()
    }
}

#[derive(Debug)]
struct SweepingChat {
    account: AccountId,
    platform: Arc<LossyPlatform>,
    positions: Arc<ChannelPositions>,
}

const CAPABILITIES: Capabilities = Capabilities {
    text: TextLimit::characters(2000),
    edits: false,
    reports_changes: ReportedChanges::NONE,
    buttons: None,
    files_in: None,
    files_out: None,
    threads: false,
    typing: None,
    redelivery: Redelivery::Never,
    missed: MissedMessages::Lost,
    send_keys: None,
    ordered_messages: true,
    replies: ReplyRule::Free,
    unasked: UnaskedMessages::AnyTime,
};

impl SweepingChat {
    async fn new(platform: &Arc<LossyPlatform>, state: &Arc<dyn AdapterState>) -> Self {
        let positions = ChannelPositions::load(Arc::clone(state)).await.unwrap();
        Self {
            account: Platform::Discord.into(),
            platform: Arc::clone(platform),
            positions: Arc::new(positions),
        }
    }

    async fn sweep(&self) -> Vec<ReceivedEvent> {
        let mut found = Vec::new();
        for (_, position) in self.positions.begin_sweep() {
            for at in position + 1..=self.platform.last() {
                found.push(self.hand_out(at).await);
            }
        }
        self.positions.end_sweep().await.unwrap();
        found
    }

    async fn hand_out(&self, at: Position) -> ReceivedEvent {
        let channel = ChatId::from(CHANNEL);
        self.positions.hand_out(&channel, at).await.unwrap();
        let (receipt, counterfoil) = Receipt::pair();
        let positions = Arc::clone(&self.positions);
        tokio::spawn(async move { positions.settle(&channel, at, counterfoil).await });
        ReceivedEvent {
            event: ChatEvent::Message(self.message(at)),
            receipt,
        }
    }

    fn message(&self, at: Position) -> IncomingMessage {
        let name = format!("{CHANNEL}:{at}");
        IncomingMessage {
            account: self.account.clone(),
            update: UpdateId::new(name).unwrap(),
            message: MessageId::new(at.to_string()).unwrap(),
            place: ChatPlace {
                chat: ChatId::from(CHANNEL),
                kind: ChatKind::Channel,
                thread: None,
            },
            sender: Sender {
                id: UserId::from(42),
                display: String::new(),
                is_bot: false,
                roles: Vec::new(),
            },
            text: self.platform.text(at),
            reply_to: None,
            mentions_us: true,
            attachments: Vec::new(),
            received_at: "2026-11-17T12:00:00Z".parse().unwrap(),
        }
    }
}

impl Chat for SweepingChat {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn state(&self) -> ChatState {
        ChatState::Connected
    }

    fn receive(&self, _: CancellationToken) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        let frames = std::mem::take(&mut *self.platform.socket.lock().unwrap());
        let first = stream::once(async { Frame::Reconnected });
        let events = first
            .chain(stream::iter(frames))
            .then(async |frame| match frame {
                Frame::Message(at) => vec![self.hand_out(at).await],
                Frame::Reconnected => self.sweep().await,
            });
        events.flat_map(stream::iter).map(Ok).boxed()
    }

    fn send<'a>(
        &'a self,
        _: &'a ChatPlace,
        _: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        ready(Ok(Vec::new())).boxed()
    }
}

/// What a gateway does: each key once, and what is broken is not signed.
#[derive(Default)]
struct Ledger {
    done: HashSet<UpdateId>,
    heard: Vec<String>,
    broken: Option<&'static str>,
}

impl Ledger {
    async fn listen(&mut self, chat: &SweepingChat) {
        let mut events = chat.receive(CancellationToken::new());
        while let Some(received) = events.next().await {
            let received = received.unwrap();
            let ChatEvent::Message(message) = received.event else {
                continue;
            };
            if self.broken == Some(message.text.as_str()) {
                continue;
            }
            if self.done.insert(message.update) {
                self.heard.push(message.text);
            }
            received.receipt.stored();
            // The position is moved by a task of the adapter.
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn what_a_gap_took_comes_once() {
    let platform = Arc::new(LossyPlatform::default());
    let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
    let mut ledger = Ledger::default();

    let chat = SweepingChat::new(&platform, &state).await;
    platform.says("one");
    platform.misses("two");
    platform.reconnects();
    platform.says("three");
    ledger.listen(&chat).await;
    assert_eq!(ledger.heard, ["one", "two", "three"]);

    // Away for a while, and the store is broken for one of what came meanwhile.
    platform.misses("four");
    platform.misses("five");
    ledger.broken = Some("four");
    ledger
        .listen(&SweepingChat::new(&platform, &state).await)
        .await;
    assert_eq!(ledger.heard[3..], ["five"]);

    ledger.broken = None;
    platform.says("six");
    ledger
        .listen(&SweepingChat::new(&platform, &state).await)
        .await;
    assert_eq!(ledger.heard[4..], ["four", "six"]);
    assert_eq!(ledger.done.len(), 6);

    // Nothing is left to sweep.
    let last = SweepingChat::new(&platform, &state).await;
    assert_eq!(last.positions.begin_sweep(), [(ChatId::from(CHANNEL), 6)]);
}
