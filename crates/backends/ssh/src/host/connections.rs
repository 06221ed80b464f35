//! The connections that stand: one, until it is full.

use std::sync::{Arc, Weak};
use std::time::Duration;

use hermetic_sandbox::BackendError;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::SshConfig;
use super::connection::{ChannelPermit, SshConnection};

/// A connection that nobody uses is kept this long.
const KEPT: Duration = Duration::from_secs(300);

#[derive(Debug, Default)]
pub(super) struct SshConnections(Arc<Mutex<Vec<Arc<SshConnection>>>>);

impl SshConnections {
    /// Who comes while a connection is being made waits for that one.
    pub(super) async fn enter(&self, config: &SshConfig) -> Result<ChannelPermit, BackendError> {
        // Held while a connection is made, or ten who come at once would each make one.
        let mut all = self.0.lock().await;
        all.retain(|connection| !connection.is_gone());
        loop {
            if let Some(place) = all.iter().find_map(SshConnection::enter) {
                return Ok(place);
            }
            let connection = Arc::new(SshConnection::open(config).await?);
            // Weak, both of them: this task must keep neither a connection nor the pool alive.
            let (pool, new) = (Arc::downgrade(&self.0), Arc::downgrade(&connection));
            tokio::spawn(close_when_idle(pool, new));
            all.push(connection);
        }
    }
}

async fn close_when_idle(
    all: Weak<Mutex<Vec<Arc<SshConnection>>>>,
    connection: Weak<SshConnection>,
) {
    loop {
        let due = match connection.upgrade() {
            None => return,
            Some(connection) => connection.idle_since().unwrap_or_else(Instant::now) + KEPT,
        };
        if due > Instant::now() {
            sleep_until(due).await;
            continue;
        }
        let Some(all) = all.upgrade() else { return };
        let mut all = all.lock().await;
        // Nobody can enter while we look.
        all.retain(|other| {
            let due = other
                .idle_since()
                .is_some_and(|since| since + KEPT <= Instant::now());
            !(due && Weak::as_ptr(&connection) == Arc::as_ptr(other))
        });
    }
}
