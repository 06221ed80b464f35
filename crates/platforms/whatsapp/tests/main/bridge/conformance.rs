//! The bridge against the contract of every chat.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hermetic_chat::conformance::{ChatCandidate, SendFate, StandIn};
use hermetic_types::{AccountId, ChatId, ChatKind, ChatPlace, MessageId, Platform, UserId};
use hermetic_whatsapp::WhatsAppBridge;
use serde_json::{Value, json};

use super::config;
use super::server::BridgeServer;

hermetic_chat::conformance!(candidate);

async fn candidate(name: &str) -> ChatCandidate {
    let server = BridgeServer::start().await;
    let mut config = config(&server);
    config.account = AccountId::new(Platform::Whatsapp, name.parse().unwrap());
    ChatCandidate {
        chat: Arc::new(WhatsAppBridge::new(config).unwrap()),
        stand_in: Box::new(BridgeStandIn {
            server,
            next: AtomicU64::default(),
            last: Mutex::default(),
        }),
    }
}

#[derive(Debug)]
struct BridgeStandIn {
    server: BridgeServer,
    next: AtomicU64,
    last: Mutex<Value>,
}

impl StandIn for BridgeStandIn {
    fn person(&self) -> UserId {
        UserId::new("16505551234").unwrap()
    }

    fn place(&self) -> ChatPlace {
        ChatPlace {
            chat: ChatId::new("16505551234@s.whatsapp.net").unwrap(),
            kind: ChatKind::Dm,
            thread: None,
        }
    }

    fn says(&self, text: &str) {
        let id = format!("3EB0{}", self.next.fetch_add(1, Ordering::Relaxed));
        let message = json!({ "messageId": id, "body": text });
        *self.last.lock().unwrap() = message.clone();
        self.server.says(message);
    }

    fn presses(&self, _: &MessageId, _: &str) {
        panic!("there are no buttons");
    }

    fn repeats(&self) {
        self.server.says(self.last.lock().unwrap().clone());
    }

    fn sends_garbage(&self) {
        for garbage in [
            json!(null),
            json!(7),
            json!({ "messageId": 7 }),
            json!([[]]),
        ] {
            self.server.queues(garbage);
        }
        self.server.says(json!({ "messageId": "", "body": "x" }));
        self.server
            .says(json!({ "messageId": "3EB", "senderId": "alice" }));
    }

    fn decide_next_send(&self, fate: SendFate) {
        let status = match fate {
            SendFate::Refused => 400,
            SendFate::ArrivesUnconfirmed => 500,
        };
        self.server.world().failures.push_back(status);
    }

    fn shown(&self) -> Vec<String> {
        let world = self.server.world();
        let texts = world
            .sent
            .iter()
            .filter_map(|(_, body)| body["message"].as_str());
        texts.map(str::to_owned).collect()
    }
}
