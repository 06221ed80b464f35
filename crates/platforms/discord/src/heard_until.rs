//! Until when everything was heard: from then on a channel is read of which nothing else is known.

use std::time::Duration;

use hermetic_chat::{AdapterState, AdapterStateError, SaveDurability};
use hermetic_types::Timestamp;
use tokio::time::Instant;

use crate::snowflake::Snowflake;

const KEY: &str = "heard_until";
/// A sweep that begins a minute too early finds what it knows. It is as well how long a connection
/// lasts before it moves this: until then servers are described, and what was missed comes.
const MARGIN: Duration = Duration::from_secs(60);
/// What is said in the moment of the first session counts.
const ONE_TICK: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(crate) struct HeardUntil {
    at: Option<Snowflake>,
    connected: Option<Instant>,
}

impl HeardUntil {
    pub(crate) async fn load(state: &dyn AdapterState) -> Result<Self, AdapterStateError> {
        let kept = state.load(KEY).await?;
        Ok(Self {
            at: kept.as_deref().and_then(Snowflake::parse),
            connected: None,
        })
    }

    /// `None` before the first session.
    pub(crate) fn at(&self) -> Option<Snowflake> {
        self.at
    }

    pub(crate) fn connected(&mut self) {
        self.connected = Some(Instant::now());
    }

    /// The first session of all begins: what was said before was not said to us.
    pub(crate) async fn begin(
        &mut self,
        now: Timestamp,
        state: &dyn AdapterState,
    ) -> Result<(), AdapterStateError> {
        match self.at {
            Some(_) => Ok(()),
            None => self.save(Snowflake::before(now, ONE_TICK), state).await,
        }
    }

    /// This message was heard live, and nothing before it is missing.
    pub(crate) async fn note(
        &mut self,
        message: Snowflake,
        state: &dyn AdapterState,
    ) -> Result<(), AdapterStateError> {
        let is_settled = self.connected.is_some_and(|at| at.elapsed() >= MARGIN);
        let heard = message.earlier(MARGIN);
        // By Discord's clock alone, and once a minute.
        if is_settled && self.at.is_none_or(|at| heard > at.later(MARGIN)) {
            self.save(heard, state).await?;
        }
        Ok(())
    }

    async fn save(
        &mut self,
        at: Snowflake,
        state: &dyn AdapterState,
    ) -> Result<(), AdapterStateError> {
        self.at = Some(at);
        let at = at.to_string();
        state.save(KEY, &at, SaveDurability::Soon).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermetic_chat::InMemoryState;

    #[tokio::test(start_paused = true)]
    async fn it_moves_once_a_connection_has_settled_and_stays_a_minute_behind() {
        let state = InMemoryState::default();
        let now: Timestamp = "2026-11-19T12:00:00Z".parse().unwrap();
        let mut heard = HeardUntil::load(&state).await.unwrap();
        assert_eq!(heard.at(), None);
        heard.begin(now, &state).await.unwrap();
        let first = Snowflake::before(now, ONE_TICK);
        assert_eq!(heard.at(), Some(first));

        heard.connected();
        let message = Snowflake::at(now).later(MARGIN * 5);
        heard.note(message, &state).await.unwrap();
        assert_eq!(heard.at(), Some(first), "servers are still described");
        tokio::time::advance(MARGIN).await;
        heard.note(message, &state).await.unwrap();
        assert_eq!(heard.at(), Some(message.earlier(MARGIN)));
        let again = HeardUntil::load(&state).await.unwrap();
        assert_eq!(again.at(), heard.at(), "the next process knows it");
        heard.begin(now, &state).await.unwrap();
        assert_eq!(heard.at(), again.at(), "a later session begins nothing");
    }
}
