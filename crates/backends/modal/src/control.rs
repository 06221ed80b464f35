//! The control plane: makes, finds and ends sandboxes.

use hermetic_types::{Secret, SharedClock, Timestamp};
use tokio::sync::{Mutex, OnceCell};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use uuid::Uuid;

use crate::credentials::ModalCredentials;
use crate::patience::{CallTimeouts, RetryAttempts};
use crate::service::{self, ControlAddress};
use crate::token::AuthToken;
use crate::wire::{AuthTokenGetRequest, RpcCall};

/// The release of Modal's own client whose protocol this is.
const SPOKEN: &str = "1.6.3";
/// A client of a person's, not a worker of theirs.
const CLIENT: &str = "1";

#[derive(Debug)]
pub(crate) struct ControlPlane {
    pub(crate) address: ControlAddress,
    credentials: ModalCredentials,
    clock: SharedClock,
    channel: OnceCell<Channel>,
    token: Mutex<Option<AuthToken>>,
}

/// One question, however often it is put: the server answers a key once.
#[derive(Debug)]
pub(crate) struct IdempotencyKey(String);

impl IdempotencyKey {
    pub(crate) fn random() -> Self {
        Self(Uuid::new_v4().to_string())
    }
}

impl ControlPlane {
    pub(crate) fn new(
        address: ControlAddress,
        credentials: ModalCredentials,
        clock: SharedClock,
    ) -> Self {
        Self {
            address,
            credentials,
            clock,
            channel: OnceCell::new(),
            token: Mutex::new(None),
        }
    }

    /// For what may be asked twice.
    pub(crate) async fn ask<Q: RpcCall>(
        &self,
        question: Q,
        patience: CallTimeouts,
    ) -> Result<Q::Answer, Status> {
        // One key for all attempts: the server answers it once, however often it is heard.
        let key = IdempotencyKey::random();
        let mut attempts = RetryAttempts::within(patience.whole);
        loop {
            let asked = self.ask_once(question.clone(), &key, attempts.made, patience);
            match asked.await {
                Ok(answer) => return Ok(answer),
                Err(status) => attempts.after(status).await?,
            }
        }
    }

    /// One attempt, and a second only where the token had run out.
    pub(crate) async fn ask_once<Q: RpcCall>(
        &self,
        question: Q,
        key: &IdempotencyKey,
        attempt: u32,
        patience: CallTimeouts,
    ) -> Result<Q::Answer, Status> {
        let channel = self.channel().await?;
        let metadata = self.metadata::<Q>(key, attempt).await?;
        let asked = service::ask(channel, question.clone(), metadata, patience.answer).await;
        match asked {
            Err(status) if Q::NEEDS_TOKEN && status.code() == Code::Unauthenticated => {
                *self.token.lock().await = None;
                let metadata = self.metadata::<Q>(key, attempt).await?;
                service::ask(channel, question, metadata, patience.answer).await
            }
            asked => asked,
        }
    }

    pub(crate) async fn listen<Q: RpcCall>(
        &self,
        question: Q,
        patience: CallTimeouts,
    ) -> Result<Streaming<Q::Answer>, Status> {
        let channel = self.channel().await?;
        let metadata = self.metadata::<Q>(&IdempotencyKey::random(), 0).await?;
        service::listen(channel, question, metadata, patience.answer).await
    }

    async fn channel(&self) -> Result<&Channel, Status> {
        self.channel
            .get_or_try_init(|| self.address.connect())
            .await
    }

    async fn metadata<Q: RpcCall>(
        &self,
        key: &IdempotencyKey,
        attempt: u32,
    ) -> Result<MetadataMap, Status> {
        let mut metadata = self.standing()?;
        put(&mut metadata, "x-idempotency-key", &key.0)?;
        put(&mut metadata, "x-retry-attempt", &attempt.to_string())?;
        put(&mut metadata, "x-modal-timestamp", &self.now().to_string())?;
        if Q::NEEDS_TOKEN {
            let token = self.token().await?;
            put_secret(&mut metadata, "x-modal-auth-token", &token)?;
        }
        Ok(metadata)
    }

    /// What goes with every question.
    fn standing(&self) -> Result<MetadataMap, Status> {
        let mut metadata = MetadataMap::new();
        put(&mut metadata, "x-modal-client-version", SPOKEN)?;
        put(&mut metadata, "x-modal-client-type", CLIENT)?;
        put_secret(
            &mut metadata,
            "x-modal-token-id",
            &self.credentials.token_id,
        )?;
        put_secret(
            &mut metadata,
            "x-modal-token-secret",
            &self.credentials.token_secret,
        )?;
        Ok(metadata)
    }

    /// Whoever needs it first fetches it; the others wait for him.
    async fn token(&self) -> Result<Secret, Status> {
        // Held over the fetch, or everybody who comes at once would fetch one.
        let mut kept = self.token.lock().await;
        if let Some(token) = kept.as_ref().filter(|token| token.is_good()) {
            return Ok(token.text.clone());
        }
        let channel = self.channel().await?;
        let patience = CallTimeouts::QUICK.answer;
        let fetched = service::ask(channel, AuthTokenGetRequest {}, self.standing()?, patience);
        let token = AuthToken::new(fetched.await?.token, self.now());
        Ok(kept.insert(token).text.clone())
    }

    /// Seconds since 1970, as Modal wants them.
    fn now(&self) -> f64 {
        let since = self.clock.now().since(Timestamp::UNIX_EPOCH);
        since.as_secs_f64()
    }

    pub(crate) fn environment(&self) -> &str {
        self.credentials.environment.as_deref().unwrap_or_default()
    }
}

pub(crate) fn put(
    metadata: &mut MetadataMap,
    name: &'static str,
    value: &str,
) -> Result<(), Status> {
    let value = MetadataValue::try_from(value)
        .map_err(|_| Status::invalid_argument(format!("{name} cannot be sent")))?;
    metadata.insert(name, value);
    Ok(())
}

pub(crate) fn put_secret(
    metadata: &mut MetadataMap,
    name: &'static str,
    value: &Secret,
) -> Result<(), Status> {
    let mut value = MetadataValue::try_from(value.expose())
        .map_err(|_| Status::unauthenticated(format!("{name} cannot be sent")))?;
    value.set_sensitive(true);
    metadata.insert(name, value);
    Ok(())
}
