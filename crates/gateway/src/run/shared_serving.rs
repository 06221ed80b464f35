//! Serving beside other gateways on one store.
//!
//! Each conversation has one holder, and every message of it is written in that gateway's name, whichever heard
//! it. Most are handed over as they were always: by whoever wrote them down, if that is the holder. What another
//! gateway wrote for us is found by looking, at every hint; what one that is gone left, every few seconds, and
//! with that everything of which no hint came. [`KnownMessages`] sees to it that both ways together hand over each
//! message once, and those of a conversation in the order of their rows.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::stream::{BoxStream, StreamExt};
use hermetic_chat::{Chat, Receipt, ReceiveError, ReceivedEvent};
use hermetic_store::{
    AdoptedWork, DEAD_AFTER, LastBeat, MessageRow, OpenMessage, ServingGateway, SharedWork,
    StoreError, WorkAhead, WorkHint, WorkHints,
};
use hermetic_types::{
    AccountId, ButtonPress, ConversationKey, DeletedMessage, HolderEpoch, IncomingMessage,
    InstallationId,
};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::serving_lease::BootMoment;
use crate::delivery::Outbox;
use crate::message::AcceptedMessage;
use crate::{BusyMode, Gateway};

/// How often it is looked for everything that there may be to do. With the sign of life every 3 s that is less than
/// one question a second.
const LOOK: Duration = Duration::from_secs(3);

/// How soon what could not be taken up is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// Messages that are read at once.
const MOST_READ: usize = 100;

/// What a gateway that serves beside others knows of the work they share.
#[derive(Debug)]
pub(crate) struct SharedServing {
    work: SharedWork,
    installation: InstallationId,
    host: String,
    known: Mutex<KnownMessages>,
    /// There may be something to do.
    wake: Notify,
    /// Accounts whose intake is ours.
    accounts: watch::Sender<HashSet<AccountId>>,
}

/// Which of our messages are in their conversations' hands.
#[derive(Debug, Default)]
struct KnownMessages {
    handed_over: HashSet<MessageRow>,
    /// Of gateways that are gone, and not handed over yet.
    adopted: HashSet<MessageRow>,
    /// Let in and written down by ourselves, and left to the look.
    left_to_look: HashSet<MessageRow>,
    /// What another gateway had in these is not taken up yet, or what we have there is left to another: nothing
    /// begins there before.
    held_back: HashMap<ConversationKey, usize>,
    /// It is not known yet what an adoption brings.
    is_adopting: bool,
}

/// What one gateway tells the others, because it may be about a conversation of theirs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum GatewaySignal {
    Edited(Box<IncomingMessage>),
    Deleted(DeletedMessage),
    Pressed(Box<ButtonPress>),
}

/// The last sign of life of each, and since when it is the same.
type SeenBeats = HashMap<String, (LastBeat, BootMoment)>;

