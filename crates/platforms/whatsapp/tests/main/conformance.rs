//! A business number against the contract of every chat.

use std::sync::{Arc, Mutex};

use hermetic_chat::conformance::{ChatCandidate, SendFate, StandIn};
use hermetic_testkit::whatsapp::{Failure, WhatsAppServer};
use hermetic_types::{AccountId, ChatPlace, MessageId, Platform, UserId};
use hermetic_whatsapp::WhatsAppCloud;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::lab::{ALICE, config, connect, private};

hermetic_chat::conformance!(candidate);

async fn candidate(name: &str) -> ChatCandidate {
    let server = WhatsAppServer::start().await.unwrap();
    let mut config = config(&server.url());
    config.account = AccountId::new(Platform::Whatsapp, name.parse().unwrap());
    let cloud = Arc::new(WhatsAppCloud::new(config).unwrap());
    let serving = connect(&server, &cloud).await;
    ChatCandidate {
        chat: cloud,
        stand_in: Box::new(WhatsAppStandIn {
            server,
            last: Mutex::default(),
            serving,
        }),
    }
}

#[derive(Debug)]
struct WhatsAppStandIn {
    server: WhatsAppServer,
    last: Mutex<Value>,
    serving: JoinHandle<()>,
}

impl StandIn for WhatsAppStandIn {
    fn person(&self) -> UserId {
        UserId::new(ALICE.id).unwrap()
    }

    fn place(&self) -> ChatPlace {
        private(ALICE)
    }

    fn says(&self, text: &str) {
        let mut fields = json!({ "type": "text", "text": { "body": text } });
        fields["id"] = json!(self.server.sends(ALICE, fields.clone()));
        *self.last.lock().unwrap() = fields;
    }

    fn presses(&self, message: &MessageId, data: &str) {
        self.server.presses(ALICE, message.as_str(), data);
    }

    fn repeats(&self) {
        let last = self.last.lock().unwrap().clone();
        self.server.sends(ALICE, last);
    }

    fn sends_garbage(&self) {
        self.server.posts(&json!({ "no": "notification" }));
        self.server
            .sends(ALICE, json!({ "id": 7, "type": ["text"] }));
        self.server
            .sends(ALICE, json!({ "type": "text", "text": "no object" }));
    }

    fn edits(&self, message: &MessageId, text: &str) {
        let now = json!({ "type": "text", "text": { "body": text } });
        let edit = json!({ "original_message_id": message.as_str(), "message": now });
        self.server
            .sends(ALICE, json!({ "type": "edit", "edit": edit }));
    }

    fn deletes(&self, message: &MessageId) {
        let gone = json!({ "original_message_id": message.as_str() });
        self.server
            .sends(ALICE, json!({ "type": "revoke", "revoke": gone }));
    }

    fn decide_next_send(&self, fate: SendFate) {
        let failure = match fate {
            SendFate::Refused => Failure::Refuse {
                status: 400,
                code: 131_026,
                retry_after: None,
            },
            SendFate::ArrivesUnconfirmed => Failure::DropAfter,
        };
        self.server.fail_next("messages", failure);
    }

    fn shown(&self) -> Vec<String> {
        let sent = self.server.sent();
        sent.iter().map(|message| message.text()).collect()
    }
}

impl Drop for WhatsAppStandIn {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
