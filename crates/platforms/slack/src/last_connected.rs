//! When somebody was last connected: from then on a channel is read of which nothing else is known.

use std::convert::Infallible;
use std::time::Duration;

use hermetic_chat::{ChatState, Position, Saving};
use jiff::Timestamp;
use tokio::time::sleep;
use tracing::warn;

use crate::account::SlackAccount;

const KEY: &str = "last_connected";
/// A sweep that begins a minute too early finds what it knows.
const EVERY: Duration = Duration::from_secs(60);

pub(crate) async fn load(slack: &SlackAccount) -> Option<Position> {
    match slack.adapter_state.load(KEY).await {
        Ok(kept) => kept?.parse().ok(),
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
            let now = Timestamp::now().as_microsecond().to_string();
            if let Err(error) = slack.adapter_state.save(KEY, &now, Saving::Soon).await {
                warn!(account = %slack.account, %error, "when we were last connected cannot be noted");
            }
        }
    }
}