/// It is not known whether the work of another gateway is ours by now.
#[derive(Debug, thiserror::Error)]
#[error("the work of a gateway that is gone could not be adopted")]
pub struct AdoptionError(#[source] StoreError);

impl SharedServing {
    pub(crate) fn new(work: SharedWork, installation: InstallationId, host: String) -> Self {
        Self {
            work,
            installation,
            host,
            known: Mutex::default(),
            wake: Notify::new(),
            accounts: watch::Sender::default(),
        }
    }

    /// Hands a message over, unless that is for the look to do: it was handed over already, or something of its
    /// conversation that came before it was not.
    pub(crate) fn hand_over_once<T>(
        &self,
        message: &AcceptedMessage,
        hand_over: impl FnOnce() -> T,
    ) -> Option<T> {
        let mut known = self.lock();
        let waits = known.is_adopting || known.held_back.contains_key(message.conversation());
        let is_next = message
            .earlier()
            .iter()
            .all(|row| known.handed_over.contains(row));
        if waits || !is_next {
            known.left_to_look.insert(message.row());
            self.wake.notify_one();
            return None;
        }
        if !known.handed_over.insert(message.row()) {
            return None;
        }
        // Under the lock: whoever finds this message handed over may hand over the next one.
        Some(hand_over())
    }

    /// What this conversation has goes on at another gateway, once this one has ended. Nothing begins there before.
    pub(crate) fn leave_to_others(&self, conversation: &ConversationKey) {
        *self
            .lock()
            .held_back
            .entry(conversation.clone())
            .or_default() += 1;
    }

    /// Whether this message was let in here already, and only waited to be handed over. Told once.
    pub(crate) fn was_let_in(&self, message: MessageRow) -> bool {
        self.lock().left_to_look.remove(&message)
    }

    /// What happens on an account, once its intake is ours.
    pub(crate) fn receive<'a>(
        &self,
        chat: &'a Arc<dyn Chat>,
        stop: CancellationToken,
    ) -> BoxStream<'a, Result<ReceivedEvent, ReceiveError>> {
        let mut accounts = self.accounts.subscribe();
        let account = chat.account().clone();
        let ours = async move {
            let ours = accounts.wait_for(|ours| ours.contains(&account));
            let taken = stop.run_until_cancelled(ours).await;
            match taken {
                Some(Ok(_)) => chat.receive(stop.clone()),
                // Told to end while another gateway listens.
                _ => futures::stream::empty().boxed(),
            }
        };
        ours.flatten_stream().boxed()
    }

    /// Whether the intake of this account is ours.
    pub(crate) fn listens_to(&self, account: &AccountId) -> bool {
        self.accounts.borrow().contains(account)
    }

    pub(crate) async fn signal_others(&self, signal: &GatewaySignal) -> Result<(), StoreError> {
        // Plain data of strings and numbers always serialises.
        let payload = serde_json::to_string(signal).unwrap_or_default();
        self.work.signal_others(&payload).await
    }

    /// No conversation that is new becomes ours any more, and others may listen to our accounts.
    pub(crate) async fn begin_to_leave(&self) {
        if let Err(error) = self.work.begin_to_leave().await {
            tracing::debug!(%error, "it could not be said that this gateway ends");
        }
    }

    /// Which messages wait to be handed over. Those that were handed over before the look, and that it did not
    /// find, have ended.
    fn unknown(&self, before: &HashSet<MessageRow>, open: &[MessageRow]) -> Vec<MessageRow> {
        let open: HashSet<_> = open.iter().copied().collect();
        let mut known = self.lock();
        known
            .handed_over
            .retain(|row| open.contains(row) || !before.contains(row));
        let mut unknown: Vec<_> = open.difference(&known.handed_over).copied().collect();
        unknown.sort_unstable();
        unknown
    }

    fn lock(&self) -> MutexGuard<'_, KnownMessages> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownMessages {
    fn hold_back(&mut self, work: &AdoptedWork) {
        for conversation in conversations(work) {
            *self.held_back.entry(conversation).or_default() += 1;
        }
        self.adopted
            .extend(work.messages.iter().map(|message| message.row));
    }

    fn let_go_on(&mut self, work: &AdoptedWork) {
        for conversation in conversations(work) {
            if let Some(count) = self.held_back.get_mut(&conversation) {
                *count -= 1;
                if *count == 0 {
                    self.held_back.remove(&conversation);
                }
            }
        }
    }
}

/// What belongs to conversations that have a sandbox or processes, and the rest.
fn divided(work: AdoptedWork) -> (AdoptedWork, AdoptedWork) {
    let sandboxes = work.sandboxes.iter().map(|entry| &entry.conversation);
    let processes = work.processes.iter().map(|process| &process.conversation);
    let with_sandbox: HashSet<_> = sandboxes.chain(processes).cloned().collect();
    let (messages_with, messages) = work
        .messages
        .into_iter()
        .partition(|message| with_sandbox.contains(&message.conversation));
    // A reply may have files that are read from there.
    let (deliveries_with, deliveries) = work.deliveries.into_iter().partition(|due| {
        Outbox::conversation_of(due)
            .is_some_and(|conversation| with_sandbox.contains(&conversation))
    });
    let with = AdoptedWork {
        messages: messages_with,
        deliveries: deliveries_with,
        sandboxes: work.sandboxes,
        processes: work.processes,
        others: work.others,
    };
    let without = AdoptedWork {
        messages,
        deliveries,
        ..AdoptedWork::default()
    };
    (with, without)
}

fn conversations(work: &AdoptedWork) -> HashSet<ConversationKey> {
    let messages = work.messages.iter().map(|message| &message.conversation);
    let sandboxes = work.sandboxes.iter().map(|entry| &entry.conversation);
    let processes = work.processes.iter().map(|process| &process.conversation);
    messages
        .chain(sandboxes)
        .chain(processes)
        .cloned()
        .collect()
}

