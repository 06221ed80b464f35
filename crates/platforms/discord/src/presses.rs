//! Answers to pressed buttons.

use hermetic_chat::{ChatReply, OutgoingText, SendError, SendFailure};
use hermetic_types::ButtonPress;

use crate::snowflake::Snowflake;
use crate::{DiscordAdapter, MESSAGE};

impl DiscordAdapter {
    /// Ends the wait, and that is all.
    pub(crate) async fn acknowledge(&self, press: &ButtonPress) -> Result<(), SendError> {
        let Some(id) = Snowflake::parse(&press.query) else {
            return Ok(());
        };
        let acknowledged = self.interactions.acknowledge(id).await;
        acknowledged.map_err(|error| SendFailure::from(error).into())
    }

    /// To who pressed, and seen by nobody else. A press of an earlier process cannot be answered that
    /// way; then the words come as a message.
    pub(crate) async fn answer(
        &self,
        press: &ButtonPress,
        notice: &OutgoingText,
    ) -> Result<(), SendError> {
        let words: String = notice.as_str().chars().take(MESSAGE.length).collect();
        let said = match Snowflake::parse(&press.query) {
            Some(id) => self.interactions.say(id, &words).await,
            None => None,
        };
        match said {
            Some(said) => said.map_err(|error| SendFailure::from(error).into()),
            None => {
                let reply = ChatReply {
                    reply_to: Some(press.message.clone()),
                    ..ChatReply::text(notice.clone())
                };
                self.send_reply(&press.place, &reply).await.map(drop)
            }
        }
    }
}
