//! How a bridge is set up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermetic_chat::{AdapterState, InMemoryState};
use hermetic_types::{AccountId, Platform, SharedClock};
use thiserror::Error;

use crate::WhatsAppHearing;

#[derive(Clone, Debug)]
pub struct BridgeConfig {
    pub account: AccountId,
    /// Where the bridge listens, as in `http://127.0.0.1:3000`.
    pub url: String,
    /// Where the bridge puts files that people sent. No other file of this machine is read for it.
    pub media_folders: Vec<PathBuf>,
    /// Where we put a file for the bridge to send; it is gone when it was sent.
    pub outgoing_folder: PathBuf,
    pub hearing: WhatsAppHearing,
    pub timing: BridgeTiming,
    pub clock: SharedClock,
    pub state: Arc<dyn AdapterState>,
}

#[derive(Clone, Debug)]
pub struct BridgeTiming {
    /// Between two looks for messages. The bridge answers at once, with what there is.
    pub poll: Duration,
    /// Between two questions whether it is connected.
    pub health: Duration,
    pub request: Duration,
    /// First and longest wait after a failure that may pass.
    pub retry: (Duration, Duration),
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum BridgeConfigError {
    #[error("the address of the bridge is not an http address")]
    Url,
    #[error("the HTTP client cannot be built")]
    Client,
}

impl BridgeConfig {
    pub fn new(url: &str, clock: SharedClock) -> Self {
        Self {
            account: Platform::Whatsapp.into(),
            url: url.to_owned(),
            media_folders: Vec::new(),
            outgoing_folder: std::env::temp_dir(),
            hearing: WhatsAppHearing::default(),
            timing: BridgeTiming::default(),
            clock,
            state: Arc::new(InMemoryState::default()),
        }
    }
}

impl Default for BridgeTiming {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(1),
            health: Duration::from_secs(15),
            // The bridge gives WhatsApp a minute for each message.
            request: Duration::from_secs(75),
            retry: (Duration::from_secs(1), Duration::from_secs(30)),
        }
    }
}
