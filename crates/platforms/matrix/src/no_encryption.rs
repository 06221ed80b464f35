//! What stands in for encryption in a build without it: nothing that could be made.

use std::sync::Arc;

use hermetic_chat::AdapterState;
use hermetic_types::SharedClock;
use serde_json::Value;
use tokio::sync::MutexGuard;

use crate::cipher_error::{CipherError, Undecryptable};
use crate::config::DeviceTrust;
use crate::sync::RoomEvent;
use crate::wire::MatrixRoute;

pub(crate) const IS_SPOKEN: bool = false;

#[derive(Debug)]
pub(crate) enum RoomCipher {}

#[derive(Debug, Default)]
pub(crate) struct TakenKeys {
    pub(crate) room_keys: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct KeyRequest {
    pub(crate) route: MatrixRoute,
    pub(crate) body: Value,
}

impl KeyRequest {
    pub(crate) fn needs_password(&self) -> bool {
        false
    }
}

#[expect(
    clippy::unused_async,
    reason = "the same calls as in a build with encryption"
)]
impl RoomCipher {
    pub(crate) async fn open(
        _: Arc<dyn AdapterState>,
        _: SharedClock,
        _: &str,
        _: &str,
        _: DeviceTrust,
    ) -> Result<Self, CipherError> {
        unreachable!("a build without encryption never asks for it")
    }

    pub(crate) async fn asking(&self) -> MutexGuard<'_, ()> {
        match *self {}
    }

    pub(crate) async fn sealing(&self) -> MutexGuard<'_, ()> {
        match *self {}
    }

    pub(crate) async fn take_sync(&self, _: &Value) -> Result<TakenKeys, CipherError> {
        match *self {}
    }

    pub(crate) async fn due_requests(&self) -> Result<Vec<KeyRequest>, CipherError> {
        match *self {}
    }

    pub(crate) async fn answered(&self, _: &KeyRequest, _: &Value) -> Result<(), CipherError> {
        match *self {}
    }

    pub(crate) async fn track(&self, _: &[String]) -> Result<(), CipherError> {
        match *self {}
    }

    pub(crate) async fn missing_channels(
        &self,
        _: &[String],
    ) -> Result<Option<KeyRequest>, CipherError> {
        match *self {}
    }

    pub(crate) async fn share(
        &self,
        _: &str,
        _: &[String],
    ) -> Result<Vec<KeyRequest>, CipherError> {
        match *self {}
    }

    pub(crate) async fn encrypt(&self, _: &str, _: &str, _: &Value) -> Result<Value, CipherError> {
        match *self {}
    }

    pub(crate) async fn decrypt(&self, _: &str, _: &RoomEvent) -> Result<RoomEvent, Undecryptable> {
        match *self {}
    }

    pub(crate) async fn request_key(&self, _: &str, _: &RoomEvent) -> Vec<KeyRequest> {
        match *self {}
    }

    pub(crate) async fn bootstrap(&self) -> Result<Vec<KeyRequest>, CipherError> {
        match *self {}
    }
}

pub(crate) async fn kept_device(
    _: &Arc<dyn AdapterState>,
) -> Result<Option<(String, String)>, CipherError> {
    Ok(None)
}

pub(crate) fn seal_file(_: &[u8]) -> Result<(Vec<u8>, Value), CipherError> {
    Err(CipherError::File)
}

pub(crate) fn open_file(_: &[u8], _: Value) -> Result<Vec<u8>, CipherError> {
    Err(CipherError::File)
}
