//! One attempt to send a reply, and what its failure means for the next.

use std::time::Duration;

use hermetic_chat::{Chat, Outgoing, Reply, SendError, SendFailure};
use hermetic_redact::Redacted;
use hermetic_store::{DeliveryRow, MessageRow, StoreError};
use hermetic_types::{ConversationKey, Platform};
use tokio::time::Instant;

use super::lines::Door;
use super::{Address, Post, a_moment_after};
use crate::wording::{POSSIBLE_DUPLICATE, now};

/// With pauses of up to five minutes, about a day.
const MOST_TRIES: u32 = 300;
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A platform that asks for no pause is not asked again at full speed.
const SHORTEST_THROTTLE: Duration = Duration::from_millis(500);
const LONGEST_THROTTLE: Duration = Duration::from_secs(3600);

/// A reply on its way.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) row: DeliveryRow,
    /// What it answers, and is forgotten with.
    pub(super) message: Option<MessageRow>,
    pub(super) platform: Platform,
    pub(super) address: Address,
    text: Redacted<String>,
    pub(super) tries: u32,
    /// When the first attempt of this process began.
    pub(super) since: Instant,
    /// Messages of it that arrived.
    arrived: usize,
    /// The next message of it may have arrived.
    pub(super) maybe_sent: bool,
    /// An earlier process had begun to send it: any message of it may have arrived.
    pub(super) found: bool,
}

/// What is left to do after an attempt.
pub(super) enum Left {
    Nothing,
    TryAgain(Box<Letter>, Instant),
}

impl Letter {
    pub(super) fn new(
        row: DeliveryRow,
        platform: Platform,
        address: Address,
        text: Redacted<String>,
    ) -> Self {
        Self {
            row,
            message: None,
            platform,
            address,
            text,
            tries: 0,
            since: Instant::now(),
            arrived: 0,
            maybe_sent: false,
            found: false,
        }
    }

    pub(super) fn may_be_double(&self) -> bool {
        self.maybe_sent || self.found
    }

    /// A late file is not tried for longer because of restarts.
    pub(super) fn go_on_after(&mut self, attempts: u32) {
        if self.address.late {
            self.tries = attempts;
        }
    }

    /// Whose file it is and its path, if it is a late file.
    pub(super) fn late_file(&self) -> Option<(ConversationKey, String)> {
        let whose = self
            .address
            .conversation
            .clone()
            .filter(|_| self.address.late)?;
        Some((whose, self.address.files.first()?.clone()))
    }

    pub(super) fn door(&self) -> Door {
        Door {
            platform: self.platform,
            place: self.address.place.clone(),
            late_file: self.address.late.then_some(self.row),
        }
    }
}

impl Letter {
    /// The files that did not arrive, once all of the text has.
    pub(super) fn files_left(&self, texts: usize) -> Vec<String> {
        let sent = self.arrived - texts.min(self.arrived);
        self.address.files.iter().skip(sent).cloned().collect()
    }
}

impl Post {
    /// Sends what is first in this line, and what is behind it, until one has to wait.
    pub(super) async fn work_off(&self, door: &Door) {
        while let Some(letter) = self.lines.take(door, Instant::now()) {
            let row = letter.row;
            let tried = tokio::select! {
                tried = self.try_to_send(letter) => tried,
                // It stays open in the ledger, and the next start sends it.
                () = a_moment_after(&self.cut) => return,
            };
            match tried {
                Ok(Left::Nothing) => self.lines.done(door),
                Ok(Left::TryAgain(letter, at)) => {
                    if !self.lines.wait(*letter, at) {
                        self.note_given_up(row).await;
                    }
                    self.wake.notify_one();
                }
                Err(error) => {
                    // The same.
                    tracing::error!(delivery = row.0, %error, "the ledger could not be written");
                    self.lines.done(door);
                }
            }
        }
    }

