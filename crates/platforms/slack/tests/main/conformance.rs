//! Slack against the contract of every chat.

use std::sync::{Arc, Mutex};

use hermetic_chat::InMemoryState;
use hermetic_chat::conformance::{ChatCandidate, SendFate, StandIn};
use hermetic_slack::SlackAdapter;
use hermetic_testkit::slack::{Failure, SlackServer, WhileAway};
use hermetic_types::{AccountId, ChatPlace, MessageId, Platform, UserId};
use serde_json::{Value, json};

use crate::lab::{ALICE, ALICES_CHANNEL, config, private, ts_of};

hermetic_chat::conformance!(candidate);

async fn candidate(name: &str) -> ChatCandidate {
    let server = SlackServer::start().await.unwrap();
    // The suite speaks before the first socket is open.
    server.while_away(WhileAway::Kept);
    let mut config = config(&server.url());
    config.account = AccountId::new(Platform::Slack, name.parse().unwrap());
    let slack = SlackAdapter::new(config, Arc::new(InMemoryState::default())).unwrap();
    ChatCandidate {
        chat: Arc::new(slack),
        stand_in: Box::new(SlackStandIn {
            server,
            last: Mutex::new(Value::Null),
        }),
    }
}

#[derive(Debug)]
struct SlackStandIn {
    server: SlackServer,
    last: Mutex<Value>,
}

impl StandIn for SlackStandIn {
    fn person(&self) -> UserId {
        UserId::new(ALICE).unwrap()
    }

    fn place(&self) -> ChatPlace {
        private()
    }

    fn says(&self, text: &str) {
        let mut event = self
            .server
            .writes(ALICES_CHANNEL, ALICE, json!({ "text": text }));
        event["channel"] = json!(ALICES_CHANNEL);
        self.server.event(event.clone());
        *self.last.lock().unwrap() = event;
    }

    fn presses(&self, message: &MessageId, data: &str) {
        self.server
            .presses(ALICE, ALICES_CHANNEL, &ts_of(message), data);
    }

    fn repeats(&self) {
        self.server.event(self.last.lock().unwrap().clone());
    }

    fn sends_garbage(&self) {
        self.server.send_text("{ this is no JSON");
        self.server.send_text("[]");
        self.server
            .event(json!({ "type": "message", "channel": ALICES_CHANNEL, "ts": 7, "user": [] }));
        self.server.envelope("events_api", json!("no payload"));
    }

    fn edits(&self, message: &MessageId, text: &str) {
        self.server.edits(ALICES_CHANNEL, &ts_of(message), text);
    }

    fn deletes(&self, message: &MessageId) {
        self.server.deletes(ALICES_CHANNEL, &ts_of(message));
    }

    fn cuts(&self) -> bool {
        self.server.cut_sockets();
        true
    }

    fn decide_next_send(&self, fate: SendFate) {
        let failure = match fate {
            SendFate::Refused => Failure::Refuse("is_archived"),
            SendFate::ArrivesUnconfirmed => Failure::DropAfter,
        };
        self.server.fail_next("chat.postMessage", failure);
    }

    fn shown(&self) -> Vec<String> {
        self.server.shown(ALICES_CHANNEL)
    }
}
