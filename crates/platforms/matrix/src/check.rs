//! Who the credentials belong to, and what the account lacks.

use hermetic_chat::{AccountCheck, AccountShortcoming, CheckError};
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::config::EncryptionMode;
use crate::session::SessionError;
use crate::wire::{MatrixCallError, MatrixRoute};
use crate::{MatrixAdapter, UNSPOKEN};

/// The version of the API since which files are given only to those who say who they are.
const SEES_FILES: &str = "v1.11";
/// Rooms that are looked at.
const MOST_ROOMS: usize = 50;

#[derive(Deserialize)]
struct RawVersions {
    versions: Vec<String>,
}

#[derive(Deserialize)]
struct RawRooms {
    joined_rooms: Vec<String>,
}

impl MatrixAdapter {
    pub(crate) async fn check_account(&self) -> Result<AccountCheck, CheckError> {
        let route = MatrixRoute::elsewhere(Method::GET, &["_matrix", "client", "versions"]);
        let versions = self.wire.call::<RawVersions>(&route, None, |r| r).await;
        let versions = match versions {
            Err(MatrixCallError::Garbled { .. } | MatrixCallError::Refused { status: 404, .. }) => {
                return Err(CheckError::Refused {
                    description: "this is no homeserver; its address stands in \
                                  https://YOUR.DOMAIN/.well-known/matrix/client"
                        .to_owned(),
                });
            }
            versions => versions.map_err(SessionError::from)?.versions,
        };
        let name = self.prove_identity().await?;
        let mut shortcomings = Vec::new();
        if !versions.iter().any(|version| version == SEES_FILES) {
            shortcomings.push(AccountShortcoming {
                problem: format!("the homeserver does not speak {SEES_FILES} of the API"),
                remedy: "update it; until then files may not be readable".to_owned(),
            });
        }
        let encrypted = match self.encryption {
            EncryptionMode::Off => self.count_encrypted().await.unwrap_or_default(),
            _ => 0,
        };
        if encrypted > 0 {
            shortcomings.push(AccountShortcoming {
                problem: format!(
                    "{encrypted} of its rooms are end-to-end encrypted: nothing is heard or said there"
                ),
                remedy: format!("talk to it in rooms without encryption (docs/guides/matrix.md); {UNSPOKEN}"),
            });
        }
        Ok(AccountCheck {
            name: Some(name),
            shortcomings,
        })
    }

    /// How many of the rooms we are in we cannot read. Only where a token is written: a password would
    /// make a session for it.
    async fn count_encrypted(&self) -> Result<usize, SessionError> {
        if self.has_password() {
            return Ok(0);
        }
        let rooms: RawRooms = self
            .call(&MatrixRoute::get(&["joined_rooms"]), |r| r)
            .await?;
        let mut encrypted = 0;
        for room in rooms.joined_rooms.iter().take(MOST_ROOMS) {
            let route = MatrixRoute::get(&["rooms", room, "state", "m.room.encryption", ""]);
            encrypted += usize::from(self.call::<Value>(&route, |r| r).await.is_ok());
        }
        Ok(encrypted)
    }
}

impl From<SessionError> for CheckError {
    fn from(error: SessionError) -> Self {
        if let Some(description) = error.is_final() {
            return Self::Unauthorized { description };
        }
        match error {
            SessionError::Call(MatrixCallError::Refused { description, .. }) => {
                Self::Refused { description }
            }
            other => Self::Unreachable(Box::new(other)),
        }
    }
}
