//! What was said while we were away, channel by channel.

use std::collections::{HashMap, VecDeque};

use hermetic_chat::Position;
use hermetic_types::ChatId;
use serde::Deserialize;
use serde_json::Value;
use tracing::{debug, info, warn};

use crate::channels::ChannelKind;
use crate::dispatch::{DiscordMessage, RawChannel};
use crate::hearing::HeardEvent;
use crate::members::KnownMembers;
use crate::route::ApiRoute;
use crate::snowflake::Snowflake;
use crate::trouble::ReceiveTrouble;
use crate::{BackfillLimits, DiscordAdapter};

/// What Discord hands out at once.
const PAGE: usize = 100;
/// Pages that are read of one channel, whatever is said there: Discord gives about one a second, and
/// what is new waits meanwhile.
const MOST_PAGES: usize = 50;
/// Channels of one server that are read although nobody ever spoke to us there, the liveliest first.
const MOST_NEW_CHANNELS: usize = 200;

/// Channels whose histories are still to be read.
#[derive(Debug)]
pub(crate) struct HistorySweep {
    channels: VecDeque<(Snowflake, Snowflake)>,
    bounds: BackfillLimits,
}

/// What a channel's history held for us, in the order in which it was said.
#[derive(Debug)]
pub(crate) struct SweptChannel {
    pub(crate) id: Snowflake,
    pub(crate) found: Vec<HeardEvent>,
    /// The last message, if all of them were read and are handed out.
    pub(crate) read_to: Option<Snowflake>,
}

/// The messages of a channel that were read, as far as they are for us.
#[derive(Debug, Default)]
struct ReadHistory {
    found: Vec<HeardEvent>,
    read_to: Option<Snowflake>,
}

impl HistorySweep {
    /// Of these channels, each from the message after this one.
    pub(crate) fn new(known: Vec<(ChatId, Position)>, bounds: BackfillLimits) -> Self {
        let channels = known.into_iter().filter_map(|(chat, stored)| {
            let channel = Snowflake::parse(chat.as_str())?;
            Some((channel, Snowflake::from_position(stored)))
        });
        Self::of(channels.collect(), bounds)
    }

    /// Of channels of which nothing is known, from one moment on.
    pub(crate) fn since(
        since: Snowflake,
        channels: Vec<Snowflake>,
        bounds: BackfillLimits,
    ) -> Self {
        let channels = channels.into_iter().map(|channel| (channel, since));
        Self::of(channels.collect(), bounds)
    }

    fn of(channels: VecDeque<(Snowflake, Snowflake)>, bounds: BackfillLimits) -> Self {
        let channels = if bounds.enabled {
            channels
        } else {
            VecDeque::new()
        };
        Self { channels, bounds }
    }

    /// Takes over what another one did not come to.
    pub(crate) fn take_over(&mut self, other: Self) {
        for (channel, since) in other.channels {
            if !self.channels.iter().any(|(known, _)| *known == channel) {
                self.channels.push_back((channel, since));
            }
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.channels.is_empty()
    }

    /// The next channel. It stays the next one until it was read. `left` is how many messages may still be
    /// answered.
    pub(crate) async fn next_channel(
        &mut self,
        discord: &DiscordAdapter,
        left: &mut usize,
    ) -> Result<Option<SweptChannel>, ReceiveTrouble> {
        let Some((id, stored)) = self.channels.front().copied() else {
            return Ok(None);
        };
        let oldest = Snowflake::before(discord.now(), self.bounds.window);
        let limit = self.bounds.limit;
        let read = match discord.read_history(id, stored.max(oldest), limit).await {
            Ok(read) => read,
            // We were taken out of it, or it is gone.
            Err(ReceiveTrouble::Call(error)) if error.is_out_of_reach() => {
                debug!(channel = %id, %error, "a history cannot be read any more");
                ReadHistory::default()
            }
            Err(trouble) => return Err(trouble),
        };
        // Only now, when it was read: a look-up that fails leaves the channel the next one.
        self.channels.pop_front();
        let ReadHistory {
            mut found,
            mut read_to,
        } = read;
        if found.len() > *left {
            let unanswered = found.len() - *left;
            warn!(channel = %id, unanswered, "more was said while we were away than may be answered");
            found.truncate(*left);
            read_to = None;
        }
        *left -= found.len();
        if !found.is_empty() {
            info!(channel = %id, messages = found.len(), "read what was said while we were away");
        }
        Ok(Some(SweptChannel { id, found, read_to }))
    }
}

impl DiscordAdapter {
    /// Channels of a server in which something was said after `since`, and of which nothing else is known.
    pub(crate) async fn channels_with_news(
        &self,
        described: &[RawChannel],
        since: Snowflake,
    ) -> Result<Vec<Snowflake>, ReceiveTrouble> {
        let positions = self.positions().await?;
        let with_news = described.iter().filter_map(|raw| {
            let last = raw.last_message_id.filter(|last| *last > since)?;
            let channel = self.channels.find(raw.id)?;
            let is_read = raw.has_history()
                && self.hearing.ignores(&channel, true).is_none()
                && !positions.knows(&raw.id.into());
            is_read.then_some((last, raw.id))
        });
        let mut with_news: Vec<_> = with_news.collect();
        with_news.sort_by(|one, other| other.cmp(one));
        let too_many = with_news.len().saturating_sub(MOST_NEW_CHANNELS);
        if too_many > 0 {
            warn!(account = %self.account, too_many, "channels in which nobody spoke to us yet are not looked into for what was said meanwhile");
        }
        let with_news = with_news.into_iter().take(MOST_NEW_CHANNELS);
        Ok(with_news.map(|(_, channel)| channel).collect())
    }

