//! Updates by long poll.
//!
//! Telegram forgets an update once a later offset is asked for, so the offset moves only past
//! updates whose receipts are signed. A batch is handed out whole before the next poll; whatever
//! comes back unsigned is asked for again.

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{Backoff, ChatState, Receipt, ReceiptWaiter, ReceiveError, ReceivedEvent};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::requests::{ALLOWED_UPDATES, DeleteWebhook, GetUpdates};
use crate::update::{self, HeardUpdate, TelegramBot};
use crate::wire::TelegramCallError;
use crate::{BotUser, TelegramAdapter};

/// After a week without updates Telegram starts counting anew, maybe below our offset.
const OFFSET_LIVES: Duration = Duration::from_secs(6 * 24 * 3600);
/// On top of the time for which Telegram holds a poll open: the way there and back.
const POLL_MARGIN: Duration = Duration::from_secs(15);
/// A poll that ends sooner than this, with nothing for us, was not held open.
const HELD: Duration = Duration::from_secs(1);

pub(crate) fn stream(
    telegram: &TelegramAdapter,
    stop: CancellationToken,
) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
    let poller = UpdatePoller {
        telegram,
        ready: VecDeque::new(),
        handed_out: Vec::new(),
        offset: None,
        last_update: Instant::now(),
        conflicts: 0,
        greeted: false,
        dead: false,
        backoff: Backoff::new(telegram.timing.retry.0, telegram.timing.retry.1),
        pace: PollPace::default(),
    };
    stream::unfold((poller, stop), |(mut poller, stop)| async move {
        let next = stop.run_until_cancelled(poller.next()).await.flatten();
        if next.is_none() && stop.is_cancelled() {
            poller.telegram.set_state(ChatState::Stopped {
                why: "asked to".to_owned(),
            });
        }
        next.map(|next| (next, (poller, stop)))
    })
    .boxed()
}

struct UpdatePoller<'a> {
    telegram: &'a TelegramAdapter,
    ready: VecDeque<ReceivedEvent>,
    /// In the order of their ids; without a counterfoil there is nothing to wait for.
    handed_out: Vec<(i64, Option<ReceiptWaiter>)>,
    offset: Option<i64>,
    last_update: Instant,
    conflicts: u32,
    greeted: bool,
    dead: bool,
    backoff: Backoff,
    pace: PollPace,
}

