//! What people are in a server: asked for where it is not told.

use std::collections::HashMap;

use serde::Deserialize;

use crate::DiscordAdapter;
use crate::dispatch::{DiscordMessage, RawRoles};
use crate::route::ApiRoute;
use crate::snowflake::Snowflake;
use crate::trouble::ReceiveTrouble;

#[derive(Deserialize)]
struct RawGuildChannel {
    guild_id: Option<Snowflake>,
}

/// The members that were asked about in one history.
pub(crate) type KnownMembers = HashMap<Snowflake, RawRoles>;

impl DiscordAdapter {
    /// Who wrote this is in the server, as far as we may know it. A history does not tell.
    pub(crate) async fn find_member(
        &self,
        channel: Snowflake,
        message: &DiscordMessage,
        known: &mut KnownMembers,
    ) -> Result<Option<RawRoles>, ReceiveTrouble> {
        let Some(author) = message.author.as_ref().filter(|author| !author.bot) else {
            return Ok(None);
        };
        if let Some(member) = known.get(&author.id) {
            return Ok(Some(member.clone()));
        }
        let route = ApiRoute::get("/channels/{}", &[&channel]);
        let channel: RawGuildChannel = self.wire.patiently(&route, |r| r).await?;
        let Some(guild) = channel.guild_id else {
            return Ok(None);
        };
        let route = ApiRoute::get("/guilds/{}/members/{}", &[&guild, &author.id]);
        let member = match self.wire.patiently::<RawRoles>(&route, |r| r).await {
            Ok(member) => member,
            // They left it.
            Err(error) if error.is_out_of_reach() => RawRoles::default(),
            Err(error) => return Err(error.into()),
        };
        known.insert(author.id, member.clone());
        Ok(Some(member))
    }
}
