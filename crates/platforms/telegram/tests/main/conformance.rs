//! Telegram against the contract of every chat.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;

use hermetic_chat::conformance::{ChatCandidate, SendFate, StandIn};
use hermetic_telegram::TelegramAdapter;
use hermetic_testkit::telegram::{Failure, TelegramServer, visible_text};
use hermetic_types::{AccountId, ChatPlace, MessageId, Platform, UserId};
use serde_json::{Value, json};

use crate::lab::{config, private};

hermetic_chat::conformance!(candidate);

const ALICE: i64 = 7;

async fn candidate(name: &str) -> ChatCandidate {
    let server = TelegramServer::start().await.unwrap();
    let mut config = config(&server.url());
    config.account = AccountId::new(Platform::Telegram, name.parse().unwrap());
    ChatCandidate {
        chat: Arc::new(TelegramAdapter::new(config).unwrap()),
        stand_in: Box::new(TelegramStandIn {
            server,
            last: Mutex::new(Value::Null),
        }),
    }
}

#[derive(Debug)]
struct TelegramStandIn {
    server: TelegramServer,
    last: Mutex<Value>,
}

impl StandIn for TelegramStandIn {
    fn person(&self) -> UserId {
        UserId::from(ALICE)
    }

    fn place(&self) -> ChatPlace {
        private(ALICE)
    }

    fn says(&self, text: &str) {
        let mut update = json!({ "message": {
            "message_id": 1000,
            "date": 1_700_000_000,
            "chat": { "id": ALICE, "type": "private" },
            "from": { "id": ALICE, "is_bot": false, "first_name": "Alice" },
            "text": text,
        }});
        let id = self.server.update(update.clone());
        update["update_id"] = json!(id);
        *self.last.lock().unwrap() = update;
    }

    fn presses(&self, message: &MessageId, data: &str) {
        let message = message.as_str().parse().unwrap();
        self.server.presses(ALICE, message, data);
    }

    fn repeats(&self) {
        self.server.update(self.last.lock().unwrap().clone());
    }

    fn sends_garbage(&self) {
        self.server.garbage(json!({ "no": "update" }));
        self.server
            .update(json!({ "message": { "message_id": "not a number" } }));
    }

    fn edits(&self, message: &MessageId, text: &str) {
        let message: i64 = message.as_str().parse().unwrap();
        self.server.update(json!({ "edited_message": {
            "message_id": message,
            "date": 1_700_000_000,
            "edit_date": 1_700_000_060,
            "chat": { "id": ALICE, "type": "private" },
            "from": { "id": ALICE, "is_bot": false, "first_name": "Alice" },
            "text": text,
        }}));
    }

    fn cuts(&self) -> bool {
        self.server.fail_next("getUpdates", Failure::Drop);
        true
    }

    fn decide_next_send(&self, fate: SendFate) {
        let failure = match fate {
            SendFate::Refused => Failure::Refuse {
                code: 403,
                description: "Forbidden: bot was blocked by the user",
                retry_after: None,
            },
            SendFate::ArrivesUnconfirmed => Failure::DropAfter,
        };
        self.server.fail_next("sendMessage", failure);
    }

    fn shown(&self) -> Vec<String> {
        let made = self.server.calls("sendMessage").into_iter();
        let changed = self.server.calls("editMessageText").into_iter();
        let texts: BTreeMap<i64, String> = made
            .chain(changed)
            .map(|call| (call.message, as_seen(&call.params)))
            .collect();
        texts.into_values().collect()
    }
}

fn as_seen(params: &Value) -> String {
    let text = params["text"].as_str().unwrap();
    match params["parse_mode"].as_str() {
        Some(_) => visible_text(text).unwrap(),
        None => text.to_owned(),
    }
}