    /// What others say to each other moves a channel's position too, or all of it would be read after the
    /// next gap, and what was said in that would be beyond what is read.
    pub(crate) async fn pass_over(&self, channel: Snowflake, message: Snowflake) {
        let channel = channel.into();
        let passed = match self.positions().await {
            Ok(positions) => positions.pass_over(&channel, message.position()).await,
            Err(error) => Err(error),
        };
        // Nothing is lost by a position that lags.
        passed.unwrap_or_else(|error| warn!(%error, %channel, "a channel's position was not kept"));
    }

    /// What is for us behind `after`, at most `limit` messages, the oldest first. What others said to each
    /// other does not count.
    async fn read_history(
        &self,
        id: Snowflake,
        mut after: Snowflake,
        limit: usize,
    ) -> Result<ReadHistory, ReceiveTrouble> {
        let mut read = ReadHistory::default();
        let mut members = HashMap::new();
        for _ in 0..MOST_PAGES {
            let (page, is_full) = self.read_page(id, after).await?;
            let Some(last) = page.last() else {
                return Ok(read);
            };
            after = last.id;
            for message in page {
                if read.found.len() >= limit {
                    info!(channel = %id, limit, "no more of a history is read than this");
                    return Ok(read);
                }
                read.found
                    .extend(self.hear_missed(id, message, &mut members).await?);
            }
            if !is_full {
                read.read_to = Some(after);
                return Ok(read);
            }
        }
        warn!(channel = %id, pages = MOST_PAGES, "more was said while we were away than is read");
        Ok(read)
    }

    async fn hear_missed(
        &self,
        id: Snowflake,
        mut message: DiscordMessage,
        members: &mut KnownMembers,
    ) -> Result<Option<HeardEvent>, ReceiveTrouble> {
        let Some(channel) = self.look_up(id).await? else {
            return Ok(None);
        };
        if self.needs_roles && channel.kind != ChannelKind::Private {
            message.member = self.find_member(id, &message, members).await?;
        }
        let heard = self.hear(message, &channel)?;
        Ok(Some(heard).filter(|heard| matches!(heard, HeardEvent::Event(_))))
    }

    /// The messages behind `after`, the oldest first, and whether there may be more.
    async fn read_page(
        &self,
        channel: Snowflake,
        after: Snowflake,
    ) -> Result<(Vec<DiscordMessage>, bool), ReceiveTrouble> {
        let route = ApiRoute::get("/channels/{}/messages", &[&channel])
            .asking(&format!("after={after}&limit={PAGE}"));
        let page: Vec<Value> = self.wire.patiently(&route, |r| r).await?;
        let is_full = page.len() >= PAGE;
        // One that cannot be read must not cost the others.
        let read = page
            .into_iter()
            .filter_map(|message| DiscordMessage::deserialize(message).ok());
        let mut read: Vec<_> = read.filter(|message| message.id > after).collect();
        // Discord gives the newest first, also behind a given message; they are handed out in the order
        // they were said.
        read.sort_by_key(|message| message.id);
        Ok((read, is_full))
    }
}
