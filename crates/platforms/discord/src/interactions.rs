//! Presses and commands, acknowledged in time.
//!
//! Discord takes back what is not answered within three seconds. Commands are acknowledged at once and
//! presses shortly before that time is over, by tasks of their own: neither the store nor whoever reads
//! the events can hold them up. Tokens stay here and are forgotten with the process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_chat::RecentKeys;
use hermetic_types::Secret;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::dispatch::RawInteraction;
use crate::route::ApiRoute;
use crate::snowflake::Snowflake;
use crate::wire::{DiscordApi, DiscordCallError};

/// Their tokens live a quarter of an hour, and few are pressed at once.
const OPEN_INTERACTIONS: usize = 1000;

/// Kinds of interactions.
pub(crate) const COMMAND: u8 = 2;
pub(crate) const PRESS: u8 = 3;
const COMPLETION: u8 = 4;

/// Kinds of first answers.
const SAY: u8 = 4;
const THINKING: u8 = 5;
const ACKNOWLEDGED: u8 = 6;
const CHOICES: u8 = 8;

/// Seen only by who pressed or typed.
const EPHEMERAL: u32 = 1 << 6;
/// How long the first try of a first answer may take, and the pause before the second: both are over
/// before Discord takes the interaction back.
const FIRST_TRY: Duration = Duration::from_millis(700);
const SECOND_TRY: Duration = Duration::from_secs(2);
const BETWEEN_TRIES: Duration = Duration::from_millis(100);
/// A longer wait than this is not worth it.
const LONGEST_ANSWER_WAIT: Duration = Duration::from_millis(500);
/// Discord forgets a token after a quarter of an hour.
const TOKEN_LIVES: Duration = Duration::from_secs(14 * 60);
/// Discord shows no more words than this while somebody types.
const MOST_CHOICES: usize = 25;
/// Nobody waits for these any more.
const UNKNOWN_INTERACTION: u32 = 10062;
const ALREADY_ACKNOWLEDGED: u32 = 40060;

#[derive(Debug)]
pub(crate) struct OpenInteractions {
    wire: Arc<DiscordApi>,
    patience: Duration,
    /// The words that are offered behind each command.
    words: BTreeMap<String, Vec<String>>,
    open: Mutex<RecentKeys<Snowflake, OpenInteraction>>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct OpenInteraction {
    application: Snowflake,
    token: Secret,
    acknowledged: bool,
    /// Tells that a command is stored.
    stored: Option<oneshot::Sender<()>>,
}

/// What it takes to answer.
#[derive(Clone, Debug)]
struct InteractionClaim {
    id: Snowflake,
    application: Snowflake,
    token: Secret,
    /// It was acknowledged before.
    late: bool,
}

impl OpenInteractions {
    pub(crate) fn new(
        wire: Arc<DiscordApi>,
        patience: Duration,
        words: BTreeMap<String, Vec<String>>,
    ) -> Self {
        Self {
            wire,
            patience,
            words,
            open: Mutex::new(RecentKeys::new(OPEN_INTERACTIONS)),
            tasks: Mutex::default(),
        }
    }

    /// Sees to it that this one is acknowledged in time.
    pub(crate) fn arrived(self: &Arc<Self>, raw: &RawInteraction) {
        let (stored, is_stored) = oneshot::channel();
        let open = OpenInteraction {
            application: raw.application_id,
            token: Secret::new(raw.token.clone()),
            acknowledged: false,
            stored: Some(stored),
        };
        {
            // A resumed session hands it over again; it has its task already. Noted before that is
            // begun, because the task looks for it here.
            let mut known = lock(&self.open);
            if known.contains(&raw.id) {
                return;
            }
            known.note(raw.id, open);
        }
        let (this, id) = (Arc::clone(self), raw.id);
        match raw.kind {
            COMMAND => self.spawn(async move { this.think_until(id, is_stored).await }),
            PRESS => self.spawn(async move {
                sleep(this.patience).await;
                this.acknowledge(id).await.unwrap_or_else(|error| {
                    debug!(%error, "a press could not be acknowledged");
                });
            }),
            COMPLETION => {
                let choices = self.choices(raw);
                self.spawn(async move { this.offer(id, choices).await });
            }
            _ => {}
        }
    }

    /// Ends the wait of who pressed, without a word. Once is enough.
    pub(crate) async fn acknowledge(&self, id: Snowflake) -> Result<(), DiscordCallError> {
        match self.claim(id) {
            Some(claim) if !claim.late => {
                let answer = json!({ "type": ACKNOWLEDGED });
                self.first_answer(&claim, answer).await
            }
            _ => Ok(()),
        }
    }

    /// Says something to who pressed. `None` if the interaction is none of this process.
    pub(crate) async fn say(
        &self,
        id: Snowflake,
        text: &str,
    ) -> Option<Result<(), DiscordCallError>> {
        let claim = self.claim(id)?;
        let message = json!({
            "content": text,
            "flags": EPHEMERAL,
            "allowed_mentions": { "parse": [] },
        });
        if !claim.late {
            let answer = json!({ "type": SAY, "data": message });
            return Some(self.first_answer(&claim, answer).await);
        }
        let route = ApiRoute::post(
            "/webhooks/{}/{}",
            &[&claim.application, &claim.token.expose()],
        );
        let said = self.wire.patiently::<Value>(&route, |r| r.json(&message));
        Some(forgiving(said.await))
    }

