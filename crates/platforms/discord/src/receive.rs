//! What listening needs of the HTTP API: who we are, a way to the gateway, a look at a channel.

use std::sync::Arc;
use std::time::Duration;

use hermetic_chat::{AdapterStateError, ChannelPositions, ChatEvent};
use hermetic_types::{DeletedMessage, Timestamp};
use serde::Deserialize;
use tokio::time::timeout;

use crate::DiscordAdapter;
use crate::channels::DiscordChannel;
use crate::connection::{GatewayConnection, GatewayGreeting};
use crate::dispatch::{DiscordMention, DiscordMessage, RawChannel, RawDeletion, RawInteraction};
use crate::hearing::{self, DiscordBot, HeardEvent};
use crate::route::ApiRoute;
use crate::session::GatewaySession;
use crate::snowflake::Snowflake;
use crate::socket::{GatewaySocket, SocketError};
use crate::trouble::ReceiveTrouble;
use crate::wire::DiscordCallError;

/// Servers with their channels, messages there, private messages.
const INTENTS: u32 = 1 | 1 << 9 | 1 << 12;
/// The text of messages that are neither private nor mention us.
const MESSAGE_CONTENT: u32 = 1 << 15;
/// Sessions that are left to begin and that we leave alone: another process may begin one at the same
/// moment, and one too many resets the token.
const SPARE_SESSIONS: u64 = 5;

#[derive(Deserialize)]
struct RawGatewayUrl {
    url: String,
    session_start_limit: RawStartLimit,
}

#[derive(Deserialize)]
struct RawStartLimit {
    remaining: u64,
    /// In milliseconds.
    reset_after: u64,
}

impl DiscordAdapter {
    pub(crate) async fn learn_own_name(&self) -> Result<(), DiscordCallError> {
        if self.me.get().is_none() {
            let route = ApiRoute::get("/users/@me", &[]);
            let me: DiscordMention = self.wire.patiently(&route, |r| r).await?;
            // Whoever learned it first learned the same.
            let _ = self.me.set(me.id);
        }
        Ok(())
    }

    /// How far each channel is stored, read once.
    pub(crate) async fn positions(&self) -> Result<&ChannelPositions, AdapterStateError> {
        let load = || ChannelPositions::load(Arc::clone(&self.store));
        self.positions.get_or_try_init(load).await
    }

    pub(crate) async fn resume(
        &self,
        session: &GatewaySession,
    ) -> Result<GatewayConnection, ReceiveTrouble> {
        let greeting = GatewayGreeting::Resume {
            token: self.token.clone(),
            session: session.id.clone(),
            sequence: session.sequence,
        };
        Ok(self.connect(&session.url, greeting).await?)
    }

    /// Begins a session, if Discord allows one more.
    pub(crate) async fn identify(&self) -> Result<GatewayConnection, ReceiveTrouble> {
        let route = ApiRoute::get("/gateway/bot", &[]);
        // Asked each time: the number counts what other processes did with this token, too.
        let gateway: RawGatewayUrl = self.wire.patiently(&route, |r| r).await?;
        let RawStartLimit {
            remaining,
            reset_after,
        } = gateway.session_start_limit;
        // Refused by us before Discord does: one session too many resets the token, and then nobody
        // gets in.
        if remaining <= SPARE_SESSIONS {
            return Err(ReceiveTrouble::NoSessionsLeft {
                wait: Duration::from_millis(reset_after),
            });
        }
        let content = if self.message_content {
            MESSAGE_CONTENT
        } else {
            0
        };
        let greeting = GatewayGreeting::Identify {
            token: self.token.clone(),
            intents: INTENTS | content,
        };
        Ok(self.connect(&gateway.url, greeting).await?)
    }

    async fn connect(
        &self,
        url: &str,
        greeting: GatewayGreeting,
    ) -> Result<GatewayConnection, SocketError> {
        let hello = self.timing.hello;
        let opened = timeout(hello, GatewaySocket::open(&self.wire, url)).await;
        let socket = opened.unwrap_or(Err(SocketError::Silent))?;
        let interactions = Arc::clone(&self.interactions);
        Ok(GatewayConnection::start(
            socket,
            greeting,
            interactions,
            hello,
        ))
    }

