//! What an operator decides about one account.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hermetic_chat::AdapterState;
use hermetic_types::{AccountId, ChatId, Platform, Secret, SharedClock, UserId};
use hermetic_upstream::UpstreamProxy;
use regex::Regex;
use thiserror::Error;

/// As Hermes has it.
const MESSAGE_BYTES: usize = 16_000;
/// An event may have 65,536 bytes. In the worst text every second one is escaped, and the rest of an
/// event has its share.
pub const LONGEST_MESSAGE: usize = 30_000;
/// What Synapse takes if nobody changes it.
const MEDIA_BYTES: u64 = 50 << 20;

#[derive(Clone, Debug)]
pub struct MatrixConfig {
    pub account: AccountId,
    /// `MATRIX_HOMESERVER`: the address of the client-server API, without `/_matrix`.
    pub homeserver: String,
    pub credentials: HomeserverCredentials,
    /// `MATRIX_DEVICE_ID`: the name of the session that a password makes.
    pub device: Option<String>,
    pub proxy: Option<UpstreamProxy>,
    pub hearing: MatrixHearing,
    pub invites: InviteRule,
    /// `MATRIX_MAX_MESSAGE_LENGTH`, in bytes; at most [`LONGEST_MESSAGE`].
    pub message_bytes: usize,
    /// `MATRIX_MAX_MEDIA_BYTES`.
    pub media_bytes: u64,
    /// `MATRIX_E2EE_MODE` and `MATRIX_ENCRYPTION`.
    pub encryption: EncryptionMode,
    /// `MATRIX_E2EE_TRUST`.
    pub trust: DeviceTrust,
    pub timing: MatrixTiming,
    /// What has to survive a restart.
    pub state: Arc<dyn AdapterState>,
    pub clock: SharedClock,
}

#[derive(Clone, Debug)]
pub enum HomeserverCredentials {
    /// `MATRIX_ACCESS_TOKEN`, and `MATRIX_USER_ID` if it is to be compared.
    Token { token: Secret, user: Option<String> },
    /// `MATRIX_USER_ID` and `MATRIX_PASSWORD`: a session is made once and kept.
    Password { user: String, password: Secret },
}

/// What in a room is meant for us, and where it is answered. A list that holds `*` holds every room.
#[derive(Clone, Debug)]
pub struct MatrixHearing {
    /// `MATRIX_REQUIRE_MENTION`: in rooms only what names us or replies to us.
    pub require_mention: bool,
    /// `MATRIX_THREAD_REQUIRE_MENTION`: the same in threads in which we take part.
    pub thread_require_mention: bool,
    /// `MATRIX_FREE_RESPONSE_ROOMS`: no mention is needed, and no thread is made.
    pub free_response_rooms: BTreeSet<ChatId>,
    /// `MATRIX_ALLOWED_ROOMS`: if there are any, only these, besides private ones.
    pub allowed_rooms: BTreeSet<ChatId>,
    /// `MATRIX_AUTO_THREAD` and `MATRIX_SESSION_SCOPE`: what is said in a room is answered in a thread.
    pub auto_thread: bool,
    /// `MATRIX_DM_AUTO_THREAD`: the same in private.
    pub dm_auto_thread: bool,
    /// `MATRIX_PROCESS_NOTICES`: what other programs say is heard, too. Whether they may speak is up to
    /// access.
    pub notices: bool,
    /// `MATRIX_IGNORE_USER_PATTERNS`: whoever has such an id is not heard.
    pub ignored_users: Vec<Regex>,
}

/// Whose invitations are accepted. All others stay unanswered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InviteRule {
    /// Everybody may write to us.
    pub from_anybody: bool,
    /// These may.
    pub from: BTreeSet<UserId>,
    /// Strangers may ask in private to be let in.
    pub pairing: bool,
}

/// Which rooms are spoken in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncryptionMode {
    /// Those without encryption.
    #[default]
    Off,
    /// Both, each as it is.
    Optional,
    /// Only encrypted ones.
    Required,
}

impl EncryptionMode {
    /// Whether a room is spoken in that is encrypted or not.
    pub(crate) fn speaks(self, is_encrypted: bool) -> bool {
        match self {
            Self::Off => !is_encrypted,
            Self::Optional => true,
            Self::Required => is_encrypted,
        }
    }
}

/// Whose devices are listened and spoken to in encrypted rooms. Who may write is decided by the person, as
/// everywhere; this is about a homeserver that adds a device of its own to somebody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceTrust {
    /// Every device of a person.
    #[default]
    Anybody,
    /// Devices that their owner signed.
    CrossSigned,
}

#[derive(Clone, Debug)]
pub struct MatrixTiming {
    pub request: Duration,
    /// How long the homeserver holds a sync open when nothing happens.
    pub poll: Duration,
    /// How much later than that it is taken for dead.
    pub slack: Duration,
    /// First and longest wait after a failure that may pass.
    pub retry: (Duration, Duration),
    /// The longest wait a send rides out when the homeserver asks for one.
    pub throttle: Duration,
    /// What Synapse allows everybody: so many messages at once.
    pub burst: u32,
    /// And then one in this time.
    pub refill: Duration,
    /// How long the key of a message may take before its sender is told that it cannot be read.
    pub key_patience: Duration,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum MatrixConfigError {
    #[error("the homeserver is no http address, as in https://matrix.example.org")]
    Homeserver,
    #[error("the access token is not one: expected letters, digits and signs without spaces")]
    Token,
    #[error("the user is no matrix id, as in @bot:example.org")]
    User,
    #[error("the HTTP client cannot be built")]
    Client,
    #[error("this build does not speak end-to-end encrypted rooms")]
    NoEncryption,
}

impl MatrixConfig {
    pub fn new(
        homeserver: &str,
        credentials: HomeserverCredentials,
        state: Arc<dyn AdapterState>,
        clock: SharedClock,
    ) -> Self {
        Self {
            account: Platform::Matrix.into(),
            homeserver: homeserver.to_owned(),
            credentials,
            device: None,
            proxy: None,
            hearing: MatrixHearing::default(),
            invites: InviteRule::default(),
            message_bytes: MESSAGE_BYTES,
            media_bytes: MEDIA_BYTES,
            encryption: EncryptionMode::default(),
            trust: DeviceTrust::default(),
            timing: MatrixTiming::default(),
            state,
            clock,
        }
    }
}

impl Default for MatrixHearing {
    fn default() -> Self {
        Self {
            require_mention: true,
            thread_require_mention: false,
            free_response_rooms: BTreeSet::new(),
            allowed_rooms: BTreeSet::new(),
            auto_thread: true,
            dm_auto_thread: false,
            notices: false,
            ignored_users: Vec::new(),
        }
    }
}

impl Default for MatrixTiming {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(30),
            poll: Duration::from_secs(30),
            slack: Duration::from_secs(15),
            retry: (Duration::from_secs(1), Duration::from_secs(60)),
            throttle: Duration::from_secs(60),
            burst: 10,
            refill: Duration::from_secs(5),
            key_patience: Duration::from_secs(30),
        }
    }
}
