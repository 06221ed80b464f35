//! Waiting until an adapter says something about itself.

use std::time::Duration;

use hermetic_chat::{Chat, ChatState};

/// Waits until `chat` is retrying, and returns its reason.
///
/// An adapter tells its state to whoever asks and announces no change of it, so it is asked again and again.
/// Waiting for the server's next event instead would miss a state that changes after the last of them.
pub async fn wait_until_retrying(chat: &dyn Chat) -> String {
    loop {
        if let ChatState::Retrying { why } = chat.state() {
            return why;
        }
        tokio::time::sleep(ASKED_EVERY).await;
    }
}

const ASKED_EVERY: Duration = Duration::from_millis(5);
