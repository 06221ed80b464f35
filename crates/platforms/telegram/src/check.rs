//! Who a token belongs to, and what the bot cannot hear.

use hermetic_chat::{AccountCheck, AccountShortcoming, CheckError};
use serde_json::json;

use crate::TelegramAdapter;
use crate::poll::RawBotUser;
use crate::wire::TelegramCallError;

impl TelegramAdapter {
    pub(crate) async fn check_account(&self) -> Result<AccountCheck, CheckError> {
        let me: RawBotUser = self.wire.call("getMe", &json!({})).await?;
        let deaf = !self.hearing.require_mention && me.can_read_all_group_messages == Some(false);
        let shortcomings = deaf.then(|| AccountShortcoming {
            problem: "in groups the bot hears only what names it or replies to it".to_owned(),
            remedy: "send /setprivacy to @BotFather and choose Disable, or set \
                     TELEGRAM_REQUIRE_MENTION=true"
                .to_owned(),
        });
        Ok(AccountCheck {
            name: Some(format!("@{}", me.username)),
            shortcomings: shortcomings.into_iter().collect(),
        })
    }
}

impl From<TelegramCallError> for CheckError {
    fn from(error: TelegramCallError) -> Self {
        match error {
            // Telegram says "not found" of a token that it never gave out.
            TelegramCallError::Refused {
                code: 401 | 404,
                description,
                ..
            } => Self::Unauthorized { description },
            TelegramCallError::Refused { description, .. } => Self::Refused { description },
            other => Self::Unreachable(Box::new(other)),
        }
    }
}
