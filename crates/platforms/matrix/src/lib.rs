//! Matrix, by the client-server API of any homeserver.
//!
//! Events come by a long poll from a position that is kept; what a poll leaves out is read from the room's
//! history. Every event of ours has a transaction's id, so that sending twice makes one (decision 0063).
//! Rooms that are end-to-end encrypted are spoken by a build with the feature `e2ee` (decision 0110); any
//! other declines them or leaves them alone, and never writes to one.

#![forbid(unsafe_code)]

mod check;
mod choices;
mod cipher_error;
mod config;
mod content;
mod encrypted_rooms;
#[cfg(feature = "e2ee")]
mod encryption;
#[cfg(not(feature = "e2ee"))]
#[path = "no_encryption.rs"]
mod encryption;
mod files;
mod gaps;
mod hearing;
mod html;
mod invites;
mod listening;
mod lookups;
mod names;
mod pace;
#[doc(hidden)]
pub mod parser;
mod presence;
mod receive;
mod rooms;
mod sealed_file;
mod send;
mod session;
mod strangers;
mod sync;
mod wire;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;
use hermetic_chat::{
    AccountCheck, AdapterState, AttachmentStream, ButtonLimits, Capabilities, Chat, ChatReply,
    ChatState, CheckError, ChoiceShape, DownloadError, MissedMessages, OutgoingFile, OutgoingText,
    ReactionChoices, ReceiveError, ReceivedEvent, RecentKeys, Redelivery, ReplyButton, ReplyRule,
    ReportedChanges, SendError, TextLimit, UnaskedMessages,
};
use hermetic_types::{
    AccountId, Attachment, ButtonPress, ChatPlace, MessageId, SharedClock, UpdateId, UserId,
};
use thiserror::Error;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use choices::KeptQuestions;
use encrypted_rooms::EncryptedRooms;
use encryption::RoomCipher;
use pace::EventBudget;
use presence::MatrixPresence;
use rooms::KnownRooms;
use session::MatrixSession;
use wire::MatrixApi;

pub use config::{
    DeviceTrust, EncryptionMode, HomeserverCredentials, InviteRule, LONGEST_MESSAGE, MatrixConfig,
    MatrixConfigError, MatrixHearing, MatrixTiming,
};

/// Events that were taken over lately.
const RECENT: usize = 2000;
/// Files of encrypted rooms that are held in memory at one time.
const MOST_SEALED_FILES: usize = 2;
/// Words that say what reactions mean, and some text beside them.
const SHORTEST_MESSAGE: usize = 1000;

#[derive(Debug)]
pub struct MatrixAdapter {
    account: AccountId,
    capabilities: Capabilities,
    credentials: HomeserverCredentials,
    homeserver: String,
    device: Option<String>,
    wire: MatrixApi,
    hearing: MatrixHearing,
    invites: InviteRule,
    media_bytes: u64,
    encryption: EncryptionMode,
    trust: DeviceTrust,
    timing: MatrixTiming,
    store: Arc<dyn AdapterState>,
    clock: SharedClock,
    state: Mutex<ChatState>,
    session: tokio::sync::Mutex<Option<Arc<MatrixSession>>>,
    /// Who we are, once the homeserver told us.
    me: OnceLock<String>,
    rooms: KnownRooms,
    choices: KeptQuestions,
    budget: EventBudget,
    presence: MatrixPresence,
    /// What makes transactions of this store unlike those of another.
    salt: OnceCell<String>,
    /// Two who want the same private room get one.
    opening: tokio::sync::Mutex<()>,
    /// When invitations that wait are looked at again.
    invitations_at: tokio::sync::Mutex<Option<Instant>>,
    cipher: OnceCell<RoomCipher>,
    encrypted_rooms: EncryptedRooms,
    /// Files of encrypted rooms that may be held at one time.
    sealed_files: Semaphore,
    seen: Mutex<RecentKeys<UpdateId>>,
    /// Who wrote what we may answer.
    authors: Mutex<RecentKeys<String, String>>,
}

