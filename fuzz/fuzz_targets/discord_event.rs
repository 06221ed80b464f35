//! Any bytes as an event of Discord's gateway.

#![no_main]

use hermetic_chat::ChatEvent;
use hermetic_discord::parser::{read_dispatch, to_dialect};
use libfuzzer_sys::fuzz_target;

const BOT: u64 = 42;
const KINDS: [&str; 4] = [
    "MESSAGE_CREATE",
    "MESSAGE_UPDATE",
    "INTERACTION_CREATE",
    "GUILD_CREATE",
];

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        to_dialect(text);
    }
    let Ok(data) = serde_json::from_slice::<serde_json::Value>(bytes) else {
        return;
    };
    for kind in KINDS {
        let event = read_dispatch(kind, data.clone(), BOT);
        if let Some(ChatEvent::Message(message) | ChatEvent::Edited(message)) = event {
            assert_ne!(message.sender.id.as_str(), "42", "we hear ourselves");
            assert!(!message.text.is_empty() || !message.attachments.is_empty());
            let written = serde_json::to_string(&message).expect("it can be written");
            let read = serde_json::from_str(&written).expect("it can be read again");
            assert_eq!(message, read);
        }
    }
});
