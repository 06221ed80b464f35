//! What we ask of the Bot API, field by field as it names them.
//!
//! Seven requests of its some hundred and sixty; a library with all of them costs half a minute of every
//! build. A field that is absent is not sent.

use hermetic_chat::ReplyButton;
use serde::Serialize;

/// The kinds of update that we read. Telegram keeps the rest to itself.
pub(crate) const ALLOWED_UPDATES: [&str; 3] = ["message", "edited_message", "callback_query"];

pub(crate) const MARKDOWN_V2: &str = "MarkdownV2";

#[derive(Clone, Debug, Serialize)]
pub(crate) struct SendMessage {
    pub(crate) chat_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message_thread_id: Option<i32>,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parse_mode: Option<&'static str>,
    pub(crate) link_preview_options: LinkPreviewOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reply_parameters: Option<ReplyParameters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reply_markup: Option<InlineKeyboard>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct EditMessageText {
    pub(crate) chat_id: i64,
    pub(crate) message_id: i32,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parse_mode: Option<&'static str>,
    pub(crate) link_preview_options: LinkPreviewOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reply_markup: Option<InlineKeyboard>,
}

#[derive(Debug, Serialize)]
pub(crate) struct SendChatAction {
    pub(crate) chat_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message_thread_id: Option<i32>,
    pub(crate) action: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct AnswerCallbackQuery<'a> {
    pub(crate) callback_query_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct GetUpdates {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<i64>,
    pub(crate) limit: u32,
    /// Seconds that Telegram may wait for something to happen.
    pub(crate) timeout: u32,
    pub(crate) allowed_updates: [&'static str; 3],
}

#[derive(Debug, Serialize)]
pub(crate) struct SetWebhook<'a> {
    pub(crate) url: &'a str,
    pub(crate) secret_token: &'a str,
    pub(crate) allowed_updates: [&'static str; 3],
}

#[derive(Debug, Serialize)]
pub(crate) struct DeleteWebhook {
    pub(crate) drop_pending_updates: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LinkPreviewOptions {
    is_disabled: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ReplyParameters {
    message_id: i32,
    /// A message that was deleted meanwhile is no reason to say nothing.
    allow_sending_without_reply: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct InlineKeyboard {
    inline_keyboard: Vec<Vec<InlineButton>>,
}

#[derive(Clone, Debug, Serialize)]
struct InlineButton {
    text: String,
    callback_data: String,
}

impl LinkPreviewOptions {
    /// Telegram's servers fetch what they preview: a link alone would carry data out.
    pub(crate) const NONE: Self = Self { is_disabled: true };
}

impl ReplyParameters {
    pub(crate) fn to(message_id: i32) -> Self {
        Self {
            message_id,
            allow_sending_without_reply: true,
        }
    }
}

impl InlineKeyboard {
    /// Nothing where there are no buttons.
    pub(crate) fn of(buttons: &[Vec<ReplyButton>]) -> Option<Self> {
        let button = |button: &ReplyButton| InlineButton {
            text: button.label().to_owned(),
            callback_data: button.data().to_owned(),
        };
        let rows = buttons.iter().map(|row| row.iter().map(button).collect());
        (!buttons.is_empty()).then(|| Self {
            inline_keyboard: rows.collect(),
        })
    }
}
