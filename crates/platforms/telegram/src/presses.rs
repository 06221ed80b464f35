//! Answers to pressed buttons.
//!
//! Telegram shows the words of the first answer to a press and ignores every later one. So the words
//! come with that answer where they can, and as a message where it was given without them.

use std::sync::PoisonError;

use hermetic_chat::{ChatReply, OutgoingText, SendError, SendFailure};
use hermetic_types::ButtonPress;
use serde_json::Value;

use crate::TelegramAdapter;
use crate::requests::AnswerCallbackQuery;
use crate::wire::TelegramCallError;

/// How long the words under a press may be.
const NOTICE_UNITS: usize = 200;

impl TelegramAdapter {
    /// Ends the spinner, and that is all.
    pub(crate) async fn acknowledge(&self, press: &ButtonPress) -> Result<(), SendError> {
        // Noted first: from here on it is unknown whether Telegram still shows words.
        self.acknowledged
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .note(press.query.clone(), ());
        let params = AnswerCallbackQuery {
            callback_query_id: &press.query,
            text: None,
        };
        let answered = self
            .wire
            .call::<Value>("answerCallbackQuery", &params)
            .await;
        settled(answered)
    }

    pub(crate) async fn answer(
        &self,
        press: &ButtonPress,
        notice: &OutgoingText,
    ) -> Result<(), SendError> {
        if self.was_acknowledged(press) {
            let reply = ChatReply {
                reply_to: Some(press.message.clone()),
                ..ChatReply::text(notice.clone())
            };
            return self.send_reply(&press.place, &reply).await.map(drop);
        }
        let params = AnswerCallbackQuery {
            callback_query_id: &press.query,
            text: Some(shortened(notice.as_str())),
        };
        let answered = self
            .patiently(&press.place.chat, || {
                self.wire.call::<Value>("answerCallbackQuery", &params)
            })
            .await;
        settled(answered)
    }

    fn was_acknowledged(&self, press: &ButtonPress) -> bool {
        let acknowledged = self.acknowledged.lock();
        acknowledged
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&press.query)
    }
}

fn settled(answered: Result<Value, TelegramCallError>) -> Result<(), SendError> {
    match answered {
        // The person waited longer than Telegram did; nothing is left to answer.
        Err(error) if error.is_refusal_with("query is too old") => Ok(()),
        Err(error) => Err(SendFailure::from(error).into()),
        Ok(_) => Ok(()),
    }
}

fn shortened(notice: &str) -> String {
    let mut left = NOTICE_UNITS;
    notice
        .chars()
        .take_while(|c| {
            let fits = c.len_utf16() <= left;
            left = left.saturating_sub(c.len_utf16());
            fits
        })
        .collect()
}
