//! What people call themselves: an event often has nothing but their id.
//!
//! Asked for once for each person. Nobody waits long for it, and nobody is known by it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_chat::RecentKeys;
use hermetic_types::Sender;
use tokio::time::{Instant, timeout};
use tracing::{debug, info};

use crate::account::SlackAccount;
use crate::identity::slack_user;
use crate::wire::SlackCallError;

/// One who is forgotten is asked for again.
const KNOWN_PEOPLE: usize = 1000;
/// An answer takes a tenth of this.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Before somebody is asked for again, where that took too long.
const PAUSE: Duration = Duration::from_secs(60);
/// How much of a name is kept.
const NAME_CHARACTERS: usize = 128;

#[derive(Debug)]
pub(crate) struct PeoplesNames {
    /// By Slack's id; nothing where none was told.
    known: Mutex<RecentKeys<String, Option<String>>>,
    /// The token may not ask.
    is_forbidden: AtomicBool,
    /// Slack did not answer; nobody is asked for before this. Events are read one after the other, and of
    /// many strangers each would hold them up for a second.
    not_before: Mutex<Option<Instant>>,
}

enum AskedName {
    /// Nothing, where Slack does not tell.
    Answered(Option<String>),
    Unanswered,
}

impl Default for PeoplesNames {
    fn default() -> Self {
        Self {
            known: Mutex::new(RecentKeys::new(KNOWN_PEOPLE)),
            is_forbidden: AtomicBool::new(false),
            not_before: Mutex::default(),
        }
    }
}

impl PeoplesNames {
    fn lock(&self) -> MutexGuard<'_, RecentKeys<String, Option<String>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_not_asked(&self) -> bool {
        let not_before = self.not_before.lock();
        let not_before = *not_before.unwrap_or_else(PoisonError::into_inner);
        self.is_forbidden.load(Ordering::Relaxed)
            || not_before.is_some_and(|at| Instant::now() < at)
    }

    fn pause(&self) {
        let mut not_before = self
            .not_before
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *not_before = Some(Instant::now() + PAUSE);
    }
}

impl SlackAccount {
    /// Puts the name of whoever sent something in the place of their id.
    pub(crate) async fn name(&self, sender: &mut Sender) {
        let id = slack_user(&sender.id).to_owned();
        if sender.is_bot || sender.display != id {
            return;
        }
        let known = self.names.lock().get(&id).cloned();
        let name = match known {
            Some(known) => known,
            None if self.names.is_not_asked() => None,
            None => {
                let asked = timeout(LONGEST_WAIT, self.ask_name(&id)).await;
                match asked.unwrap_or(AskedName::Unanswered) {
                    AskedName::Answered(name) => {
                        self.names.lock().note(id, name.clone());
                        name
                    }
                    AskedName::Unanswered => {
                        self.names.pause();
                        None
                    }
                }
            }
        };
        sender.display = name.unwrap_or_else(|| sender.display.clone());
    }

    async fn ask_name(&self, id: &str) -> AskedName {
        let answer = match self.wire.ask("users.info", &[("user", id)]).await {
            Ok(answer) => answer.value,
            Err(error) => {
                debug!(account = %self.account, %error, "somebody's name is not known");
                if !matches!(error, SlackCallError::Refused { .. }) {
                    return AskedName::Unanswered;
                }
                if error.is_refusal_with("missing_scope") {
                    info!(account = %self.account, "people are shown by their ids: the scope users:read is missing");
                    self.names.is_forbidden.store(true, Ordering::Relaxed);
                }
                return AskedName::Answered(None);
            }
        };
        let (user, profile) = (&answer["user"], &answer["user"]["profile"]);
        let names = [
            &profile["display_name"],
            &profile["real_name"],
            &user["real_name"],
            &user["name"],
        ];
        let mut names = names.iter().filter_map(|name| name.as_str());
        let name = names.find(|name| !name.trim().is_empty());
        let name = name.map(|name| name.chars().take(NAME_CHARACTERS).collect());
        AskedName::Answered(name)
    }
}