impl MatrixAdapter {
    pub fn new(config: MatrixConfig) -> Result<Self, MatrixConfigError> {
        check_credentials(&config.credentials)?;
        let encryption = spoken(&config)?;
        let wire = MatrixApi::new(&config)?;
        let length = config
            .message_bytes
            .clamp(SHORTEST_MESSAGE, LONGEST_MESSAGE);
        Ok(Self {
            capabilities: capabilities(length, config.media_bytes),
            wire,
            budget: EventBudget::new(&config.timing),
            rooms: KnownRooms::new(Arc::clone(&config.state)),
            choices: KeptQuestions::new(Arc::clone(&config.state)),
            store: config.state,
            account: config.account,
            credentials: config.credentials,
            homeserver: config.homeserver.trim_end_matches('/').to_owned(),
            device: config.device,
            hearing: config.hearing,
            invites: config.invites,
            media_bytes: config.media_bytes,
            encryption,
            trust: config.trust,
            timing: config.timing,
            clock: config.clock,
            state: Mutex::new(ChatState::Starting),
            session: tokio::sync::Mutex::default(),
            me: OnceLock::new(),
            presence: MatrixPresence::default(),
            salt: OnceCell::new(),
            opening: tokio::sync::Mutex::default(),
            invitations_at: tokio::sync::Mutex::default(),
            cipher: OnceCell::new(),
            encrypted_rooms: EncryptedRooms::default(),
            sealed_files: Semaphore::new(MOST_SEALED_FILES),
            seen: Mutex::new(RecentKeys::new(RECENT)),
            authors: Mutex::new(RecentKeys::new(RECENT)),
        })
    }

    fn set_state(&self, state: ChatState) {
        *lock(&self.state) = state;
    }

    fn has_seen(&self, update: &UpdateId) -> bool {
        lock(&self.seen).contains(update)
    }

    fn note_seen(&self, update: UpdateId) {
        lock(&self.seen).note(update, ());
    }

    fn author(&self, event: &str) -> Option<String> {
        lock(&self.authors).get(&event.to_owned()).cloned()
    }

    fn note_author(&self, event: &str, author: &str) {
        lock(&self.authors).note(event.to_owned(), author.to_owned());
    }

    fn has_password(&self) -> bool {
        matches!(self.credentials, HomeserverCredentials::Password { .. })
    }

    /// Forgets what nobody needs any more.
    async fn tidy(&self) {
        if let Err(error) = self.choices.tidy(self.clock.now()).await {
            warn!(account = %self.account, %error, "old questions could not be forgotten");
        }
        let encrypted = self.rooms.encrypted();
        if encrypted > 0 && self.encryption == EncryptionMode::Off {
            warn!(account = %self.account, encrypted, why = UNSPOKEN, "rooms are end-to-end encrypted: nothing is heard or said there");
        }
    }
}

impl Chat for MatrixAdapter {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn state(&self) -> ChatState {
        lock(&self.state).clone()
    }

    fn check(&self) -> BoxFuture<'_, Result<AccountCheck, CheckError>> {
        self.check_account().boxed()
    }

    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        receive::stream(self, stop)
    }

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        self.send_reply(place, reply).boxed()
    }

    fn edit<'a>(
        &'a self,
        place: &'a ChatPlace,
        message: &'a MessageId,
        text: &'a OutgoingText,
        buttons: &'a [Vec<ReplyButton>],
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.edit_message(place, message, text, buttons).boxed()
    }

    fn refresh<'a>(
        &'a self,
        place: &'a ChatPlace,
        message: &'a MessageId,
        text: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.refresh_message(place, message, text).boxed()
    }

    fn typing<'a>(&'a self, place: &'a ChatPlace) -> BoxFuture<'a, Result<(), SendError>> {
        self.show_typing(place).boxed()
    }

    /// As a message: a reaction shows no words.
    fn answer_press<'a>(
        &'a self,
        press: &'a ButtonPress,
        notice: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        async move {
            let reply = ChatReply {
                reply_to: Some(press.message.clone()),
                ..ChatReply::text(notice.clone())
            };
            self.send_reply(&press.place, &reply).await.map(drop)
        }
        .boxed()
    }

    fn send_file<'a>(
        &'a self,
        place: &'a ChatPlace,
        file: &'a OutgoingFile,
    ) -> BoxFuture<'a, Result<MessageId, SendError>> {
        self.send_attachment(place, file).boxed()
    }

    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        limit: u64,
    ) -> BoxFuture<'a, Result<AttachmentStream, DownloadError>> {
        self.fetch(attachment, limit).boxed()
    }

    fn private_place<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<ChatPlace, SendError>> {
        self.open_private(user).boxed()
    }
}

