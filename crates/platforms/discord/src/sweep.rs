//! What was said while we were away, channel by channel.

use std::collections::{HashMap, VecDeque};

use hermetic_chat::Position;
use hermetic_types::ChatId;
use serde::Deserialize;
use serde_json::Value;
use tracing::{debug, info, warn};

use crate::channels::ChannelKind;
use crate::dispatch::DiscordMessage;
use crate::hearing::HeardEvent;
use crate::route::ApiRoute;
use crate::snowflake::Snowflake;
use crate::trouble::ReceiveTrouble;
use crate::{BackfillLimits, DiscordAdapter};

/// What Discord hands out at once.
const PAGE: usize = 100;

/// Channels whose histories are still to be read.
#[derive(Debug)]
pub(crate) struct HistorySweep {
    channels: VecDeque<(Snowflake, Snowflake)>,
    bounds: BackfillLimits,
    /// Messages for us that may still be handed out.
    left: usize,
}

impl HistorySweep {
    /// Of these channels, each from the message after this one.
    pub(crate) fn new(known: Vec<(ChatId, Position)>, bounds: BackfillLimits) -> Self {
        let channels = known.into_iter().filter(|_| bounds.enabled);
        let channels = channels.filter_map(|(chat, stored)| {
            let channel = Snowflake::parse(chat.as_str())?;
            Some((channel, Snowflake::from_position(stored)))
        });
        Self {
            channels: channels.collect(),
            bounds,
            left: bounds.max_dispatches,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.channels.is_empty()
    }

    /// The next channel, and what its history holds for us in the order in which it was said. A channel
    /// stays the next one until it was read.
    pub(crate) async fn next_channel(
        &mut self,
        discord: &DiscordAdapter,
    ) -> Result<Option<(Snowflake, Vec<HeardEvent>)>, ReceiveTrouble> {
        let Some((id, stored)) = self.channels.front().copied() else {
            return Ok(None);
        };
        let oldest = Snowflake::before(discord.now(), self.bounds.window);
        let messages = match discord
            .read_history(id, stored.max(oldest), self.bounds.limit)
            .await
        {
            Ok(messages) => messages,
            // We were taken out of it, or it is gone.
            Err(ReceiveTrouble::Call(error)) if error.is_out_of_reach() => {
                debug!(channel = %id, %error, "a history cannot be read any more");
                Vec::new()
            }
            Err(trouble) => return Err(trouble),
        };
        let mut found = Vec::new();
        if !messages.is_empty()
            && let Some(channel) = discord.look_up(id).await?
        {
            let mut known = HashMap::new();
            for mut message in messages {
                if discord.needs_roles && channel.kind != ChannelKind::Private {
                    message.member = discord.find_member(id, &message, &mut known).await?;
                }
                let heard = discord.hear(message, &channel)?;
                found.extend(matches!(heard, HeardEvent::Event(_)).then_some(heard));
            }
        }
        // Only now, when it was read: a look-up that fails leaves the channel the next one.
        self.channels.pop_front();
        if found.len() > self.left {
            let unanswered = found.len() - self.left;
            warn!(channel = %id, unanswered, "more was said while we were away than may be answered");
            found.truncate(self.left);
        }
        self.left -= found.len();
        if !found.is_empty() {
            info!(channel = %id, messages = found.len(), "read what was said while we were away");
        }
        Ok(Some((id, found)))
    }
}

impl DiscordAdapter {
    /// At most `limit` messages behind `after`, the oldest first.
    async fn read_history(
        &self,
        channel: Snowflake,
        mut after: Snowflake,
        limit: usize,
    ) -> Result<Vec<DiscordMessage>, ReceiveTrouble> {
        let mut messages = Vec::new();
        while messages.len() < limit {
            let size = PAGE.min(limit - messages.len());
            let route = ApiRoute::get("/channels/{}/messages", &[&channel])
                .asking(&format!("after={after}&limit={size}"));
            let page: Vec<Value> = self.wire.patiently(&route, |r| r).await?;
            let found = page.len();
            // One that cannot be read must not cost the others.
            let mut read: Vec<_> = page
                .into_iter()
                .filter_map(|message| DiscordMessage::deserialize(message).ok())
                .filter(|message| message.id > after)
                .collect();
            // Discord gives the newest first, also behind a given message; they are handed out in
            // the order they were said.
            read.sort_by_key(|message| message.id);
            let Some(last) = read.last() else {
                break;
            };
            after = last.id;
            messages.extend(read);
            if found < size {
                return Ok(messages);
            }
        }
        if messages.len() >= limit {
            info!(%channel, limit, "no more of a history is read than this");
        }
        Ok(messages)
    }
}
