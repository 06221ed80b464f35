//! Who we are at the homeserver, and the token that proves it.
//!
//! A token that the operator wrote is only asked whose it is. A password makes a session once; its token
//! and its device are kept and used by every later process, because each new session would be a new device
//! to everybody who looks at us.

use std::sync::Arc;

use hermetic_chat::{AdapterStateError, SaveDurability, SendFailure};
use hermetic_types::Secret;
use reqwest::RequestBuilder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;
use tracing::{info, warn};

use crate::cipher_error::CipherError;
use crate::names::localpart;
use crate::wire::{MatrixCallError, MatrixRoute};
use crate::{HomeserverCredentials, MatrixAdapter};

/// Where a session that a password made is kept.
const SESSION_KEY: &str = "session";
/// What people read in their list of our devices.
const DEVICE_TITLE: &str = "Hermetic";

#[derive(Clone, Debug)]
pub(crate) struct MatrixSession {
    pub(crate) user: String,
    pub(crate) token: Secret,
    /// The device that the token belongs to, as far as the homeserver tells.
    pub(crate) device: Option<String>,
}

#[derive(Debug, Error)]
pub(crate) enum SessionError {
    #[error(transparent)]
    Call(#[from] MatrixCallError),
    #[error("the homeserver takes neither user nor password: {description}")]
    Password { description: String },
    #[error("the access token is {actual}'s, and MATRIX_USER_ID is {written}")]
    SomebodyElse { actual: String, written: String },
    #[error(transparent)]
    State(#[from] AdapterStateError),
    #[error("the access token belongs to no device, which encrypted rooms need")]
    NoDevice,
    #[error(transparent)]
    Cipher(#[from] CipherError),
}

#[derive(Deserialize)]
struct RawIdentity {
    user_id: String,
    device_id: Option<String>,
}

#[derive(Deserialize)]
struct RawLogin {
    user_id: String,
    access_token: String,
    device_id: String,
}

/// As it is kept. The token is worth as much as the store it lies in.
#[derive(Serialize, Deserialize)]
struct KeptSession {
    homeserver: String,
    user: String,
    device: String,
    token: String,
}

impl MatrixAdapter {
    /// The session there is, or a new one.
    pub(crate) async fn session(&self) -> Result<Arc<MatrixSession>, SessionError> {
        // Held while a session is made: two that begin at once would make two devices.
        let mut current = self.session.lock().await;
        if let Some(session) = &*current {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(self.open_session().await?);
        // Whoever learned it first learned the same.
        let _ = self.me.set(session.user.clone());
        *current = Some(Arc::clone(&session));
        Ok(session)
    }

    async fn open_session(&self) -> Result<MatrixSession, SessionError> {
        match &self.credentials {
            HomeserverCredentials::Token { token, user } => {
                let RawIdentity { user_id, device_id } = self.whose(token).await?;
                let name = user_id;
                match user {
                    Some(written) if *written != name => Err(SessionError::SomebodyElse {
                        actual: name,
                        written: written.clone(),
                    }),
                    _ => Ok(MatrixSession {
                        user: name,
                        token: token.clone(),
                        device: device_id,
                    }),
                }
            }
            HomeserverCredentials::Password { user, password } => {
                let kept = self.kept_session(user).await?;
                match kept {
                    Some(kept) if !kept.token.is_empty() => Ok(MatrixSession {
                        user: kept.user,
                        token: Secret::new(kept.token),
                        device: Some(kept.device),
                    }),
                    kept => {
                        // The device of before, also with a new token: its keys are what encrypted
                        // rooms know us by.
                        let device = kept.map(|kept| kept.device).or(self.device.clone());
                        self.make_session(user, password, device).await
                    }
                }
            }
        }
    }

    async fn whose(&self, token: &Secret) -> Result<RawIdentity, MatrixCallError> {
        let route = MatrixRoute::get(&["account", "whoami"]);
        self.wire.call(&route, Some(token), |r| r).await
    }

    async fn kept_session(&self, user: &str) -> Result<Option<KeptSession>, AdapterStateError> {
        let kept = self.store.load(SESSION_KEY).await?;
        let kept = kept.and_then(|kept| serde_json::from_str::<KeptSession>(&kept).ok());
        Ok(kept.filter(|kept| {
            let is_same = kept.user == user || localpart(&kept.user) == user;
            is_same && kept.homeserver == self.homeserver
        }))
    }

    async fn make_session(
        &self,
        user: &str,
        password: &Secret,
        device: Option<String>,
    ) -> Result<MatrixSession, SessionError> {
        let login = self.log_in(user, password, device.as_deref()).await?;
        let kept = KeptSession {
            homeserver: self.homeserver.clone(),
            user: login.user_id.clone(),
            device: login.device_id,
            token: login.access_token.clone(),
        };
        let written = serde_json::to_string(&kept).unwrap_or_default();
        // One that is lost stays behind at the homeserver as a device that nobody uses.
        let saved = self
            .store
            .save(SESSION_KEY, &written, SaveDurability::OnDisk)
            .await;
        saved?;
        info!(account = %self.account, user = %kept.user, device = %kept.device, "logged in to matrix");
        Ok(MatrixSession {
            user: login.user_id,
            token: Secret::new(login.access_token),
            device: Some(kept.device),
        })
    }

    async fn log_in(
        &self,
        user: &str,
        password: &Secret,
        device: Option<&str>,
    ) -> Result<RawLogin, SessionError> {
        let mut body = json!({
            "type": "m.login.password",
            "identifier": { "type": "m.id.user", "user": user },
            "password": password.expose(),
            "initial_device_display_name": DEVICE_TITLE,
        });
        if let Some(device) = device {
            body["device_id"] = json!(device);
        }
        let route = MatrixRoute::post(&["login"]);
        let login = self.wire.call(&route, None, |r| r.json(&body)).await;
        login.map_err(|error| match error {
            MatrixCallError::Refused {
                status: 400..=499,
                description,
                ..
            } => SessionError::Password { description },
            error => error.into(),
        })
    }

    /// Whether the credentials are good, and whose they are. A session that a password makes for this is
    /// ended again.
    pub(crate) async fn prove_identity(&self) -> Result<String, SessionError> {
        let HomeserverCredentials::Password { user, password } = &self.credentials else {
            // Asked anew: a session that is there says nothing about now.
            return Ok(self.open_session().await?.user);
        };
        let login = self.log_in(user, password, None).await?;
        let token = Secret::new(login.access_token);
        let route = MatrixRoute::post(&["logout"]);
        let ended = self
            .wire
            .call::<Value>(&route, Some(&token), |r| r.json(&json!({})));
        if let Err(error) = ended.await {
            warn!(account = %self.account, %error, "a session that was made to look could not be ended");
        }
        Ok(login.user_id)
    }

    /// The homeserver does not know this token any more. Whether another one can be had: a password makes
    /// one, for the same device.
    pub(crate) async fn renounce(&self, old: &MatrixSession) -> Result<bool, AdapterStateError> {
        let mut current = self.session.lock().await;
        let is_current = current
            .as_ref()
            .is_some_and(|session| session.token == old.token);
        let HomeserverCredentials::Password { user, .. } = &self.credentials else {
            return Ok(false);
        };
        // Only if nobody has replaced it meanwhile: of two calls that learn it at once, the second
        // would throw the new session away.
        if is_current {
            *current = None;
        }
        if let Some(mut kept) = self.kept_session(user).await?
            && kept.token == old.token.expose()
        {
            // The token goes and the device stays, for the login that follows.
            kept.token.clear();
            let written = serde_json::to_string(&kept).unwrap_or_default();
            let saved = self
                .store
                .save(SESSION_KEY, &written, SaveDurability::OnDisk)
                .await;
            saved?;
        }
        Ok(true)
    }

    /// Asks once, as who we are.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        route: &MatrixRoute,
        fill: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<T, SessionError> {
        let session = self.session().await?;
        let done = self.wire.call(route, Some(&session.token), &fill).await;
        match done {
            Err(error) if error.is_logged_out() && self.renounce(&session).await? => {
                let session = self.session().await?;
                Ok(self.wire.call(route, Some(&session.token), &fill).await?)
            }
            done => Ok(done?),
        }
    }

    /// Tries again what failed on the way, as who we are. Only for what may be asked twice.
    pub(crate) async fn patiently<T: DeserializeOwned>(
        &self,
        route: &MatrixRoute,
        fill: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<T, SessionError> {
        let session = self.session().await?;
        let done = self.wire.patiently(route, Some(&session.token), &fill);
        match done.await {
            Err(error) if error.is_logged_out() && self.renounce(&session).await? => {
                let session = self.session().await?;
                let done = self.wire.patiently(route, Some(&session.token), &fill);
                Ok(done.await?)
            }
            done => Ok(done?),
        }
    }
}

impl SessionError {
    /// What the homeserver said, if it said anything.
    pub(crate) fn call(&self) -> Option<&MatrixCallError> {
        match self {
            Self::Call(error) => Some(error),
            _ => None,
        }
    }

    /// Why trying again would end the same, if that is so.
    pub(crate) fn is_final(&self) -> Option<String> {
        match self {
            Self::Call(error) if error.is_logged_out() => Some(format!(
                "the access token is not valid any more ({}); make a new one and write it as \
                 MATRIX_ACCESS_TOKEN, or write MATRIX_USER_ID and MATRIX_PASSWORD",
                error.code().unwrap_or_default()
            )),
            Self::Call(MatrixCallError::Refused { code, .. }) if code == "M_USER_DEACTIVATED" => {
                Some("the account was deactivated at the homeserver".to_owned())
            }
            Self::Password { .. } | Self::SomebodyElse { .. } => Some(self.to_string()),
            Self::NoDevice => Some(format!(
                "{self}; make a token by logging in, or write MATRIX_USER_ID and MATRIX_PASSWORD"
            )),
            Self::Call(_) | Self::State(_) | Self::Cipher(_) => None,
        }
    }
}

impl From<SessionError> for SendFailure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Call(error) => error.into(),
            // Nothing left: it waits until somebody mends it.
            error => Self::NotSent(Box::new(error)),
        }
    }
}