fn capabilities(length: usize, media_bytes: u64) -> Capabilities {
    Capabilities {
        text: TextLimit::bytes(length),
        edits: true,
        reports_changes: ReportedChanges::ALL,
        // Reactions.
        buttons: Some(ButtonLimits {
            most: ReactionChoices::MOST,
            data_bytes: 64,
            shown: ChoiceShape::Reactions,
        }),
        files_in: Some(media_bytes),
        files_out: Some(files::UPLOAD_BYTES as u64),
        threads: true,
        typing: Some(presence::TYPING),
        redelivery: Redelivery::Always,
        missed: MissedMessages::Repeated,
        // Synapse remembers a transaction for a day, others for as long as they run or for half an hour.
        send_keys: Some(Duration::from_secs(30 * 60)),
        ordered_messages: false,
        replies: ReplyRule::Free,
        unasked: UnaskedMessages::AnyTime,
    }
}

/// Why encrypted rooms are not spoken, and what to do.
pub(crate) const UNSPOKEN: &str = match SPEAKS_ENCRYPTION {
    true => {
        "encryption is switched off; write MATRIX_E2EE_MODE=optional to speak in encrypted rooms"
    }
    false => {
        "this build does not speak encrypted rooms; build it with `--features matrix-e2ee` and write \
         MATRIX_E2EE_MODE=optional"
    }
};

/// Whether this build speaks end-to-end encrypted rooms.
pub const SPEAKS_ENCRYPTION: bool = encryption::IS_SPOKEN;

/// The device whose keys lie in the state of an account, and the fingerprint by which people know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptDevice {
    pub device: String,
    pub fingerprint: String,
}

/// Why the keys of a device cannot be read.
#[derive(Debug, Error)]
#[error("the keys of the device cannot be read")]
pub struct KeptDeviceError(#[source] Box<dyn std::error::Error + Send + Sync>);

/// `None` until the account was connected with encryption.
pub async fn kept_device(
    state: &Arc<dyn AdapterState>,
) -> Result<Option<KeptDevice>, KeptDeviceError> {
    let kept = encryption::kept_device(state).await;
    let kept = kept.map_err(|error| KeptDeviceError(Box::new(error)))?;
    Ok(kept.map(|(device, fingerprint)| KeptDevice {
        device,
        fingerprint,
    }))
}

/// What is spoken of that which was asked for. Who wants encryption or nothing gets nothing where there is
/// none.
fn spoken(config: &MatrixConfig) -> Result<EncryptionMode, MatrixConfigError> {
    match (config.encryption, SPEAKS_ENCRYPTION) {
        (EncryptionMode::Required, false) => Err(MatrixConfigError::NoEncryption),
        (EncryptionMode::Optional, false) => {
            warn!(account = %config.account, why = UNSPOKEN, "encrypted rooms are declined");
            Ok(EncryptionMode::Off)
        }
        (mode, _) => Ok(mode),
    }
}

fn check_credentials(credentials: &HomeserverCredentials) -> Result<(), MatrixConfigError> {
    let is_visible = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
    match credentials {
        HomeserverCredentials::Token { token, user } => {
            if !is_visible(token.expose()) || token.expose().len() > 4096 {
                return Err(MatrixConfigError::Token);
            }
            match user {
                Some(user) if !names::is_user(user) => Err(MatrixConfigError::User),
                _ => Ok(()),
            }
        }
        // The part before the server is enough to log in.
        HomeserverCredentials::Password { user, .. } => {
            match user.is_empty() || user.contains(char::is_whitespace) {
                true => Err(MatrixConfigError::User),
                false => Ok(()),
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
