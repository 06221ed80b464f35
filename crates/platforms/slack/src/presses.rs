//! Answers to pressed buttons.
//!
//! Slack wants a press acknowledged within three seconds and takes no words with that; they follow as a
//! message that only who pressed can see.

use hermetic_chat::{OutgoingText, SendError, SendFailure};
use hermetic_types::ButtonPress;
use serde_json::{Value, json};

use crate::account::SlackAccount;
use crate::identity::slack_user;
use crate::mrkdwn::to_mrkdwn;
use crate::pace::RateTier;
use crate::send::thread;

impl SlackAccount {
    /// Ends the spinner, if we are still connected as we were when the press came.
    pub(crate) fn acknowledge(&self, press: &ButtonPress) {
        if let Some(listening) = self.listening() {
            listening.inbox.acknowledge(&press.update);
        }
    }

    pub(crate) async fn answer(
        &self,
        press: &ButtonPress,
        notice: &OutgoingText,
    ) -> Result<(), SendError> {
        self.acknowledge(press);
        let mut params = json!({
            "channel": press.place.chat,
            "user": slack_user(&press.sender.id),
            "text": to_mrkdwn(notice.as_str()),
        });
        if let Some(thread) = thread(&press.place)? {
            params["thread_ts"] = json!(thread.to_string());
        }
        let call = || self.wire.call::<Value>("chat.postEphemeral", &params);
        let answered = self.patiently(|| RateTier::Other, call).await;
        answered
            .map(drop)
            .map_err(|error| SendFailure::from(error).into())
    }
}
