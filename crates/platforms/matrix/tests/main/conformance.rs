//! Matrix against the contract of every chat.

use std::sync::Arc;

use hermetic_chat::conformance::{ChatCandidate, SendFate, StandIn};
use hermetic_testkit::matrix::{MatrixPerson, MatrixProxy, ProxyFault};
use hermetic_testkit::pypi::Synapse;
use hermetic_types::{AccountId, ChatPlace, MessageId, Platform, UserId};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::lab::{Lab, private};

hermetic_chat::conformance!(where_there_is candidate);

async fn candidate(name: &str) -> Option<ChatCandidate> {
    let account = AccountId::new(Platform::Matrix, name.parse().unwrap());
    let lab = Lab::with("conformance", |config| config.account = account).await?;
    // From here on, whatever is said is said to us.
    drop(lab.listen().await);
    let Lab {
        synapse,
        proxy,
        bot,
        alice,
        matrix,
        room,
        ..
    } = lab;
    Some(ChatCandidate {
        chat: matrix,
        stand_in: Box::new(SynapseStandIn {
            bot,
            alice,
            room,
            proxy,
            _synapse: Arc::new(synapse),
        }),
    })
}

#[derive(Debug)]
struct SynapseStandIn {
    bot: MatrixPerson,
    alice: MatrixPerson,
    room: String,
    proxy: MatrixProxy,
    _synapse: Arc<Synapse>,
}

/// The suite's stand-ins do not wait, and a homeserver takes its time.
fn wait<T>(future: impl Future<Output = T>) -> T {
    block_in_place(|| Handle::current().block_on(future))
}

impl StandIn for SynapseStandIn {
    fn person(&self) -> UserId {
        UserId::new(self.alice.user()).unwrap()
    }

    fn place(&self) -> ChatPlace {
        private(&self.room)
    }

    fn says(&self, text: &str) {
        wait(self.alice.says(&self.room, text));
    }

    fn presses(&self, message: &MessageId, _data: &str) {
        wait(self.alice.reacts(&self.room, message.as_str(), "👍"));
    }

    fn repeats(&self) {
        self.proxy.spoil(ProxyFault::Repeat);
    }

    fn sends_garbage(&self) {
        self.proxy.spoil(ProxyFault::Garbage);
    }

    fn edits(&self, message: &MessageId, text: &str) {
        let content = json!({ "msgtype": "m.text", "body": format!("* {text}"), "m.mentions": {},
            "m.new_content": { "msgtype": "m.text", "body": text, "m.mentions": {} },
            "m.relates_to": { "rel_type": "m.replace", "event_id": message.as_str() } });
        wait(self.alice.sends(&self.room, content));
    }

    fn deletes(&self, message: &MessageId) {
        wait(self.alice.redacts(&self.room, message.as_str()));
    }

    fn cuts(&self) -> bool {
        self.proxy.spoil(ProxyFault::BreakSyncs(1));
        true
    }

    fn decide_next_send(&self, fate: SendFate) {
        self.proxy.spoil(match fate {
            SendFate::Refused => ProxyFault::RefuseSend,
            SendFate::ArrivesUnconfirmed => ProxyFault::SwallowSend,
        });
    }

    fn shown(&self) -> Vec<String> {
        let shown = wait(self.alice.shown(&self.room, self.bot.user()));
        shown.into_iter().map(|message| message.text).collect()
    }
}
