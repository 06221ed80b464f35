//! The platforms on which the story is told.

use hermetic_testkit::discord::{BOT_ID, CHANNEL, DiscordServer};
use hermetic_testkit::signal_server::{ALICE, ReceiveMode, SignalServer};
use hermetic_testkit::slack::{self, SlackServer, WhileAway};
use hermetic_testkit::telegram::TelegramServer;
use hermetic_testkit::whatsapp::{Person, WhatsAppServer};
use hermetic_types::{ConversationKey, Timestamp};

use crate::lab::{Builder, Lab};
use crate::matrix::Homeserver;

const USER: u64 = 7;

/// A platform, and somebody there who writes.
pub(super) trait Stage {
    type Said;

    fn build(&self, builder: Builder) -> Builder;

    /// After each start: until the platform hands over what happens.
    async fn connect(&self, _lab: &Lab) {}

    /// The same for a gateway that may be dead by now.
    async fn connect_if_it_lives(&self, _lab: &Lab) {}

    /// Until the platform has noticed that nobody is there.
    async fn is_left(&self) {}

    async fn says(&self, words: &str) -> Self::Said;

    /// What people see of us, each message as it was changed last.
    async fn shown(&self) -> Vec<String>;

    /// Whether it handed a message over and does not have it any more, while we never stored it.
    async fn has_forgotten(&self, _lab: &Lab, _said: &Self::Said) -> bool {
        false
    }
}

pub(super) struct TelegramStage(TelegramServer);

impl TelegramStage {
    pub(super) async fn new() -> Self {
        Self(TelegramServer::start().await.unwrap())
    }
}

impl Stage for TelegramStage {
    type Said = ();

    fn build(&self, builder: Builder) -> Builder {
        builder.telegram(&self.0)
    }

    async fn says(&self, words: &str) {
        self.0.says(USER as i64, words);
    }

    async fn shown(&self) -> Vec<String> {
        self.0.shown(USER as i64)
    }
}

/// In a channel, where each answer gets a thread.
pub(super) struct DiscordStage(DiscordServer);

impl DiscordStage {
    pub(super) async fn new() -> Self {
        Self(DiscordServer::start().await.unwrap())
    }
}

impl Stage for DiscordStage {
    type Said = ();

    fn build(&self, builder: Builder) -> Builder {
        builder.discord(&self.0)
    }

    async fn connect(&self, _: &Lab) {
        self.0.wait_for_bot().await;
    }

    async fn says(&self, words: &str) {
        let text = format!("<@{BOT_ID}> {words}");
        self.0.says_in(CHANNEL, USER, &text);
    }

    async fn shown(&self) -> Vec<String> {
        self.0.shown_anywhere()
    }
}

/// In a channel; what is said while nobody is connected is lost but for the history.
pub(super) struct SlackStage(SlackServer);

impl SlackStage {
    pub(super) async fn new() -> Self {
        let server = SlackServer::start().await.unwrap();
        server.while_away(WhileAway::Lost);
        Self(server)
    }
}

impl Stage for SlackStage {
    type Said = ();

    fn build(&self, builder: Builder) -> Builder {
        builder.slack(&self.0)
    }

    async fn connect(&self, _: &Lab) {
        self.0.wait_for_open_sockets(1).await;
    }

    async fn is_left(&self) {
        self.0.wait_for_open_sockets(0).await;
    }

    async fn says(&self, words: &str) {
        self.0.mentions(slack::CHANNEL, "U0ALICE", words);
    }

    async fn shown(&self) -> Vec<String> {
        let messages = self.0.messages(slack::CHANNEL).into_iter();
        messages.map(|(_, text)| text).collect()
    }
}

pub(super) struct WhatsAppStage(WhatsAppServer);

const WHATSAPP_USER: Person = Person {
    id: "US.13491208655302741918",
    number: Some("16505551234"),
    name: "Alice",
};

