//! Invitations: accepted from whoever may write to us, and otherwise left alone without a word.
//!
//! The homeserver tells of an invitation once, so one that is to be accepted is written down until that is
//! done. A room that we do not speak in, because it is end-to-end encrypted or because it is not, is declined,
//! and the reason stands where the inviter sees it: staying silent in it would look like listening.

use std::time::Duration;

use hermetic_chat::{AdapterStateError, SaveDurability};
use hermetic_types::{ChatId, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::lookups::is_answer;
use crate::names::server_of;
use crate::strangers::StrangerRooms;
use crate::sync::RoomInvitation;
use crate::wire::MatrixRoute;
use crate::{MatrixAdapter, UNSPOKEN};

/// What the keys of invitations begin with.
const PREFIX: &str = "invitation:";
/// Invitations that wait at one time. Whoever may write to us can invite us again.
const MOST_WAITING: usize = 100;
/// Before a room that could not be joined is tried again.
const PAUSE: Duration = Duration::from_secs(30);
/// How long invitations are answered between two syncs, and one of them at the most.
const ANSWERING: Duration = Duration::from_secs(5);
/// How often.
const TRIES: u32 = 20;
/// Under which it is kept how many rooms strangers opened.
const STRANGERS_KEY: &str = "strangers";

const ENCRYPTED: &str =
    "I cannot read end-to-end encrypted rooms. Please invite me to a room without encryption.";

const PLAIN: &str =
    "I speak only in end-to-end encrypted rooms. Please invite me to one with encryption.";

#[derive(Debug, Serialize, Deserialize)]
struct WaitingInvites {
    inviter: String,
    is_encrypted: bool,
    tries: u32,
}

impl MatrixAdapter {
    /// Writes down those that are to be answered.
    pub(crate) async fn note_invitations(
        &self,
        invitations: &[RoomInvitation],
    ) -> Result<(), AdapterStateError> {
        for invitation in invitations {
            if !self.accepts(invitation).await? {
                debug!(
                    room = invitation.room,
                    inviter = invitation.inviter,
                    "an invitation is left alone"
                );
                continue;
            }
            let waiting = WaitingInvites {
                inviter: invitation.inviter.clone(),
                is_encrypted: invitation.is_encrypted,
                tries: 0,
            };
            self.keep_invitation(&invitation.room, &waiting).await?;
            self.invitations_at.lock().await.take();
        }
        Ok(())
    }

    async fn accepts(&self, invitation: &RoomInvitation) -> Result<bool, AdapterStateError> {
        let rule = &self.invites;
        let inviter = UserId::new(invitation.inviter.clone());
        let is_listed =
            rule.from_anybody || inviter.is_ok_and(|inviter| rule.from.contains(&inviter));
        if is_listed {
            let rooms = &self.hearing.allowed_rooms;
            let is_heard = rooms.is_empty()
                || invitation.is_direct
                || ChatId::new(invitation.room.clone()).is_ok_and(|room| {
                    rooms.contains(&room) || rooms.iter().any(|listed| listed.as_str() == "*")
                });
            return Ok(is_heard);
        }
        let is_spoken = self.encryption.speaks(invitation.is_encrypted);
        if !rule.pairing || !invitation.is_direct || !is_spoken {
            return Ok(false);
        }
        let mut strangers = StrangerRooms::read(self.store.load(STRANGERS_KEY).await?);
        let is_admitted = strangers.admit(&invitation.inviter, self.clock.now());
        if !is_admitted {
            warn!(account = %self.account, inviter = invitation.inviter, "strangers have opened too many rooms today; an invitation is left alone");
            return Ok(false);
        }
        self.store
            .save(STRANGERS_KEY, &strangers.kept(), SaveDurability::Soon)
            .await?;
        Ok(true)
    }

    /// Answers those that wait, for as long as nobody is kept from speaking by it: a server that stalls costs
    /// seconds, and the others are answered after the next sync. What was tried least often comes first.
    pub(crate) async fn answer_invitations(&self) {
        let mut not_before = self.invitations_at.lock().await;
        if not_before.is_some_and(|at| Instant::now() < at) {
            return;
        }
        *not_before = Some(Instant::now() + PAUSE);
        drop(not_before);
        let waiting = match self.store.load_all(PREFIX).await {
            Ok(waiting) => waiting,
            Err(error) => {
                warn!(account = %self.account, %error, "invitations could not be read");
                return;
            }
        };
        let mut waiting: Vec<_> = waiting.into_iter().collect();
        let tries =
            |value: &String| serde_json::from_str(value).map_or(0, |one: WaitingInvites| one.tries);
        waiting.sort_by_key(|(_, value)| tries(value));
        let began = Instant::now();
        for (key, value) in waiting {
            if began.elapsed() > ANSWERING {
                // Not after the pause: it is for those that were tried.
                self.invitations_at.lock().await.take();
                return;
            }
            let room = key.strip_prefix(PREFIX).unwrap_or_default();
            let answered = match serde_json::from_str::<WaitingInvites>(&value) {
                Ok(waiting) => self.answer_invitation(room, waiting).await,
                Err(_) => self.store.remove(&key).await,
            };
            if let Err(error) = answered {
                warn!(account = %self.account, room, %error, "an invitation could not be kept");
            }
        }
    }

    async fn answer_invitation(
        &self,
        room: &str,
        mut waiting: WaitingInvites,
    ) -> Result<(), AdapterStateError> {
        let key = format!("{PREFIX}{room}");
        let is_spoken = self.encryption.speaks(waiting.is_encrypted);
        let answered = match is_spoken {
            false => {
                let route = MatrixRoute::post(&["rooms", room, "leave"]).within(ANSWERING);
                let why = if waiting.is_encrypted {
                    ENCRYPTED
                } else {
                    PLAIN
                };
                let reason = json!({ "reason": why });
                self.call::<Value>(&route, |r| r.json(&reason)).await
            }
            true => {
                let mut route = MatrixRoute::post(&["join", room]).within(ANSWERING);
                // A room's id does not say which server knows it.
                if let Some(server) = server_of(&waiting.inviter) {
                    route = route.with("via", server).with("server_name", server);
                }
                self.call::<Value>(&route, |r| r.json(&json!({}))).await
            }
        };
        match answered {
            Ok(_) if !is_spoken => {
                warn!(account = %self.account, room, inviter = waiting.inviter, is_encrypted = waiting.is_encrypted, why = UNSPOKEN, "declined a room");
                self.store.remove(&key).await
            }
            Ok(_) => {
                info!(account = %self.account, room, inviter = waiting.inviter, "joined a room");
                self.store.remove(&key).await
            }
            Err(error) => {
                waiting.tries += 1;
                let is_final = is_answer(&error);
                warn!(account = %self.account, room, %error, "an invitation could not be answered");
                match is_final || waiting.tries >= TRIES {
                    true => self.store.remove(&key).await,
                    false => self.keep_invitation(room, &waiting).await,
                }
            }
        }
    }

    async fn keep_invitation(
        &self,
        room: &str,
        waiting: &WaitingInvites,
    ) -> Result<(), AdapterStateError> {
        let key = format!("{PREFIX}{room}");
        let all = self.store.load_all(PREFIX).await?;
        if all.len() >= MOST_WAITING && !all.iter().any(|(kept, _)| *kept == key) {
            warn!(account = %self.account, room, "too many invitations wait; this one is left alone");
            return Ok(());
        }
        let value = serde_json::to_string(waiting).unwrap_or_default();
        self.store.save(&key, &value, SaveDurability::OnDisk).await
    }
}
