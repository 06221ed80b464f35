//! The gateway, as documented: hello, identify or resume, beats, numbered events, close codes.

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, accept_async};

use super::session::{Order, Session};
use super::world::{World, application, bot};
use super::{CHANNEL, GUILD, TOKEN};

/// What a bot may send at once.
const LONGEST_PAYLOAD: usize = 4096;
const MESSAGE_CONTENT: u64 = 1 << 15;
/// Not closed with, but told by a payload.
const UNKNOWN_SESSION: u16 = 0;

pub(super) async fn serve(listener: TcpListener, url: String, world: Arc<World>, beat: Duration) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let connection = Connection {
            url: url.clone(),
            world: Arc::clone(&world),
            session: None,
        };
        connections.spawn(async move {
            if let Ok(socket) = accept_async(stream).await {
                connection.talk(socket, beat).await;
            }
        });
    }
}

struct Connection {
    url: String,
    world: Arc<World>,
    /// The session that was begun or resumed here.
    session: Option<String>,
}

type Socket = WebSocketStream<TcpStream>;

impl Connection {
    async fn talk(mut self, mut socket: Socket, beat: Duration) {
        let beat = u64::try_from(beat.as_millis()).unwrap_or(u64::MAX);
        let hello = json!({ "op": 10, "d": { "heartbeat_interval": beat } });
        let (orders, mut ordered) = mpsc::unbounded_channel();
        let _ = orders.send(Order::Send(hello));
        loop {
            tokio::select! {
                Some(order) = ordered.recv() => {
                    let sent = match order {
                        Order::Send(payload) => socket.send(Message::text(payload.to_string())).await,
                        Order::SendText(text) => socket.send(Message::text(text)).await,
                        Order::Close(code) => return close(&mut socket, code).await,
                        Order::Cut => return,
                    };
                    if sent.is_err() {
                        return;
                    }
                }
                heard = socket.next() => match heard {
                    Some(Ok(Message::Text(text))) => {
                        if let Err(code) = self.hear(&text, &orders) {
                            return close(&mut socket, code).await;
                        }
                    }
                    Some(Ok(Message::Close(frame))) => {
                        return self.closed(frame.map(|frame| frame.code.into()));
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return,
                },
            }
        }
    }

    /// A payload of the bot's; the code to close with, if it is wrong.
    fn hear(&mut self, text: &str, orders: &mpsc::UnboundedSender<Order>) -> Result<(), u16> {
        if text.len() > LONGEST_PAYLOAD {
            return Err(4002);
        }
        let payload: Value = serde_json::from_str(text).map_err(|_| 4002_u16)?;
        let data = &payload["d"];
        match payload["op"].as_u64() {
            Some(1) => {
                let answers = self.world.change(|inner| {
                    inner.beats += 1;
                    inner.answers_beats
                });
                if answers {
                    let _ = orders.send(Order::Send(json!({ "op": 11 })));
                }
                Ok(())
            }
            Some(2 | 6) if data["token"] != TOKEN => Err(4004),
            Some(2 | 6) if self.session.is_some() => Err(4005),
            Some(2) => self.identify(data, orders.clone()),
            Some(6) => self.resume(data, orders.clone()),
            Some(3 | 4 | 8) if self.session.is_some() => Ok(()),
            Some(3 | 4 | 8) => Err(4003),
            _ => Err(4001),
        }
    }

    fn identify(&mut self, data: &Value, orders: mpsc::UnboundedSender<Order>) -> Result<(), u16> {
        let intents = data["intents"].as_u64().ok_or(4013_u16)?;
        if !data["properties"].is_object() {
            return Err(4002);
        }
        let url = self.url.clone();
        let id = self.world.change(|inner| {
            inner.identifies += 1;
            if intents & MESSAGE_CONTENT != 0 && !inner.has_message_content {
                return Err(4014_u16);
            }
            inner.starts_left = inner.starts_left.saturating_sub(1);
            let id = format!("session-{}", inner.identifies);
            let mut session = Session::new(id.clone(), intents, orders);
            session.dispatch("READY", json!({
                "v": 10, "user": bot(), "guilds": [{ "id": GUILD.to_string(), "unavailable": true }],
                "session_id": id, "resume_gateway_url": url, "shard": [0, 1],
                "application": application(inner.has_message_content),
            }));
            let shared = inner.channels.values().filter(|channel| channel["type"] != 1);
            session.dispatch("GUILD_CREATE", guild(shared.cloned().collect()));
            let early = inner.early.take().into_iter().flatten();
            early.for_each(|(kind, data)| session.dispatch(&kind, data));
            inner.session = Some(session);
            Ok(id)
        })?;
        self.session = Some(id);
        Ok(())
    }

    fn resume(&mut self, data: &Value, orders: mpsc::UnboundedSender<Order>) -> Result<(), u16> {
        let sequence = data["seq"].as_u64().ok_or(4007_u16)?;
        let id = data["session_id"].as_str().unwrap_or_default().to_owned();
        self.world.change(|inner| {
            inner.resumes.push(sequence);
            let session = inner.session.as_mut().filter(|session| session.id == id);
            match session.map(|session| session.resume(sequence, orders)) {
                Some(true) => {
                    self.session = Some(id);
                    Ok(())
                }
                Some(false) => Err(4007),
                None => Err(UNKNOWN_SESSION),
            }
        })
    }

    /// The code decides whether the session lives on.
    fn closed(&self, code: Option<u16>) {
        self.world.change(|inner| {
            inner.closes.extend(code);
            let ours = inner.session.as_ref().map(|session| session.id.clone());
            if matches!(code, Some(1000 | 1001)) && ours == self.session {
                inner.session = None;
            }
        });
    }
}

async fn close(socket: &mut Socket, code: u16) {
    if code == UNKNOWN_SESSION {
        let invalid = json!({ "op": 9, "d": false });
        let _ = socket.send(Message::text(invalid.to_string())).await;
        // The bot is the one to close.
        while let Some(Ok(_)) = socket.next().await {}
        return;
    }
    let frame = CloseFrame {
        code: CloseCode::from(code),
        reason: "".into(),
    };
    let _ = socket.close(Some(frame)).await;
    while let Some(Ok(_)) = socket.next().await {}
}

fn guild(channels: Vec<Value>) -> Value {
    let (threads, channels): (Vec<_>, Vec<_>) = channels
        .into_iter()
        .partition(|channel| matches!(channel["type"].as_u64(), Some(10..=12)));
    let mut guild = json!({
        "id": GUILD.to_string(), "name": "Test", "owner_id": "7", "member_count": 2,
        "roles": [{
            "id": GUILD.to_string(), "name": "@everyone", "color": 0, "hoist": false, "position": 0,
            "permissions": "0", "managed": false, "mentionable": false, "flags": 0,
        }],
        "members": [{
            "user": bot(), "roles": [], "joined_at": "2026-01-01T00:00:00+00:00", "deaf": false,
            "mute": false, "flags": 0,
        }],
        "joined_at": "2026-01-01T00:00:00+00:00", "preferred_locale": "en-US",
        "system_channel_id": CHANNEL.to_string(), "afk_timeout": 60, "large": false,
        "unavailable": false,
    });
    for empty in [
        "emojis",
        "stickers",
        "presences",
        "voice_states",
        "stage_instances",
        "features",
        "guild_scheduled_events",
        "soundboard_sounds",
    ] {
        guild[empty] = json!([]);
    }
    for zero in [
        "premium_tier",
        "verification_level",
        "nsfw_level",
        "mfa_level",
        "system_channel_flags",
        "default_message_notifications",
        "explicit_content_filter",
    ] {
        guild[zero] = json!(0);
    }
    guild["channels"] = json!(channels);
    guild["threads"] = json!(threads);
    guild
}
