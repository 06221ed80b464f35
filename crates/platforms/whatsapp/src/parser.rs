//! What reads Meta's bytes, for fuzzing.

use hermetic_chat::ChatEvent;
use hermetic_types::{ChatId, Platform, Timestamp, UserId};
use serde_json::Value;

use crate::WhatsAppHearing;
use crate::cloud::{CloudNotification, CloudReader, CloudSender};

/// What the body of a notification says to the number with this id, once its signature is known to fit.
pub fn read_notification(body: &Value, phone_number_id: &str) -> Vec<ChatEvent> {
    let reader = CloudReader {
        account: &Platform::Whatsapp.into(),
        hearing: &WhatsAppHearing::default(),
        now: Timestamp::UNIX_EPOCH,
    };
    let read = CloudNotification::read(body, phone_number_id);
    let heard = read.messages.into_iter().filter_map(|posted| {
        let (id, number) = posted.shown();
        let name = id.map(|id| id.as_str().to_owned());
        let name = name.or(number.map(|number| number.as_str().to_owned()))?;
        let origin = CloudSender {
            user: UserId::new(name.clone()).ok()?,
            private: ChatId::new(name).ok()?,
        };
        posted.event(origin, reader).ok()
    });
    heard.collect()
}