impl UpdatePoller<'_> {
    async fn next(&mut self) -> Option<Result<ReceivedEvent, ReceiveError>> {
        loop {
            if let Some(received) = self.ready.pop_front() {
                return Some(Ok(received));
            }
            if self.dead {
                return None;
            }
            // Before the next poll, which makes Telegram forget everything below the offset it
            // names.
            self.settle().await;
            if let Err(error) = self.poll().await
                && let Some(last) = self.ride_out(error).await
            {
                self.dead = true;
                return Some(Err(last));
            }
        }
    }

    /// Waits for the receipts of the last batch and moves the offset past what is safe.
    async fn settle(&mut self) {
        let mut first_unsigned = None;
        let mut last = None;
        for (id, counterfoil) in self.handed_out.drain(..) {
            let safe = match counterfoil {
                Some(counterfoil) => counterfoil.signed().await,
                None => true,
            };
            if safe {
                self.telegram.note_seen(id);
            } else {
                first_unsigned = first_unsigned.or(Some(id));
            }
            last = Some(id);
        }
        match (first_unsigned, last) {
            (Some(id), _) => {
                warn!(account = %self.telegram.account, update = id, "an update was not stored; asking for it again");
                // The first that is not safe, and with it all behind: Telegram has one offset.
                // Those that are safe are known by their ids when they come again.
                self.offset = Some(id);
                sleep(self.backoff.next_wait()).await;
            }
            (None, Some(last)) => {
                self.offset = Some(last.saturating_add(1));
                self.backoff.reset();
            }
            (None, None) => {}
        }
    }

    async fn poll(&mut self) -> Result<(), TelegramCallError> {
        if !self.greeted {
            self.greet().await?;
        }
        if self.last_update.elapsed() > OFFSET_LIVES {
            // Without an offset Telegram begins with the oldest that it still has, whatever its
            // numbers are now.
            self.offset = None;
        }
        let timing = &self.telegram.timing;
        let params = GetUpdates {
            offset: self.offset,
            limit: 100,
            timeout: u32::try_from(timing.poll.as_secs()).unwrap_or(u32::MAX),
            allowed_updates: ALLOWED_UPDATES,
        };
        let asked = Instant::now();
        let updates: Vec<Value> = self
            .telegram
            .wire
            .call_within("getUpdates", &params, timing.poll + POLL_MARGIN)
            .await?;
        self.conflicts = 0;
        self.telegram.set_state(ChatState::Connected);
        let took = self.take(updates);
        sleep(self.pace.after(took, asked.elapsed())).await;
        Ok(())
    }

    fn take(&mut self, updates: Vec<Value>) -> PollResult {
        if updates.is_empty() {
            return PollResult::Quiet;
        }
        let mut numbered: Vec<(i64, Value)> = Vec::with_capacity(updates.len());
        for update in updates {
            match update::id(&update) {
                Some(id) => numbered.push((id, update)),
                None => warn!("telegram sent an update without an id; skipped"),
            }
        }
        // Sorted by us: the offset moves past the last of them, so one that stood behind it would
        // never be asked for.
        numbered.sort_by_key(|(id, _)| *id);
        numbered.dedup_by_key(|(id, _)| *id);
        let mut fresh = false;
        let mut malformed: Option<(i64, String)> = None;
        for (id, update) in numbered {
            if self.telegram.seen(id) {
                debug!(update = id, "an update came again; skipped");
                // Still in the list, because the offset has to move past it too.
                self.handed_out.push((id, None));
                continue;
            }
            fresh = true;
            let heard = self.telegram.hear(&update, id).unwrap_or_else(|why| {
                malformed.get_or_insert((id, why));
                None
            });
            let counterfoil = heard.map(|(received, counterfoil)| {
                self.ready.push_back(received);
                counterfoil
            });
            self.handed_out.push((id, counterfoil));
        }
        if let Some((update, why)) = malformed {
            // One line for all of them: a thousand must not fill the log.
            warn!(update, why, "telegram sent malformed updates; skipped");
        }
        if !fresh {
            return PollResult::Nothing;
        }
        self.last_update = Instant::now();
        if self.ready.is_empty() {
            PollResult::Others
        } else {
            PollResult::Some
        }
    }

    /// A webhook and a poll exclude each other; then we learn our own name.
    async fn greet(&mut self) -> Result<(), TelegramCallError> {
        let keep = DeleteWebhook {
            drop_pending_updates: false,
        };
        // Pending updates are kept: what was said while a webhook was set is still to be answered.
        let _: Value = self.telegram.wire.call("deleteWebhook", &keep).await?;
        self.telegram.learn_own_name().await?;
        self.telegram.announce_commands().await;
        self.greeted = true;
        Ok(())
    }

    /// Waits out what may pass. What may not is returned.
    async fn ride_out(&mut self, error: TelegramCallError) -> Option<ReceiveError> {
        let wait = match &error {
            TelegramCallError::Refused {
                code: 401 | 404,
                description,
                ..
            } => {
                self.telegram.set_state(ChatState::Stopped {
                    why: error.to_string(),
                });
                return Some(ReceiveError::Ended {
                    account: self.telegram.account.clone(),
                    description: description.clone(),
                });
            }
            TelegramCallError::Refused { code: 409, .. } => {
                // Longer each time, because two pollers that try equally often would throw each
                // other out for ever.
                self.conflicts = (self.conflicts + 1).min(6);
                // It may have been a webhook that somebody set meanwhile, which only the greeting
                // removes.
                self.greeted = false;
                self.telegram.timing.conflict * self.conflicts
            }
            TelegramCallError::Refused {
                retry_after: Some(wait),
                ..
            } => (*wait).max(self.backoff.next_wait()),
            _ => self.backoff.next_wait(),
        };
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let wait_ms = wait.as_millis();
        warn!(account = %self.telegram.account, %error, cause, wait_ms, "polling telegram failed");
        self.telegram.set_state(ChatState::Retrying {
            why: error.to_string(),
        });
        sleep(wait).await;
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PollResult {
    Some,
    /// Something new came, but nothing that is for us.
    Others,
    /// Something came, but nothing new.
    Nothing,
    Quiet,
}

/// How soon the next poll may follow, whatever the server answers.
///
/// A server that holds polls open is asked again at once. One that answers at once with nothing is asked
/// less and less often, down to once in five seconds; what a group says to others has a fixed, small
/// pause, because there it is the usual case.
#[derive(Debug, Default)]
struct PollPace {
    /// Useless answers in a row.
    useless: u32,
}

impl PollPace {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(5);

    fn after(&mut self, took: PollResult, lasted: Duration) -> Duration {
        let held = lasted >= HELD;
        match took {
            PollResult::Some => self.useless = 0,
            PollResult::Others if held => self.useless = 0,
            PollResult::Others => return Self::FIRST,
            PollResult::Quiet if held => self.useless = 0,
            // What came before is not held open for; that it comes again is an error of the server.
            PollResult::Quiet | PollResult::Nothing => {
                let doubled = Self::FIRST.saturating_mul(1 << self.useless.min(16));
                self.useless = self.useless.saturating_add(1);
                return doubled.min(Self::LONGEST);
            }
        }
        Duration::ZERO
    }
}

impl TelegramAdapter {
    pub(crate) async fn learn_own_name(&self) -> Result<(), TelegramCallError> {
        if self.me.get().is_some() {
            return Ok(());
        }
        let me: RawBotUser = self.wire.call("getMe", &json!({})).await?;
        info!(account = %self.account, bot = %me.username, "connected to telegram");
        // Whoever learned it first learned the same.
        let _ = self.me.set(BotUser {
            id: me.id,
            username: me.username.to_lowercase(),
        });
        Ok(())
    }

    /// The event an update holds, if it is one for us; why it cannot be read, if that is so.
    pub(crate) fn hear(
        &self,
        update: &Value,
        id: i64,
    ) -> Result<Option<(ReceivedEvent, ReceiptWaiter)>, String> {
        let Some(me) = self.me.get() else {
            return Ok(None);
        };
        let bot = TelegramBot {
            account: &self.account,
            me,
            hearing: &self.hearing,
        };
        match update::hear(update, id, bot, self.clock.now()) {
            HeardUpdate::Event(event) => {
                let (receipt, counterfoil) = Receipt::pair();
                let received = ReceivedEvent {
                    event: *event,
                    receipt,
                };
                Ok(Some((received, counterfoil)))
            }
            HeardUpdate::Nothing(why) => {
                debug!(update = id, why, "an update is not for us");
                Ok(None)
            }
            HeardUpdate::Malformed(why) => Err(why),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct RawBotUser {
    pub(crate) id: i64,
    #[serde(default)]
    pub(crate) username: String,
    /// Whether the bot hears in groups what does not name it; not told by every stand-in.
    pub(crate) can_read_all_group_messages: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// How many polls an hour has when each lasts so long and brings this.
    fn polls_in_an_hour(took: PollResult, lasts: Duration) -> u32 {
        let mut pace = PollPace::default();
        let (mut passed, mut polls) = (Duration::ZERO, 0);
        while passed < HOUR {
            passed += lasts + pace.after(took, lasts);
            polls += 1;
            assert!(polls < 1_000_000, "it spins");
        }
        polls
    }

    #[test]
    fn a_server_that_answers_at_once_is_not_asked_at_full_speed() {
        let at_once = Duration::ZERO;
        for took in [PollResult::Quiet, PollResult::Nothing] {
            let polls = polls_in_an_hour(took, at_once);
            assert!(polls < 800, "{polls} polls with {took:?}");
        }
        let others = polls_in_an_hour(PollResult::Others, at_once);
        assert!(others <= 36_001, "{others}");
        // A server that holds its polls for fifty seconds is never waited for.
        let held = polls_in_an_hour(PollResult::Quiet, Duration::from_secs(50));
        assert_eq!(held, 72);
    }

    #[test]
    fn a_message_ends_the_wait() {
        let mut pace = PollPace::default();
        for _ in 0..100 {
            pace.after(PollResult::Quiet, Duration::ZERO);
        }
        assert_eq!(
            pace.after(PollResult::Quiet, Duration::ZERO),
            PollPace::LONGEST
        );
        assert_eq!(pace.after(PollResult::Some, Duration::ZERO), Duration::ZERO);
        assert_eq!(
            pace.after(PollResult::Quiet, Duration::ZERO),
            PollPace::FIRST
        );
    }
}
