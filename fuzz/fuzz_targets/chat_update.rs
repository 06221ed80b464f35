//! Any bytes as an update of Telegram, a notification of WhatsApp and a webhook's request.

#![no_main]

use hermetic_chat::ChatEvent;
use libfuzzer_sys::fuzz_target;

const BOT: (i64, &str) = (42, "HermeticBot");
const NUMBER: &str = "1";

fuzz_target!(|bytes: &[u8]| {
    if let Some(event) = hermetic_webhook::parser::read_request(bytes, "nonce") {
        check(&event);
    }
    let Ok(update) = serde_json::from_slice(bytes) else {
        return;
    };
    for event in hermetic_whatsapp::parser::read_notification(&update, NUMBER) {
        check(&event);
    }
    let Some(event) = hermetic_telegram::parser::read_update(&update, BOT) else {
        return;
    };
    check(&event);
    if let ChatEvent::Message(message) = event {
        assert_ne!(message.sender.id.as_str(), "42", "we hear ourselves");
        assert!(!message.text.is_empty() || !message.attachments.is_empty());
    }
});

/// What was heard is written down as JSON and read again after a crash.
fn check(event: &ChatEvent) {
    if let ChatEvent::Message(message) = event {
        let written = serde_json::to_string(message).expect("it can be written");
        let read = serde_json::from_str(&written).expect("it can be read again");
        assert_eq!(*message, read);
    }
}
