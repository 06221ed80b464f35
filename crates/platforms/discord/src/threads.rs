//! The channel that a place is, made first where it is a thread that does not exist yet.
//!
//! Discord gives a thread the id of the message it hangs under, and a message has one thread at most. So
//! making it twice makes one, and a request whose end is unknown is simply made again.

use hermetic_chat::SendFailure;
use hermetic_types::ChatPlace;
use serde_json::{Value, json};
use tracing::{debug, warn};

use crate::DiscordAdapter;
use crate::dispatch::RawChannel;
use crate::route::ApiRoute;
use crate::snowflake::Snowflake;
use crate::wire::DiscordCallError;

/// What a thread is called. Words of a person would leave unredacted here; the message that it hangs
/// under says what it is about.
const NAME: &str = "Conversation";
/// Minutes of silence after which Discord folds a thread away. Whoever writes there unfolds it.
const FOLDED_AFTER: u32 = 1440;
/// How often a request without a known end is made.
const THREAD_ATTEMPTS: u32 = 3;

/// Discord's numbers for refusals.
const THREAD_EXISTS: u32 = 160_004;
const NO_ACCESS: u32 = 50_001;
const NO_PERMISSION: u32 = 50_013;

/// Where something is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendTarget {
    pub(crate) channel: Snowflake,
    /// The message to which everything here replies already, as far as people see.
    pub(crate) thread: Option<Snowflake>,
}

impl DiscordAdapter {
    pub(crate) async fn target(&self, place: &ChatPlace) -> Result<SendTarget, SendFailure> {
        let channel = snowflake("channel", place.chat.as_str())?;
        let Some(thread) = &place.thread else {
            return Ok(SendTarget {
                channel,
                thread: None,
            });
        };
        let thread = snowflake("thread", thread.as_str())?;
        if self.channels.is_threadless(channel) && self.channels.find(thread).is_none() {
            return Ok(SendTarget {
                channel,
                thread: None,
            });
        }
        if self.channels.find(thread).is_some_and(|known| known.ours)
            || self.enter(channel, thread).await?
        {
            return Ok(SendTarget {
                channel: thread,
                thread: Some(thread),
            });
        }
        Ok(SendTarget {
            channel,
            thread: None,
        })
    }

    /// Takes part in a thread, making it if need be. `false` if Discord does not let us make one: then
    /// it is answered where it was said.
    async fn enter(&self, channel: Snowflake, thread: Snowflake) -> Result<bool, SendFailure> {
        let exists = self.channels.find(thread).is_some();
        if exists {
            // Seeing a thread should be enough to hear it; some bots were deaf until they joined.
            let route = ApiRoute::put("/channels/{}/thread-members/@me", &[&thread]);
            if let Err(error) = self.wire.call::<Value>(&route, |r| r).await {
                debug!(%error, "a thread could not be joined");
            }
        } else if let Err(error) = self.make_thread(channel, thread).await {
            if !matches!(error.code(), Some(NO_ACCESS | NO_PERMISSION)) {
                return Err(not_sent(error));
            }
            warn!(account = %self.account, %channel, "threads may not be made here; answering in the channel");
            self.channels.note_threadless(channel);
            return Ok(false);
        }
        if let Err(error) = self.channels.join(thread, channel).await {
            warn!(%error, "a thread will not be known after a restart");
        }
        Ok(true)
    }

    async fn make_thread(
        &self,
        channel: Snowflake,
        message: Snowflake,
    ) -> Result<(), DiscordCallError> {
        let route = ApiRoute::post("/channels/{}/messages/{}/threads", &[&channel, &message]);
        let body = json!({ "name": NAME, "auto_archive_duration": FOLDED_AFTER });
        let mut attempt = 1;
        loop {
            let error = match self
                .wire
                .patiently::<Value>(&route, |r| r.json(&body))
                .await
            {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            match &error {
                _ if error.code() == Some(THREAD_EXISTS) => return Ok(()),
                DiscordCallError::Refused { status: 400.., .. } if self.exists(message).await => {
                    return Ok(());
                }
                DiscordCallError::Broken(_) | DiscordCallError::Garbled { .. }
                    if attempt < THREAD_ATTEMPTS =>
                {
                    debug!(%error, attempt, "making a thread again");
                    attempt += 1;
                }
                _ => return Err(error),
            }
        }
    }

    /// Whether there is a thread of this id that we have not heard of.
    async fn exists(&self, thread: Snowflake) -> bool {
        let route = ApiRoute::get("/channels/{}", &[&thread]);
        self.wire
            .patiently::<RawChannel>(&route, |r| r)
            .await
            .is_ok()
    }
}

/// Whatever became of the thread, the message certainly did not leave, and it may be tried again.
fn not_sent(error: DiscordCallError) -> SendFailure {
    match SendFailure::from(error) {
        SendFailure::Uncertain(error) => SendFailure::NotSent(error),
        failure => failure,
    }
}

pub(crate) fn snowflake(what: &str, id: &str) -> Result<Snowflake, SendFailure> {
    Snowflake::parse(id).ok_or_else(|| SendFailure::Refused {
        description: format!("{id:?} is no discord {what}"),
    })
}