    pub(crate) fn note_channels(&self, described: &[RawChannel]) {
        self.channels.note(described, self.me.get().copied());
    }

    /// Where a message stands. `None` if that is out of our reach.
    pub(crate) async fn locate(
        &self,
        message: &DiscordMessage,
    ) -> Result<Option<DiscordChannel>, ReceiveTrouble> {
        // Only the gateway says so, and a history does not come here.
        if message.guild_id.is_none() {
            return Ok(Some(DiscordChannel::private(message.channel_id)));
        }
        self.look_up(message.channel_id).await
    }

    pub(crate) async fn look_up(
        &self,
        id: Snowflake,
    ) -> Result<Option<DiscordChannel>, ReceiveTrouble> {
        if let Some(known) = self.channels.find(id) {
            return Ok(Some(known));
        }
        let route = ApiRoute::get("/channels/{}", &[&id]);
        match self.wire.patiently::<RawChannel>(&route, |r| r).await {
            Ok(channel) => {
                self.channels.note(&[channel], self.me.get().copied());
                Ok(self.channels.find(id))
            }
            Err(error) if error.is_out_of_reach() => Ok(None),
            Err(error) => Err(ReceiveTrouble::Lookup(error)),
        }
    }

    pub(crate) fn hear(
        &self,
        message: DiscordMessage,
        channel: &DiscordChannel,
    ) -> Result<HeardEvent, ReceiveTrouble> {
        let bot = self.bot().ok_or(ReceiveTrouble::Nameless)?;
        Ok(hearing::hear_message(message, channel, bot, self.now()))
    }

    pub(crate) fn hear_edit(
        &self,
        message: DiscordMessage,
        channel: &DiscordChannel,
    ) -> Result<HeardEvent, ReceiveTrouble> {
        let bot = self.bot().ok_or(ReceiveTrouble::Nameless)?;
        Ok(hearing::hear_edit(message, channel, bot, self.now()))
    }

    /// What a press or a command says, and the channel it was done in.
    pub(crate) fn hear_interaction(
        &self,
        interaction: RawInteraction,
    ) -> Result<Option<(HeardEvent, Snowflake)>, ReceiveTrouble> {
        let bot = self.bot().ok_or(ReceiveTrouble::Nameless)?;
        if let Some(channel) = &interaction.channel {
            let us = self.me.get().copied();
            self.channels.note(std::slice::from_ref(channel), us);
        }
        let id = interaction.channel.as_ref().map(|channel| channel.id);
        let Some(id) = id.or(interaction.channel_id) else {
            return Ok(None);
        };
        let channel = match interaction.guild_id {
            Some(_) => self.channels.find(id),
            None => Some(DiscordChannel::private(id)),
        };
        Ok(channel.map(|channel| {
            let heard = hearing::hear_interaction(interaction, &channel, bot, self.now());
            (heard, id)
        }))
    }

    /// Of a message that may have been for us. Where nobody knows the channel, nothing was.
    pub(crate) fn hear_deletion(&self, message: Snowflake, deletion: &RawDeletion) -> HeardEvent {
        let channel = match deletion.guild_id {
            Some(_) => self.channels.find(deletion.channel_id),
            None => Some(DiscordChannel::private(deletion.channel_id)),
        };
        let Some(channel) = channel else {
            return HeardEvent::Nothing("a channel we know nothing of");
        };
        HeardEvent::Event(Box::new(ChatEvent::Deleted(DeletedMessage {
            account: self.account.clone(),
            chat: channel.place().chat,
            message: message.into(),
        })))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn bot(&self) -> Option<DiscordBot<'_>> {
        Some(DiscordBot {
            account: &self.account,
            id: *self.me.get()?,
            hearing: &self.hearing,
        })
    }
}