impl WhatsAppStage {
    pub(super) async fn new() -> Self {
        Self(WhatsAppServer::start().await.unwrap())
    }

    async fn subscribe(&self, lab: &Lab) -> u16 {
        let url = format!("http://{}/whatsapp/webhook", lab.intake());
        self.0.subscribe(&url).await.0
    }
}

impl Stage for WhatsAppStage {
    type Said = ();

    fn build(&self, builder: Builder) -> Builder {
        let builder = builder.access("WHATSAPP_CLOUD_ALLOWED_USERS=16505551234");
        builder.whatsapp(&self.0)
    }

    /// The port is another after each start.
    async fn connect(&self, lab: &Lab) {
        assert_eq!(self.subscribe(lab).await, 200);
    }

    async fn connect_if_it_lives(&self, lab: &Lab) {
        self.subscribe(lab).await;
    }

    async fn says(&self, words: &str) {
        self.0.says(WHATSAPP_USER, words);
    }

    async fn shown(&self) -> Vec<String> {
        let sent = self.0.sent();
        sent.iter().map(|sent| sent.text().to_owned()).collect()
    }
}

/// On a real homeserver, which knows a second sending of one message by its transaction.
pub(super) struct MatrixStage {
    home: Homeserver,
    room: String,
}

impl MatrixStage {
    /// `None` where there is no homeserver, which is said.
    pub(super) async fn find(test: &str) -> Option<Self> {
        let home = Homeserver::find(test).await?;
        let room = home.alice.opens_private(&home.bot).await;
        Some(Self { home, room })
    }
}

impl Stage for MatrixStage {
    type Said = ();

    fn build(&self, builder: Builder) -> Builder {
        builder.matrix(self.home.proxy.url(), &self.home.bot, &self.home.alice)
    }

    async fn connect(&self, _: &Lab) {
        let bot = self.home.bot.user();
        self.home
            .alice
            .waits_until_member(&self.room, bot, "join")
            .await;
    }

    async fn says(&self, words: &str) {
        self.home.alice.says(&self.room, words).await;
    }

    async fn shown(&self) -> Vec<String> {
        let shown = self.home.alice.shown(&self.room, self.home.bot.user());
        shown.await.into_iter().map(|one| one.text).collect()
    }
}

/// The daemon hands a message over once and forgets it.
pub(super) struct SignalStage(SignalServer);

impl SignalStage {
    pub(super) async fn new() -> Self {
        let mode = ReceiveMode::OnConnection;
        Self(SignalServer::start(mode).await.unwrap())
    }
}

impl Stage for SignalStage {
    type Said = u64;

    fn build(&self, builder: Builder) -> Builder {
        builder.signal(&self.0.url())
    }

    async fn connect(&self, _: &Lab) {
        self.0.wait_for_listeners(1).await;
    }

    async fn is_left(&self) {
        self.0.wait_for_listeners(0).await;
    }

    async fn says(&self, words: &str) -> u64 {
        self.0.says(ALICE, words)
    }

    async fn shown(&self) -> Vec<String> {
        let sent = self.0.calls("send");
        let texts = sent.iter().map(|call| call.params["message"].as_str());
        texts.flatten().map(str::to_owned).collect()
    }

    /// The inbox takes its name only if it is not there.
    async fn has_forgotten(&self, lab: &Lab, said: &u64) -> bool {
        if self.0.still_has(*said) {
            return false;
        }
        let inbox = lab.store().await.inbox();
        let name = format!("{said}/{}", ALICE.uuid);
        let (nobody, now) = (ConversationKey::new("nobody"), Timestamp::from_millis(0));
        let new = inbox.accept("signal", &name, &nobody, "{}", now).await;
        let Some(row) = new.unwrap() else {
            return false;
        };
        let end = hermetic_store::MessageEnd::Refused;
        inbox.end(row, end, None, now).await.unwrap();
        true
    }
}
