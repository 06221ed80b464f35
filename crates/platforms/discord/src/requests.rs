//! What we ask of the HTTP API, field by field as it names them.

use hermetic_chat::ReplyButton;
use serde::Serialize;
use serde_json::{Value, json};

use crate::snowflake::Snowflake;

/// Discord's servers fetch what they preview: a link alone would carry data out.
pub(crate) const SUPPRESS_EMBEDS: u32 = 1 << 2;

/// Buttons in one row, and rows under one message.
pub(crate) const BUTTONS_IN_ROW: usize = 5;
pub(crate) const ROWS: usize = 5;
/// What Discord shows of a label.
const LABEL_CHARACTERS: usize = 80;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct CreateMessage {
    pub(crate) content: String,
    pub(crate) flags: u32,
    pub(crate) allowed_mentions: AllowedMentions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message_reference: Option<MessageReference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) components: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nonce: Option<String>,
    /// A second message with the same nonce is not made; the first is returned.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) enforce_nonce: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct EditMessage {
    pub(crate) content: String,
    pub(crate) flags: u32,
    pub(crate) allowed_mentions: AllowedMentions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) components: Option<Vec<Value>>,
}

/// Nobody is ever called by what we write: without this, `@everyone` in a text calls everyone.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct AllowedMentions {
    parse: [&'static str; 0],
    replied_user: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct MessageReference {
    message_id: Snowflake,
    /// A message that was deleted meanwhile is no reason to say nothing.
    fail_if_not_exists: bool,
}

impl CreateMessage {
    pub(crate) fn new(content: String) -> Self {
        Self {
            content,
            flags: SUPPRESS_EMBEDS,
            allowed_mentions: AllowedMentions::default(),
            message_reference: None,
            components: Vec::new(),
            nonce: None,
            enforce_nonce: false,
        }
    }
}

impl EditMessage {
    pub(crate) fn new(content: String, components: Option<Vec<Value>>) -> Self {
        Self {
            content,
            flags: SUPPRESS_EMBEDS,
            allowed_mentions: AllowedMentions::default(),
            components,
        }
    }
}

impl MessageReference {
    pub(crate) fn to(message_id: Snowflake) -> Self {
        Self {
            message_id,
            fail_if_not_exists: false,
        }
    }
}

/// Rows of buttons; one that is longer than Discord shows becomes several.
pub(crate) fn components(buttons: &[Vec<ReplyButton>]) -> Vec<Value> {
    let rows = buttons.iter().flat_map(|row| row.chunks(BUTTONS_IN_ROW));
    rows.take(ROWS)
        .map(|row| {
            let buttons: Vec<_> = row.iter().map(component).collect();
            json!({ "type": 1, "components": buttons })
        })
        .collect()
}

fn component(button: &ReplyButton) -> Value {
    let label: String = button.label().chars().take(LABEL_CHARACTERS).collect();
    json!({ "type": 2, "style": 2, "label": label, "custom_id": button.data() })
}
