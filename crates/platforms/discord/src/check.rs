//! Who a token belongs to, and what the bot lacks.

use hermetic_chat::{AccountCheck, AccountShortcoming, CheckError};
use serde::Deserialize;

use crate::DiscordAdapter;
use crate::route::ApiRoute;
use crate::wire::DiscordCallError;

/// The message content intent is switched on: for a bot that was reviewed, and for one in few servers.
const HAS_CONTENT: u64 = 1 << 18 | 1 << 19;
/// Below this many new sessions it is time to look why they are begun.
const FEW_SESSIONS: u64 = 100;

/// Servers that are looked at; Discord lists so many at once.
const MOST_GUILDS: usize = 200;

/// Something that a bot has to be allowed, as Discord's settings name it.
struct ChannelPermission {
    bit: u64,
    name: &'static str,
    /// Needed only where answers are given in threads.
    for_threads: bool,
}

const PERMISSIONS: [ChannelPermission; 6] = {
    const fn always(bit: u32, name: &'static str) -> ChannelPermission {
        ChannelPermission {
            bit: 1 << bit,
            name,
            for_threads: false,
        }
    }
    const fn for_threads(bit: u32, name: &'static str) -> ChannelPermission {
        ChannelPermission {
            for_threads: true,
            ..always(bit, name)
        }
    }
    [
        always(10, "View Channels"),
        always(11, "Send Messages"),
        always(15, "Attach Files"),
        always(16, "Read Message History"),
        for_threads(35, "Create Public Threads"),
        for_threads(38, "Send Messages in Threads"),
    ]
};

#[derive(Deserialize)]
struct RawGuildRights {
    #[serde(default)]
    name: String,
    /// A number, as a text.
    #[serde(default)]
    permissions: String,
}

#[derive(Deserialize)]
struct RawSelf {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
struct RawApplication {
    #[serde(default)]
    flags: u64,
}

#[derive(Deserialize)]
struct RawGatewayCheck {
    session_start_limit: RawLeft,
}

#[derive(Deserialize)]
struct RawLeft {
    remaining: u64,
}

impl DiscordAdapter {
    pub(crate) async fn check_account(&self) -> Result<AccountCheck, CheckError> {
        let me: RawSelf = self
            .wire
            .call(&ApiRoute::get("/users/@me", &[]), |r| r)
            .await?;
        let route = ApiRoute::get("/applications/@me", &[]);
        let application: RawApplication = self.wire.call(&route, |r| r).await?;
        let route = ApiRoute::get("/gateway/bot", &[]);
        let gateway: RawGatewayCheck = self.wire.call(&route, |r| r).await?;
        let mut shortcomings = Vec::new();
        if self.message_content && application.flags & HAS_CONTENT == 0 {
            shortcomings.push(AccountShortcoming {
                problem: "the message content intent is switched off, and Discord will refuse us"
                    .to_owned(),
                remedy: "switch it on in Discord's developer portal under Bot, or write \
                         `message_content: false` below `discord` to hear private messages and \
                         mentions only"
                    .to_owned(),
            });
        }
        let left = gateway.session_start_limit.remaining;
        if left < FEW_SESSIONS {
            shortcomings.push(AccountShortcoming {
                problem: format!("only {left} sessions may be begun today"),
                remedy: "end other programs that use this token, and look why the gateway restarts"
                    .to_owned(),
            });
        }
        shortcomings.extend(self.lacking_permissions().await?);
        Ok(AccountCheck {
            name: Some(me.username),
            shortcomings,
        })
    }
}

impl DiscordAdapter {
    /// What a server does not let the bot do. What single channels forbid is not looked at: a bot is often
    /// kept out of some on purpose.
    async fn lacking_permissions(&self) -> Result<Vec<AccountShortcoming>, CheckError> {
        let route = ApiRoute::get("/users/@me/guilds", &[]);
        let guilds: Vec<RawGuildRights> = self.wire.call(&route, |r| r).await?;
        let wanted = PERMISSIONS.iter();
        let wanted: Vec<_> = wanted
            .filter(|wanted| self.hearing.auto_thread || !wanted.for_threads)
            .collect();
        let mut shortcomings = Vec::new();
        for guild in guilds.iter().take(MOST_GUILDS) {
            let missing: Vec<_> = wanted
                .iter()
                .filter(|wanted| !guild.permits(wanted.bit))
                .map(|wanted| wanted.name)
                .collect();
            if !missing.is_empty() {
                shortcomings.push(AccountShortcoming {
                    problem: format!(
                        "in the server {:?} it may not: {}",
                        guild.name,
                        missing.join(", ")
                    ),
                    remedy:
                        "tick these in a role of the bot in that server's settings, or invite it \
                             again with them"
                            .to_owned(),
                });
            }
        }
        Ok(shortcomings)
    }
}

impl RawGuildRights {
    fn permits(&self, bit: u64) -> bool {
        const ADMINISTRATOR: u64 = 1 << 3;
        // What cannot be read is not held against the server.
        let Ok(permissions) = self.permissions.parse::<u64>() else {
            return true;
        };
        permissions & (ADMINISTRATOR | bit) != 0
    }
}

impl From<DiscordCallError> for CheckError {
    fn from(error: DiscordCallError) -> Self {
        match error {
            DiscordCallError::Refused {
                status: 401,
                description,
                ..
            } => Self::Unauthorized { description },
            DiscordCallError::Refused { description, .. } => Self::Refused { description },
            other => Self::Unreachable(Box::new(other)),
        }
    }
}
