//! What interrupts listening, and what follows from it.

use std::time::Duration;

use hermetic_chat::AdapterStateError;
use hermetic_types::UpdateId;
use thiserror::Error;

use crate::close_code::Ended;
use crate::settlement::Origin;
use crate::socket::SocketError;
use crate::wire::CallError;

#[derive(Debug, Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("{}", why(.0))]
    Ended(Ended),
    /// A channel could not be looked up, and what was said there is in our hands alone.
    #[error("a channel could not be looked up")]
    Lookup(#[source] CallError),
    #[error("the event {update} was not stored")]
    NotStored { update: UpdateId, origin: Origin },
    /// One session more than Discord allows would reset the token.
    #[error("discord allows no new session for {}s", wait.as_secs())]
    NoSessionsLeft { wait: Duration },
    #[error(transparent)]
    State(#[from] AdapterStateError),
    #[error("we do not know our own name yet")]
    Nameless,
}

impl Trouble {
    /// Why trying again would end the same, if that is so.
    pub(crate) fn is_final(&self) -> Option<String> {
        match self {
            Self::Ended(Ended::Final { why }) => Some(why.clone()),
            Self::Call(CallError::Refused { status: 401, .. }) => Some(
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
            Self::NotStored { origin, .. } => matches!(origin, Origin::Live { .. }),
            // An event was taken out and could not be handed out.
            Self::State(_) | Self::Nameless | Self::Lookup(_) => true,
            Self::Ended(_) => true,
            Self::Call(_) | Self::Socket(_) | Self::NoSessionsLeft { .. } => false,
        }
    }

    pub(crate) fn ends_session(&self) -> bool {
        matches!(self, Self::Ended(Ended::SessionLost { .. }))
    }

    /// The least wait that was asked for.
    pub(crate) fn wait(&self) -> Option<Duration> {
        match self {
            Self::NoSessionsLeft { wait } => Some(*wait),
            Self::Call(CallError::Throttled { retry_after }) => Some(*retry_after),
            _ => None,
        }
    }
}

fn why(ended: &Ended) -> &str {
    match ended {
        Ended::Resumable { why } | Ended::SessionLost { why } | Ended::Final { why } => why,
    }
}
