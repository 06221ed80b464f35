//! Any bytes as a message, a press and a slash command of Slack.

#![no_main]

use hermetic_chat::ChatEvent;
use hermetic_slack::to_mrkdwn;
use hermetic_types::ChatId;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        to_mrkdwn(text);
    }
    let Ok(payload) = serde_json::from_slice(bytes) else {
        return;
    };
    for channel in ["D0ALICE", "C0GENERAL"] {
        let channel = ChatId::new(channel).expect("a channel");
        for event in hermetic_slack::parser::read_payload(&payload, &channel) {
            if let ChatEvent::Message(message) | ChatEvent::Edited(message) = event {
                assert_ne!(message.sender.id.as_str(), "U0BOT", "we hear ourselves");
                let written = serde_json::to_string(&message).expect("it can be written");
                let read = serde_json::from_str(&written).expect("it can be read again");
                assert_eq!(message, read);
            }
        }
    }
});