    /// A command is stored: its answer comes as a message, and what was shown meanwhile goes.
    pub(crate) fn stored(&self, id: Snowflake) {
        let told = lock(&self.open)
            .get_mut(&id)
            .and_then(|open| open.stored.take());
        if let Some(told) = told {
            // Nobody waits for it any more where it could not be acknowledged.
            let _ = told.send(());
        }
    }

    /// Whether it is an interaction, and so no message that could be replied to.
    pub(crate) fn knows(&self, id: Snowflake) -> bool {
        lock(&self.open).contains(&id)
    }

    async fn think_until(&self, id: Snowflake, stored: oneshot::Receiver<()>) {
        let Some(claim) = self.claim(id) else { return };
        let thinking = json!({ "type": THINKING, "data": { "flags": EPHEMERAL } });
        if let Err(error) = self.first_answer(&claim, thinking).await {
            debug!(%error, "a command could not be acknowledged");
            return;
        }
        // Until it is stored and not until it is answered: from then on the answer comes as a
        // message, also after a restart. Later than the token lives, Discord would not take the
        // deletion.
        let _ = timeout(TOKEN_LIVES, stored).await;
        let token = claim.token.expose();
        let route = ApiRoute::delete(
            "/webhooks/{}/{}/messages/@original",
            &[&claim.application, &token],
        );
        if let Err(error) = self.wire.patiently::<Value>(&route, |r| r).await {
            debug!(%error, "the acknowledgement of a command stays");
        }
    }

    async fn offer(&self, id: Snowflake, choices: Vec<Value>) {
        let Some(claim) = self.claim(id) else { return };
        let answer = json!({ "type": CHOICES, "data": { "choices": choices } });
        if let Err(error) = self.first_answer(&claim, answer).await {
            debug!(%error, "words could not be offered");
        }
    }

    /// The words that begin like what was typed so far.
    fn choices(&self, raw: &RawInteraction) -> Vec<Value> {
        let data = raw.data.as_ref();
        let name = data
            .and_then(|data| data.name.as_deref())
            .unwrap_or_default();
        let option = data.and_then(|data| data.options.first());
        let typed = option.and_then(|option| option.value.as_str());
        let typed = typed.unwrap_or_default().to_lowercase();
        let words = self.words.get(name).into_iter().flatten();
        let fitting = words.filter(|word| word.starts_with(&typed));
        let choice = |word: &String| json!({ "name": word, "value": word });
        fitting.take(MOST_CHOICES).map(choice).collect()
    }

    /// The right to give the first answer is taken once.
    fn claim(&self, id: Snowflake) -> Option<InteractionClaim> {
        let mut open = lock(&self.open);
        let open = open.get_mut(&id)?;
        let claim = InteractionClaim {
            id,
            application: open.application,
            token: open.token.clone(),
            late: open.acknowledged,
        };
        // Before the request and not after it: the task and whoever answers the press may both be
        // here, and Discord takes one first answer.
        open.acknowledged = true;
        Some(claim)
    }

    async fn first_answer(
        &self,
        claim: &InteractionClaim,
        answer: Value,
    ) -> Result<(), DiscordCallError> {
        let token = claim.token.expose();
        let route = ApiRoute::post("/interactions/{}/{}/callback", &[&claim.id, &token]);
        let answer_within = |time| {
            let answer = &answer;
            self.wire
                .call::<Value>(&route, move |r| r.json(answer).timeout(time))
        };
        let mut answered = answer_within(FIRST_TRY).await;
        // Worth nothing late: one more try, and soon. Where the first one came through after all,
        // Discord says so.
        if let Some(wait) = answered.as_ref().err().and_then(wait_before_second_try) {
            sleep(wait).await;
            answered = answer_within(SECOND_TRY).await;
        }
        let answered = forgiving(answered);
        if answered.is_err()
            && let Some(open) = lock(&self.open).get_mut(&claim.id)
        {
            // What is said next is the first answer, or Discord would not take it.
            open.acknowledged = false;
        }
        answered
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        // With each new one, or the set would keep all that ever ended.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

/// `None` where another try would end the same, or come too late.
fn wait_before_second_try(error: &DiscordCallError) -> Option<Duration> {
    match error {
        DiscordCallError::Throttled { retry_after } => {
            Some(*retry_after).filter(|wait| *wait <= LONGEST_ANSWER_WAIT)
        }
        DiscordCallError::Refused { status: ..=499, .. } => None,
        _ => Some(BETWEEN_TRIES),
    }
}

/// The person waited longer than Discord did; nothing is left to answer.
fn forgiving(answered: Result<Value, DiscordCallError>) -> Result<(), DiscordCallError> {
    match answered {
        Err(error)
            if matches!(
                error.code(),
                Some(UNKNOWN_INTERACTION | ALREADY_ACKNOWLEDGED)
            ) =>
        {
            Ok(())
        }
        answered => answered.map(drop),
    }
}

fn lock<T: fmt::Debug>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