impl Gateway {
    /// Takes up what others leave and hand over, until it is dropped. Ends by itself only where it is not known what
    /// is ours.
    pub(crate) async fn share_work(self: &Arc<Self>) -> Result<Infallible, AdoptionError> {
        let Some(sharing) = &self.sharing else {
            return std::future::pending().await;
        };
        let mut hints = sharing.work.hints().await;
        let (mut beats, mut taking_up) = (SeenBeats::new(), JoinSet::new());
        let mut takes_on = false;
        let mut next = NextLook::new();
        loop {
            let looked = match next.is_for_all() {
                true => self.share_once(sharing, &mut beats, &mut taking_up).await,
                false => self.take_up_own(sharing).await.map_err(ShareError::from),
            };
            match looked {
                Ok(()) if !takes_on => match sharing.work.take_on(true).await {
                    Ok(()) => takes_on = true,
                    Err(error) => tracing::warn!(%error, "no conversations are taken on yet"),
                },
                Ok(()) => {}
                Err(ShareError::Store(error)) => {
                    tracing::warn!(%error, "it could not be looked for work");
                }
                Err(ShareError::Adoption(error)) => return Err(error),
            }
            while taking_up.try_join_next().is_some() {}
            next.wait(&mut hints, &sharing.wake).await;
        }
    }

    /// What still comes in our name while turns that run are waited for: a `/stop`, an answer, a message of a
    /// conversation that nobody else may have yet. Nothing is adopted.
    pub(crate) async fn share_while_leaving(self: &Arc<Self>) -> Infallible {
        let Some(sharing) = &self.sharing else {
            return std::future::pending().await;
        };
        let mut hints = sharing.work.hints().await;
        let mut next = NextLook::new();
        loop {
            if let Err(error) = self.take_up_own(sharing).await {
                tracing::warn!(%error, "it could not be looked for work");
            }
            next.wait(&mut hints, &sharing.wake).await;
        }
    }

    async fn share_once(
        self: &Arc<Self>,
        sharing: &SharedServing,
        beats: &mut SeenBeats,
        taking_up: &mut JoinSet<()>,
    ) -> Result<(), ShareError> {
        let before = sharing.lock().handed_over.clone();
        let ahead = sharing.work.look().await?;
        self.divide_bounds(&ahead);
        let gone = gone(&ahead, beats, self.store.gateway_id());
        let adopts = !gone.is_empty();
        for (name, silent_since) in gone {
            self.adopt(sharing, &name, silent_since, taking_up).await?;
        }
        for chat in self.chats.iter().filter(|chat| !chat.is_own()) {
            self.take_account(sharing, chat.account(), &ahead).await?;
        }
        // What was adopted is not in the first look.
        match adopts {
            true => self.take_up_own(sharing).await?,
            false => self.hand_over_own(sharing, &before, &ahead).await?,
        }
        Ok(())
    }

    /// What others wrote and said for this gateway.
    async fn take_up_own(self: &Arc<Self>, sharing: &SharedServing) -> Result<(), StoreError> {
        let before = sharing.lock().handed_over.clone();
        let ahead = sharing.work.look_for_own().await?;
        self.hand_over_own(sharing, &before, &ahead).await
    }

    async fn hand_over_own(
        self: &Arc<Self>,
        sharing: &SharedServing,
        before: &HashSet<MessageRow>,
        ahead: &WorkAhead,
    ) -> Result<(), StoreError> {
        let unknown = sharing.unknown(before, &ahead.open);
        for rows in unknown.chunks(MOST_READ) {
            let mut skipped = HashSet::new();
            for open in sharing.work.open(rows).await? {
                self.hand_over_found(sharing, open, &mut skipped).await?;
            }
        }
        if ahead.signals {
            for payload in sharing.work.take_signals().await? {
                self.hear_signal(&payload).await;
            }
        }
        Ok(())
    }

