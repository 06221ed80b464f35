//! A lab whose people write on Telegram, over the wire: for stories about what an update looks like.

use std::ops::{Deref, DerefMut};

use hermetic_testkit::telegram::{TelegramServer, visible_text};
use serde_json::{Value, json};

use super::{Builder, Lab};

pub(crate) struct WireLab {
    lab: Lab,
    pub(crate) telegram: TelegramServer,
}

impl WireLab {
    /// Who may write is said before this.
    pub(crate) async fn start(builder: Builder) -> Self {
        let telegram = TelegramServer::start().await.unwrap();
        Self {
            lab: builder.telegram(&telegram).start().await,
            telegram,
        }
    }

    /// Everything the bot sent to this chat, as people see it, once there are so many.
    pub(crate) async fn replies(&self, user: i64, count: usize) -> Vec<String> {
        let mut wanted = count;
        loop {
            let calls = self.telegram.wait_for("sendMessage", wanted).await;
            let own = calls
                .iter()
                .filter(|call| call.params["chat_id"] == json!(user));
            let texts: Vec<_> = own.map(|call| text(&call.params)).collect();
            if texts.len() >= count {
                return texts;
            }
            wanted = calls.len() + 1;
        }
    }

    /// Says something and waits for the next reply.
    pub(crate) async fn ask(&self, user: i64, words: &str) -> String {
        let before = self.sent_to(user);
        self.telegram.says(user, words);
        self.replies(user, before + 1).await.remove(before)
    }

    pub(crate) fn sent_to(&self, user: i64) -> usize {
        let calls = self.telegram.calls("sendMessage");
        let own = calls
            .iter()
            .filter(|call| call.params["chat_id"] == json!(user));
        own.count()
    }
}

impl Deref for WireLab {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl DerefMut for WireLab {
    fn deref_mut(&mut self) -> &mut Lab {
        &mut self.lab
    }
}

/// What a person sees of a message that was sent.
pub(crate) fn text(params: &Value) -> String {
    let text = params["text"].as_str().unwrap();
    match params.get("parse_mode") {
        Some(_) => visible_text(text).unwrap(),
        None => text.to_owned(),
    }
}
