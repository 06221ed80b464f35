//! What the gateway dispatches, as far as we listen.
//!
//! Only the fields used are read, and unknown ones are no error: Discord adds some every month.

use hermetic_types::RoleId;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::snowflake::Snowflake;

/// A server has at most 250.
const MOST_ROLES: usize = 250;

#[derive(Debug)]
pub(crate) enum DispatchEvent {
    Ready(RawReady),
    Resumed,
    Message(Box<DiscordMessage>),
    /// A message as it reads now.
    Edited(Box<DiscordMessage>),
    Interaction(Box<RawInteraction>),
    Deleted(RawDeletion),
    /// A server with its channels and threads, told when a session begins.
    Server(Vec<RawChannel>),
    /// Channels and threads that are there, or changed.
    Channels(Vec<RawChannel>),
    /// Nothing that we listen to.
    Other,
    Malformed(String),
}

impl DispatchEvent {
    pub(crate) fn read(kind: &str, data: Value) -> Self {
        match kind {
            "READY" => read(data, Self::Ready),
            "RESUMED" => Self::Resumed,
            "MESSAGE_CREATE" => read(data, |message| Self::Message(Box::new(message))),
            // Discord tells the same way that a link got its preview.
            "MESSAGE_UPDATE" if data["edited_timestamp"].is_string() => {
                read(data, |message| Self::Edited(Box::new(message)))
            }
            "INTERACTION_CREATE" => read(data, |raw| Self::Interaction(Box::new(raw))),
            "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" => read(data, Self::Deleted),
            "GUILD_CREATE" => read(data, |guild: RawGuildChannels| Self::Server(guild.read())),
            "THREAD_LIST_SYNC" => {
                read(data, |guild: RawGuildChannels| Self::Channels(guild.read()))
            }
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE" => {
                read(data, |channel| Self::Channels(vec![channel]))
            }
            _ => Self::Other,
        }
    }
}

fn read<T: DeserializeOwned>(data: Value, make: impl FnOnce(T) -> DispatchEvent) -> DispatchEvent {
    match serde_json::from_value(data) {
        Ok(read) => make(read),
        Err(error) => DispatchEvent::Malformed(error.to_string()),
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawReady {
    pub(crate) session_id: String,
    pub(crate) resume_gateway_url: String,
}

#[derive(Deserialize)]
struct RawGuildChannels {
    #[serde(default)]
    channels: Vec<Value>,
    #[serde(default)]
    threads: Vec<Value>,
}

impl RawGuildChannels {
    fn read(self) -> Vec<RawChannel> {
        let all = self.channels.into_iter().chain(self.threads);
        // One that cannot be read is asked for when somebody writes there.
        all.filter_map(|channel| RawChannel::deserialize(channel).ok())
            .collect()
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawChannel {
    pub(crate) id: Snowflake,
    #[serde(rename = "type")]
    pub(crate) kind: u8,
    pub(crate) parent_id: Option<Snowflake>,
    pub(crate) owner_id: Option<Snowflake>,
    /// The newest message, which may have been deleted.
    pub(crate) last_message_id: Option<Snowflake>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DiscordMessage {
    pub(crate) id: Snowflake,
    pub(crate) channel_id: Snowflake,
    /// Absent in private, and in every history.
    pub(crate) guild_id: Option<Snowflake>,
    #[serde(rename = "type", default)]
    pub(crate) kind: u8,
    pub(crate) author: Option<DiscordUser>,
    /// Who they are in the server. Absent in private, and in every history.
    pub(crate) member: Option<RawRoles>,
    pub(crate) webhook_id: Option<IgnoredAny>,
    /// When it was changed last.
    pub(crate) edited_timestamp: Option<String>,
    #[serde(default)]
    pub(crate) content: String,
    #[serde(default)]
    pub(crate) mentions: Vec<DiscordMention>,
    #[serde(default)]
    pub(crate) attachments: Vec<DiscordAttachment>,
    #[serde(default)]
    pub(crate) flags: u64,
    pub(crate) message_reference: Option<RawReference>,
    /// What was passed on; read apart, because it must not cost us the message itself.
    #[serde(default)]
    pub(crate) message_snapshots: Vec<Value>,
    /// What was replied to; read apart for the same reason.
    pub(crate) referenced_message: Option<Value>,
}

/// One message that is gone, or many at once.
#[derive(Debug, Deserialize)]
pub(crate) struct RawDeletion {
    pub(crate) channel_id: Snowflake,
    pub(crate) guild_id: Option<Snowflake>,
    id: Option<Snowflake>,
    #[serde(default)]
    ids: Vec<Snowflake>,
}

impl RawDeletion {
    pub(crate) fn messages(&self) -> impl Iterator<Item = Snowflake> {
        self.id.into_iter().chain(self.ids.iter().copied())
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct DiscordUser {
    pub(crate) id: Snowflake,
    #[serde(default)]
    pub(crate) bot: bool,
    #[serde(default)]
    pub(crate) username: String,
    pub(crate) global_name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DiscordMention {
    pub(crate) id: Snowflake,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawReference {
    /// 1 for what was passed on, 0 or nothing for a reply.
    #[serde(rename = "type", default)]
    pub(crate) kind: u8,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawSnapshot {
    pub(crate) message: RawSnapshotMessage,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawSnapshotMessage {
    #[serde(default)]
    pub(crate) content: String,
    #[serde(default)]
    pub(crate) attachments: Vec<DiscordAttachment>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DiscordAttachment {
    pub(crate) id: Snowflake,
    pub(crate) filename: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) size: Option<u64>,
    #[serde(default)]
    pub(crate) url: String,
}

#[derive(Deserialize)]
pub(crate) struct RawInteraction {
    pub(crate) id: Snowflake,
    pub(crate) application_id: Snowflake,
    #[serde(rename = "type")]
    pub(crate) kind: u8,
    /// Opens the answer to this interaction, for a quarter of an hour.
    pub(crate) token: String,
    pub(crate) data: Option<InteractionData>,
    pub(crate) channel_id: Option<Snowflake>,
    pub(crate) channel: Option<RawChannel>,
    pub(crate) guild_id: Option<Snowflake>,
    pub(crate) member: Option<RawMember>,
    pub(crate) user: Option<DiscordUser>,
    pub(crate) message: Option<DiscordMention>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawMember {
    pub(crate) user: DiscordUser,
    #[serde(flatten)]
    pub(crate) roles: RawRoles,
}

/// The roles of a member; what cannot be read is none.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RawRoles {
    #[serde(default)]
    roles: Vec<Value>,
}

impl RawRoles {
    pub(crate) fn ids(&self) -> Vec<RoleId> {
        let roles = self.roles.iter().take(MOST_ROLES);
        let ids = roles.filter_map(|role| Snowflake::parse(role.as_str()?));
        ids.filter_map(|role| RoleId::new(role.to_string()).ok())
            .collect()
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct InteractionData {
    pub(crate) custom_id: Option<String>,
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) options: Vec<RawOption>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawOption {
    #[serde(default)]
    pub(crate) value: Value,
}

impl std::fmt::Debug for RawInteraction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawInteraction")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}
