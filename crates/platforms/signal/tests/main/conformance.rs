//! Signal against the contract of every chat, over HTTP and over a socket.

use std::sync::{Arc, Mutex};

use hermetic_chat::conformance::{ChatCandidate, SendFate, StandIn};
use hermetic_signal::SignalAdapter;
use hermetic_testkit::signal_server::{ALICE, Failure, NUMBER, ReceiveMode, SignalServer};
use hermetic_types::{AccountId, ChatPlace, MessageId, Platform, UserId};
use serde_json::{Value, json};

use crate::lab::{config, private};

mod over_http {
    hermetic_chat::conformance!(super::http_candidate);
}

mod over_a_socket {
    hermetic_chat::conformance!(super::socket_candidate);
}

async fn http_candidate(name: &str) -> ChatCandidate {
    candidate(name, SignalServer::url).await
}

async fn socket_candidate(name: &str) -> ChatCandidate {
    candidate(name, SignalServer::socket_url).await
}

async fn candidate(name: &str, url: fn(&SignalServer) -> String) -> ChatCandidate {
    let server = SignalServer::start(ReceiveMode::OnConnection)
        .await
        .unwrap();
    let mut config = config(&url(&server));
    config.account = AccountId::new(Platform::Signal, name.parse().unwrap());
    ChatCandidate {
        chat: Arc::new(SignalAdapter::new(config).unwrap()),
        stand_in: Box::new(SignalStandIn {
            server,
            last: Mutex::new(Value::Null),
        }),
    }
}

#[derive(Debug)]
struct SignalStandIn {
    server: SignalServer,
    last: Mutex<Value>,
}

impl StandIn for SignalStandIn {
    fn person(&self) -> UserId {
        UserId::new(ALICE.uuid).unwrap()
    }

    fn place(&self) -> ChatPlace {
        private(ALICE)
    }

    fn says(&self, text: &str) {
        let timestamp = self.server.says(ALICE, text);
        let message = json!({ "timestamp": timestamp, "message": text });
        *self.last.lock().unwrap() = json!({ "account": NUMBER, "envelope": {
            "sourceUuid": ALICE.uuid, "sourceNumber": ALICE.number, "dataMessage": message,
        }});
    }

    fn presses(&self, message: &MessageId, _data: &str) {
        let message = message.as_str().parse().unwrap();
        self.server.reacts(ALICE, message, "👍");
    }

    fn repeats(&self) {
        self.server.event(&self.last.lock().unwrap());
    }

    fn sends_garbage(&self) {
        self.server.garbage("{ not json");
        self.server
            .event(&json!({ "envelope": { "dataMessage": { "timestamp": "soon" } } }));
    }

    fn edits(&self, message: &MessageId, text: &str) {
        self.server.edits(ALICE, moment(message), text);
    }

    fn deletes(&self, message: &MessageId) {
        let gone = json!({ "timestamp": moment(message) });
        self.server
            .says_with(ALICE, json!({ "remoteDelete": gone }));
    }

    fn cuts(&self) -> bool {
        self.server.hang_up();
        true
    }

    fn decide_next_send(&self, fate: SendFate) {
        let failure = match fate {
            SendFate::Refused => Failure::Refuse {
                code: -1,
                message: "The user is not registered.",
                data: Value::Null,
            },
            SendFate::ArrivesUnconfirmed => Failure::DropAfter,
        };
        self.server.fail_next("send", failure);
    }

    fn shown(&self) -> Vec<String> {
        let sent = self.server.calls("send").into_iter();
        sent.filter_map(|call| Some(call.params["message"].as_str()?.to_owned()))
            .collect()
    }
}

/// A message of somebody's is named by when and by whom it was written.
fn moment(message: &MessageId) -> u64 {
    let (moment, _) = message.as_str().split_once('/').unwrap();
    moment.parse().unwrap()
}