    async fn try_to_send(&self, mut letter: Letter) -> Result<Left, StoreError> {
        let Some(chat) = self.chats.get(&letter.platform) else {
            self.deliveries
                .failed(letter.row, "the platform is not configured")
                .await?;
            return Ok(Left::Nothing);
        };
        self.deliveries.begin(letter.row).await?;
        letter.tries += 1;
        let Err(error) = self.hand_over(chat.as_ref(), &mut letter).await else {
            self.deliveries.sent(letter.row, now()).await?;
            return Ok(Left::Nothing);
        };
        if letter.address.late {
            return self.after_a_late_file(letter, error).await;
        }
        let texts = texts(chat.as_ref(), &letter).len();
        if letter.arrived >= texts {
            let files = letter.files_left(texts);
            return self.let_files_come_late(&letter, files, &error).await;
        }
        let failure = error.failure;
        tracing::warn!(delivery = letter.row.0, tries = letter.tries, %failure, "a reply was not sent");
        if is_final(&failure) || letter.tries >= MOST_TRIES {
            self.deliveries
                .failed(letter.row, &failure.to_string())
                .await?;
            return Ok(Left::Nothing);
        }
        // Changing a message twice shows it once.
        let changes = letter.arrived == 0 && letter.address.draft.is_some();
        letter.maybe_sent |= !changes && !failure.is_safe_to_repeat();
        if letter.arrived == 0 && !letter.may_be_double() {
            self.deliveries
                .put_back(letter.row, &failure.to_string())
                .await?;
        }
        let pause = match failure {
            SendFailure::Throttled { retry_after } => {
                retry_after.clamp(SHORTEST_THROTTLE, LONGEST_THROTTLE)
            }
            _ => Duration::from_secs(1 << letter.tries.min(9)).min(LONGEST_PAUSE),
        };
        Ok(Left::TryAgain(Box::new(letter), Instant::now() + pause))
    }

    /// Message by message, so that a second attempt goes on where the first ended. An answer that was
    /// shown while it grew is completed where it stands.
    async fn hand_over(&self, chat: &dyn Chat, letter: &mut Letter) -> Result<(), SendError> {
        let parts = texts(chat, letter);
        let texts = parts.len();
        for (index, part) in parts.into_iter().enumerate().skip(letter.arrived) {
            let drafted = index == 0 && complete(chat, &letter.address, &part).await?;
            if !drafted {
                self.send_part(chat, letter, index, part).await?;
            }
            letter.arrived += 1;
        }
        for path in letter.files_left(texts) {
            self.send_file(chat, letter, &path).await?;
            letter.arrived += 1;
            letter.maybe_sent = false;
        }
        Ok(())
    }

    async fn send_part(
        &self,
        chat: &dyn Chat,
        letter: &mut Letter,
        index: usize,
        part: Outgoing,
    ) -> Result<(), SendError> {
        let text = if letter.may_be_double() {
            self.redactor
                .redact(format!("{POSSIBLE_DUPLICATE}{}", part.as_str()))
                .into()
        } else {
            part
        };
        let mut reply = Reply::text(text);
        reply.reply_to = letter.address.reply_to.clone().filter(|_| index == 0);
        chat.send(&letter.address.place, &reply).await?;
        letter.maybe_sent = false;
        Ok(())
    }
}

pub(super) fn is_final(failure: &SendFailure) -> bool {
    matches!(
        failure,
        SendFailure::Empty | SendFailure::TooLong { .. } | SendFailure::Refused { .. }
    )
}

/// The messages that its text becomes. A late file has none.
fn texts(chat: &dyn Chat, letter: &Letter) -> Vec<Outgoing> {
    match letter.address.late {
        true => Vec::new(),
        false => chat.parts(&Outgoing::from(letter.text.clone())),
    }
}

/// Makes a draft the first message of the answer. `false` if there is none, or somebody deleted it.
async fn complete(chat: &dyn Chat, address: &Address, part: &Outgoing) -> Result<bool, SendError> {
    let Some(draft) = &address.draft else {
        return Ok(false);
    };
    match chat.edit(&address.place, draft, part, &[]).await {
        Ok(()) => Ok(true),
        Err(SendError {
            failure: SendFailure::Refused { description },
            ..
        }) => {
            tracing::debug!(
                description,
                "the draft is gone; its answer becomes a new message"
            );
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
impl Letter {
    pub(super) fn to_nobody(chat: i64) -> Self {
        let place = hermetic_types::Place {
            chat: hermetic_types::ChatId::from(chat),
            kind: hermetic_types::ChatKind::Dm,
            thread: None,
        };
        let address = Address {
            place,
            reply_to: None,
            draft: None,
            files: Vec::new(),
            conversation: None,
            late: false,
        };
        Self::new(
            DeliveryRow(chat),
            Platform::Telegram,
            address,
            Redacted::constant("hi"),
        )
    }
}
