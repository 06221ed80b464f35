//! When somebody was last connected: from then on a channel is read of which nothing else is known.

use std::convert::Infallible;
use std::time::Duration;

use hermetic_chat::{ChatState, Position, SaveDurability};
use tokio::time::sleep;
use tracing::warn;

use crate::account::SlackAccount;

const KEY: &str = "last_connected";
/// A sweep that begins a minute too early finds what it knows.
const EVERY: Duration = Duration::from_secs(60);

pub(crate) async fn load(slack: &SlackAccount) -> Option<Position> {
    match slack.adapter_state.load(KEY).await {
        Ok(kept) => {
            let since = kept?.parse().ok()?;
            // Noted by a clock that was ahead, it would hide what was said until then: all is read that a
            // sweep may read.
            let latest = u128::from(slack.position_now()) + EVERY.as_micros();
            let is_ahead = u128::from(since) > latest;
            Some(if is_ahead { Position::MIN } else { since })
        }
        Err(error) => {
            warn!(account = %slack.account, %error, "when we were last connected cannot be read");
            None
        }
    }
}

/// Notes the time now and then, for as long as it is polled: while nothing is left to be swept.
pub(crate) async fn keep_noting(slack: &SlackAccount) -> Infallible {
    loop {
        sleep(EVERY).await;
        if slack.state() == ChatState::Connected {
            let now = slack.position_now().to_string();
            if let Err(error) = slack
                .adapter_state
                .save(KEY, &now, SaveDurability::Soon)
                .await
            {
                warn!(account = %slack.account, %error, "when we were last connected cannot be noted");
            }
        }
    }
}
