//! What interrupts listening, and what follows from it.

use std::time::Duration;

use hermetic_chat::AdapterStateError;
use hermetic_types::UpdateId;
use thiserror::Error;

use crate::close_code::ConnectionEnd;
use crate::settlement::EventOrigin;
use crate::socket::SocketError;
use crate::wire::DiscordCallError;

#[derive(Debug, Error)]
pub(crate) enum ReceiveTrouble {
    #[error(transparent)]
    Call(#[from] DiscordCallError),
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("{}", why(.0))]
    Ended(ConnectionEnd),
    /// A channel could not be looked up, and what was said there is in our hands alone.
    #[error("a channel could not be looked up")]
    Lookup(#[source] DiscordCallError),
    #[error("the event {update} was not stored")]
    NotStored {
        update: UpdateId,
        origin: EventOrigin,
    },
    /// One session more than Discord allows would reset the token.
    #[error("discord allows no new session for {}s", wait.as_secs())]
    NoSessionsLeft { wait: Duration },
    #[error(transparent)]
    State(#[from] AdapterStateError),
    #[error("we do not know our own name yet")]
    Nameless,
}

impl ReceiveTrouble {
    /// Why trying again would end the same, if that is so.
    pub(crate) fn is_final(&self) -> Option<String> {
        match self {
            Self::Ended(ConnectionEnd::Final { why }) => Some(why.clone()),
            Self::Call(DiscordCallError::Refused { status: 401, .. }) => Some(
                "the bot token is not valid; copy it anew from Discord's developer portal"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// Whether events have to come again by a new connection. A sweep that was cut short is begun again
    /// on the connection that is there.
    pub(crate) fn needs_connection(&self) -> bool {
        match self {
            Self::NotStored { origin, .. } => matches!(origin, EventOrigin::Live { .. }),
            // An event was taken out and could not be handed out.
            Self::State(_) | Self::Nameless | Self::Lookup(_) => true,
            Self::Ended(_) => true,
            Self::Call(_) | Self::Socket(_) | Self::NoSessionsLeft { .. } => false,
        }
    }

    pub(crate) fn ends_session(&self) -> bool {
        matches!(self, Self::Ended(ConnectionEnd::SessionLost { .. }))
    }

    /// The least wait that was asked for.
    pub(crate) fn wait(&self) -> Option<Duration> {
        match self {
            Self::NoSessionsLeft { wait } => Some(*wait),
            Self::Call(DiscordCallError::Throttled { retry_after }) => Some(*retry_after),
            _ => None,
        }
    }
}

fn why(ended: &ConnectionEnd) -> &str {
    match ended {
        ConnectionEnd::Resumable { why }
        | ConnectionEnd::SessionLost { why }
        | ConnectionEnd::Final { why } => why,
    }
}
