//! A session of the gateway: numbered events, and whoever is connected to it.

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::BOT_ID;

/// The text of messages that are neither private nor mention the bot.
const MESSAGE_CONTENT: u64 = 1 << 15;

#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) intents: u64,
    pub(super) sequence: u64,
    /// Everything that was dispatched, for who resumes.
    log: Vec<(u64, Value)>,
    connection: Option<mpsc::UnboundedSender<Order>>,
}

/// What a connection is to do.
#[derive(Debug)]
pub(super) enum Order {
    Send(Value),
    /// Whatever it is.
    SendText(String),
    Close(u16),
    /// Without a word.
    Cut,
}

impl Session {
    pub(super) fn new(id: String, intents: u64, connection: mpsc::UnboundedSender<Order>) -> Self {
        Self {
            id,
            intents,
            sequence: 0,
            log: Vec::new(),
            connection: Some(connection),
        }
    }

    pub(super) fn dispatch(&mut self, kind: &str, mut data: Value) {
        if kind == "MESSAGE_CREATE" && !self.shows_content(&data) {
            data["content"] = json!("");
            data["attachments"] = json!([]);
        }
        self.sequence += 1;
        let payload = json!({ "op": 0, "s": self.sequence, "t": kind, "d": data });
        self.log.push((self.sequence, payload.clone()));
        self.order(Order::Send(payload));
    }

    /// Takes the session over and hands out what came after `sequence`. `false` if it never got there.
    pub(super) fn resume(
        &mut self,
        sequence: u64,
        connection: mpsc::UnboundedSender<Order>,
    ) -> bool {
        if sequence > self.sequence {
            return false;
        }
        self.connection = Some(connection);
        let missed = self.log.iter().filter(|(number, _)| *number > sequence);
        let missed: Vec<_> = missed.map(|(_, payload)| payload.clone()).collect();
        missed
            .into_iter()
            .for_each(|payload| self.order(Order::Send(payload)));
        self.dispatch("RESUMED", json!({}));
        // Nobody is told twice that a session was resumed.
        self.log.pop();
        true
    }

    pub(super) fn order(&self, order: Order) {
        if let Some(connection) = &self.connection {
            // A connection that has ended hears no orders.
            let _ = connection.send(order);
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| !connection.is_closed())
    }

    fn shows_content(&self, message: &Value) -> bool {
        let us = BOT_ID.to_string();
        let mentions = message["mentions"].as_array();
        let mentions_us = mentions.is_some_and(|all| all.iter().any(|one| one["id"] == us));
        self.intents & MESSAGE_CONTENT != 0
            || message["guild_id"].is_null()
            || message["author"]["id"] == us
            || mentions_us
    }
}
