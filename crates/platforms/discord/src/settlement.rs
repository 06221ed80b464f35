//! What became of an event that was handed out.

use hermetic_chat::ReceiptWaiter;
use hermetic_types::{MessageId, UpdateId};
use tracing::warn;

use crate::DiscordAdapter;
use crate::snowflake::Snowflake;

/// Where an event came from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventOrigin {
    Live { number: u64 },
    History,
}

pub(crate) struct SettledEvent {
    pub(crate) origin: EventOrigin,
    /// The connection by which it came.
    pub(crate) round: u64,
    pub(crate) update: UpdateId,
    /// A command that waits to hear that it is stored.
    pub(crate) interaction: Option<Snowflake>,
    pub(crate) stored: bool,
}

/// Waits for the receipt, and moves the channel's position.
pub(crate) async fn settle(
    discord: &DiscordAdapter,
    mut settled: SettledEvent,
    channel: Snowflake,
    at: Option<Snowflake>,
    counterfoil: ReceiptWaiter,
) -> SettledEvent {
    settled.stored = match (at, discord.positions().await) {
        (Some(at), Ok(positions)) => {
            let channel = channel.into();
            let kept = positions.settle(&channel, at.position(), counterfoil);
            kept.await.unwrap_or_else(|error| {
                // It is stored; only a sweep will find it once more.
                warn!(%error, "the position of a channel was not kept");
                true
            })
        }
        _ => counterfoil.signed().await,
    };
    settled
}

/// Deletions have no names of their own; a message is deleted once.
pub(crate) fn deletion(message: &MessageId) -> UpdateId {
    let name = UpdateId::new(format!("deleted:{message}"));
    name.unwrap_or_else(|_| UpdateId::from(0))
}
