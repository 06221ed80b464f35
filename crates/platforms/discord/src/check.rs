//! Who a token belongs to, and what the bot lacks.

use hermetic_chat::{AccountCheck, CheckError, Shortcoming};
use serde::Deserialize;

use crate::Discord;
use crate::route::Route;
use crate::wire::CallError;

/// The message content intent is switched on: for a bot that was reviewed, and for one in few servers.
const HAS_CONTENT: u64 = 1 << 18 | 1 << 19;
/// Below this many new sessions it is time to look why they are begun.
const FEW_SESSIONS: u64 = 100;

#[derive(Deserialize)]
struct RawMe {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
struct RawApplication {
    #[serde(default)]
    flags: u64,
}

#[derive(Deserialize)]
struct RawGateway {
    session_start_limit: RawLeft,
}

#[derive(Deserialize)]
struct RawLeft {
    remaining: u64,
}

impl Discord {
    pub(crate) async fn check_account(&self) -> Result<AccountCheck, CheckError> {
        let me: RawMe = self
            .wire
            .call(&Route::get("/users/@me", &[]), |r| r)
            .await?;
        let route = Route::get("/applications/@me", &[]);
        let application: RawApplication = self.wire.call(&route, |r| r).await?;
        let route = Route::get("/gateway/bot", &[]);
        let gateway: RawGateway = self.wire.call(&route, |r| r).await?;
        let mut shortcomings = Vec::new();
        if self.message_content && application.flags & HAS_CONTENT == 0 {
            shortcomings.push(Shortcoming {
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
            shortcomings.push(Shortcoming {
                problem: format!("only {left} sessions may be begun today"),
                remedy: "end other programs that use this token, and look why the gateway restarts"
                    .to_owned(),
            });
        }
        Ok(AccountCheck {
            name: Some(me.username),
            shortcomings,
        })
    }
}

impl From<CallError> for CheckError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused {
                status: 401,
                description,
                ..
            } => Self::Unauthorized { description },
            CallError::Refused { description, .. } => Self::Refused { description },
            other => Self::Unreachable(Box::new(other)),
        }
    }
}