    /// What one left who is gone becomes ours, and is taken up by a task of its own: others need not wait until
    /// its sandboxes are found.
    async fn adopt(
        self: &Arc<Self>,
        sharing: &SharedServing,
        name: &str,
        silent_since: Option<LastBeat>,
        taking_up: &mut JoinSet<()>,
    ) -> Result<(), AdoptionError> {
        // Said before: a message of a conversation that becomes ours in this very write must not overtake what is
        // adopted with it.
        sharing.lock().is_adopting = true;
        let adopted = sharing.work.adopt(name, silent_since).await;
        let adopted = {
            let mut known = sharing.lock();
            // Left as it is where it is not known: this gateway ends.
            let work = adopted.map_err(AdoptionError)?;
            known.hold_back(&work);
            known.is_adopting = false;
            work
        };
        if adopted == AdoptedWork::default() {
            return Ok(());
        }
        tracing::info!(
            of = name,
            messages = adopted.messages.len(),
            replies = adopted.deliveries.len(),
            sandboxes = adopted.sandboxes.len(),
            processes = adopted.processes.len(),
            others = adopted.others,
            "adopting work"
        );
        let gateway = Arc::clone(self);
        taking_up.spawn(async move { gateway.take_up_adopted(adopted).await });
        Ok(())
    }

    /// Conversations without a sandbox need not wait for those that have one, whose backend may not answer for long.
    async fn take_up_adopted(self: Arc<Self>, work: AdoptedWork) {
        let (with_sandbox, without) = divided(work);
        futures::join!(self.take_up_part(with_sandbox), self.take_up_part(without));
    }

    async fn take_up_part(self: &Arc<Self>, work: AdoptedWork) {
        let Some(sharing) = &self.sharing else { return };
        for conversation in conversations(&work) {
            while let Err(error) = self.learn_epoch(&conversation).await {
                tracing::warn!(%error, "it is not known since when an adopted conversation is held");
                sleep(TRY_AGAIN).await;
            }
        }
        // Sandboxes first: files that are on their way are read from them, and processes run there.
        while let Err(error) = self.sandboxes.settle_these(&work.sandboxes).await {
            tracing::warn!(%error, "adopted sandboxes could not be settled");
            sleep(TRY_AGAIN).await;
        }
        while let Err(error) = self.outbox.take_over_due(work.deliveries.clone()).await {
            tracing::warn!(%error, "adopted replies could not be taken over");
            sleep(TRY_AGAIN).await;
        }
        let background = self.toolsets.background();
        while let Err(error) = background.take_up_these(work.processes.clone()).await {
            tracing::warn!(%error, "adopted processes could not be taken up");
            sleep(TRY_AGAIN).await;
        }
        sharing.lock().let_go_on(&work);
        sharing.wake.notify_one();
        self.schedule_wake.notify_one();
    }

    /// Since when this gateway has the conversation, for its sandbox. It stays so for as long as this process
    /// lives: all that a process has passes on together, behind its own end.
    pub(crate) async fn learn_epoch(
        &self,
        conversation: &ConversationKey,
    ) -> Result<(), StoreError> {
        let Some(sharing) = &self.sharing else {
            return Ok(());
        };
        if self.sandboxes.holds(conversation) {
            return Ok(());
        }
        let held = sharing.work.holder(conversation).await?;
        if let Some((_, epoch)) = held.filter(|(holder, _)| holder == self.store.gateway_id()) {
            self.sandboxes.hold(conversation, HolderEpoch::new(epoch));
        }
        Ok(())
    }

    async fn take_account(
        &self,
        sharing: &SharedServing,
        account: &AccountId,
        ahead: &WorkAhead,
    ) -> Result<(), StoreError> {
        let (name, installation) = (account.to_string(), sharing.installation.as_str());
        if sharing.listens_to(account) || ahead.heard_accounts.contains(&name) {
            return Ok(());
        }
        let taken = sharing
            .work
            .take_account(&name, installation, &sharing.host);
        if taken.await? {
            tracing::info!(%account, "listening to this account from now on");
            sharing.accounts.send_modify(|ours| {
                ours.insert(account.clone());
            });
        }
        Ok(())
    }

    async fn hand_over_found(
        self: &Arc<Self>,
        sharing: &SharedServing,
        open: OpenMessage,
        skipped: &mut HashSet<ConversationKey>,
    ) -> Result<(), StoreError> {
        let is_adopted = {
            let known = sharing.lock();
            if known.held_back.contains_key(&open.conversation) {
                return Ok(());
            }
            known.adopted.contains(&open.row)
        };
        let (row, conversation) = (open.row, open.conversation.clone());
        if skipped.contains(&conversation) {
            return Ok(());
        }
        match self.take_up_found(open, is_adopted).await? {
            Some(message) => {
                // One that waits must not interrupt the one before it; one that has just come may.
                let busy = match is_adopted {
                    true => BusyMode::Queue,
                    false => self.settings.busy,
                };
                self.hand_over(message, busy);
            }
            // It has ended by that, or nobody can tell yet who wrote it: then what follows waits, too.
            None => {
                skipped.insert(conversation);
                sharing.lock().left_to_look.remove(&row);
            }
        }
        sharing.lock().adopted.remove(&row);
        Ok(())
    }

