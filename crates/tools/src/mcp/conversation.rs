//! What one conversation has of each server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::McpServerSettings;
use super::definition::{OfferedTool, ToolDefinition, offer};
use super::link::ServerConnection;
use super::seen::SeenTools;

/// A server that did not start is tried again after this, and after twice as long each time it fails.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(30 * 60);

/// What one conversation has of each server.
pub(super) struct ConversationServers {
    pub(super) seats: Vec<tokio::sync::Mutex<ServerSeat>>,
    pub(super) offered: Mutex<Arc<Vec<OfferedTool>>>,
}

#[derive(Default)]
pub(super) struct ServerSeat {
    pub(super) connection: Option<ServerConnection>,
    pub(super) tools: Option<Vec<ToolDefinition>>,
    /// The tools that somebody agreed to, where no store remembers them.
    pub(super) seen: Option<SeenTools>,
    pub(super) pause: Option<StartPause>,
}

/// A server that did not start, and when it is tried again.
pub(super) struct StartPause {
    pub(super) until: Instant,
    pub(super) length: Duration,
}

impl ConversationServers {
    pub(super) fn offered(&self) -> Arc<Vec<OfferedTool>> {
        let offered = self.offered.lock();
        Arc::clone(&offered.unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) async fn offer_again(&self, servers: &[McpServerSettings]) -> Arc<Vec<OfferedTool>> {
        let mut tools = Vec::new();
        for seat in &self.seats {
            tools.push(seat.lock().await.tools.clone());
        }
        let offered = Arc::new(offer(servers, &tools));
        let mut held = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Arc::clone(&offered);
        offered
    }

    pub(super) fn is_connected(&self) -> bool {
        let connected = |seat: &tokio::sync::Mutex<ServerSeat>| {
            // Somebody works with one that is locked.
            let seat = seat.try_lock();
            seat.map_or(true, |seat| {
                let connection = seat.connection.as_ref();
                connection.is_some_and(|connection| connection.link.is_alive())
            })
        };
        self.seats.iter().any(connected)
    }
}

impl ServerSeat {
    pub(super) fn postpone(&mut self) {
        let length = match &self.pause {
            Some(pause) => (pause.length * 2).min(LONGEST_PAUSE),
            None => FIRST_PAUSE,
        };
        self.pause = Some(StartPause {
            until: Instant::now() + length,
            length,
        });
    }
}
