//! Discord against the contract of every chat.

use std::sync::{Arc, Mutex};

use hermetic_chat::InMemoryState;
use hermetic_chat::conformance::{ChatCandidate, SendFate, StandIn};
use hermetic_discord::DiscordAdapter;
use hermetic_testkit::discord::{CREATE_MESSAGE, DiscordServer, Failure};
use hermetic_types::{AccountId, ChatKind, ChatPlace, MessageId, Platform, UserId};
use serde_json::json;

use crate::lab::{ALICE, config, place};

hermetic_chat::conformance!(candidate);

async fn candidate(name: &str) -> ChatCandidate {
    let server = DiscordServer::start().await.unwrap();
    server.wait_for_first_bot();
    let mut config = config(&server.url());
    config.account = AccountId::new(Platform::Discord, name.parse().unwrap());
    let state = Arc::new(InMemoryState::default());
    let channel = server.private_channel(ALICE);
    ChatCandidate {
        chat: Arc::new(DiscordAdapter::new(config, state).unwrap()),
        stand_in: Box::new(DiscordStandIn {
            server,
            channel,
            said: Mutex::default(),
        }),
    }
}

#[derive(Debug)]
struct DiscordStandIn {
    server: DiscordServer,
    channel: u64,
    /// What was said last.
    said: Mutex<u64>,
}

impl StandIn for DiscordStandIn {
    fn person(&self) -> UserId {
        UserId::new(ALICE.to_string()).unwrap()
    }

    fn place(&self) -> ChatPlace {
        place(self.channel, ChatKind::Dm, None)
    }

    fn says(&self, text: &str) {
        *self.said.lock().unwrap() = self.server.says(ALICE, text);
    }

    fn presses(&self, message: &MessageId, data: &str) {
        let message = message.as_str().parse().unwrap();
        self.server.presses(ALICE, self.channel, message, data);
    }

    fn repeats(&self) {
        let said = *self.said.lock().unwrap();
        self.server.repeats(self.channel, said);
    }

    fn sends_garbage(&self) {
        self.server.garbage("{ no json");
        self.server.garbage("[1, 2]");
        self.server.dispatch("MESSAGE_CREATE", json!({ "id": 5 }));
        self.server.dispatch("MESSAGE_CREATE", json!("what"));
        self.server.dispatch("NOBODY_KNOWS", json!({}));
    }

    fn edits(&self, message: &MessageId, text: &str) {
        let message = message.as_str().parse().unwrap();
        self.server.edits(self.channel, message, text);
    }

    fn deletes(&self, message: &MessageId) {
        let message = message.as_str().parse().unwrap();
        self.server.deletes(self.channel, message);
    }

    fn cuts(&self) -> bool {
        self.server.cut();
        true
    }

    fn decide_next_send(&self, fate: SendFate) {
        let failure = match fate {
            SendFate::Refused => Failure::Refuse {
                status: 403,
                code: 50007,
                message: "Cannot send messages to this user",
            },
            SendFate::ArrivesUnconfirmed => Failure::DropAfter,
        };
        self.server.fail_next(CREATE_MESSAGE, failure);
    }

    fn shown(&self) -> Vec<String> {
        self.server.shown(self.channel)
    }
}