    async fn hear_signal(self: &Arc<Self>, payload: &str) {
        match serde_json::from_str(payload) {
            Ok(GatewaySignal::Edited(edited)) => {
                let (receipt, _) = Receipt::pair();
                self.hear_edit_of_others(*edited, receipt);
            }
            Ok(GatewaySignal::Deleted(deleted)) => {
                self.conversations.withdraw(&deleted, &self.turns);
            }
            Ok(GatewaySignal::Pressed(press)) => {
                if let Ok(press) = self.access.admit_press(*press).await {
                    let _ = self.press_clarification(&press);
                }
            }
            // Of a version that knows more.
            Err(error) => tracing::warn!(%error, "another gateway told something unknown"),
        }
    }

    /// Tells the others what may be about a conversation of theirs; nothing where nobody serves beside this one.
    pub(crate) fn tell_others(self: &Arc<Self>, signal: GatewaySignal) {
        if self.sharing.is_none() {
            return;
        }
        let gateway = Arc::clone(self);
        self.turns.spawn(async move {
            let Some(sharing) = &gateway.sharing else {
                return;
            };
            if let Err(error) = sharing.signal_others(&signal).await {
                tracing::warn!(%error, "the other gateways could not be told");
            }
        });
    }

    /// Bounds are of all gateways together: each has its share of them.
    fn divide_bounds(&self, ahead: &WorkAhead) {
        let living = ahead.gateways.iter();
        let living = living.filter(|gateway| gateway.silent_for < DEAD_AFTER);
        let among = living.count().max(1);
        self.turn_limits.divide(among);
        self.sandboxes.divide_bounds(among);
    }
}

#[derive(Debug, thiserror::Error)]
enum ShareError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Adoption(#[from] AdoptionError),
}

/// When it is looked for work again, and for what.
#[derive(Debug)]
struct NextLook {
    about: WorkHint,
    /// Hints that concern us alone do not put this off.
    for_all_at: Instant,
}

impl NextLook {
    fn new() -> Self {
        Self {
            about: WorkHint::All,
            for_all_at: Instant::now() + LOOK,
        }
    }

    fn is_for_all(&self) -> bool {
        self.about == WorkHint::All
    }

    /// Takes all hints that came together: one look is enough for them.
    async fn wait(&mut self, hints: &mut WorkHints, wake: &Notify) {
        if self.is_for_all() {
            self.for_all_at = Instant::now() + LOOK;
        }
        self.about = tokio::select! {
            hint = hints.next() => hint,
            () = wake.notified() => WorkHint::Own,
            () = sleep_until(self.for_all_at) => WorkHint::All,
        };
        while let Some(hint) = hints.next().now_or_never() {
            if hint == WorkHint::All {
                self.about = hint;
            }
        }
        if Instant::now() >= self.for_all_at {
            self.about = WorkHint::All;
        }
    }
}

/// Names under which nobody alive works, with the last sign of life where only our own clock says that it is over.
fn gone(ahead: &WorkAhead, beats: &mut SeenBeats, own: &str) -> Vec<(String, Option<LastBeat>)> {
    let is_other = |gateway: &&ServingGateway| gateway.id != own;
    let others: Vec<_> = ahead.gateways.iter().filter(is_other).collect();
    beats.retain(|id, _| others.iter().any(|other| other.id == *id));
    let mut gone: Vec<_> = ahead
        .orphans
        .iter()
        .map(|name| (name.clone(), None))
        .collect();
    for other in others {
        let seen = beats
            .entry(other.id.clone())
            .or_insert_with(|| (other.beat, BootMoment::now()));
        if seen.0 != other.beat {
            *seen = (other.beat, BootMoment::now());
        }
        if other.silent_for >= DEAD_AFTER {
            gone.push((other.id.clone(), None));
        } else if seen.1.elapsed() >= DEAD_AFTER {
            gone.push((other.id.clone(), Some(other.beat)));
        }
    }
    gone
}

#[cfg(test)]
#[path = "shared_serving_tests.rs"]
mod tests;
