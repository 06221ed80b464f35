//! What people call themselves: an event often has nothing but their id.
//!
//! Asked for once for each person. Nobody waits long for it, and nobody is known by it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_chat::RecentKeys;
use hermetic_types::Sender;
use tokio::time::timeout;
use tracing::{debug, info};

use crate::account::SlackAccount;
use crate::identity::slack_user;

/// One who is forgotten is asked for again.
const KNOWN_PEOPLE: usize = 1000;
/// An answer takes a tenth of this.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// How much of a name is kept.
const NAME_CHARACTERS: usize = 128;

#[derive(Debug)]
pub(crate) struct PeoplesNames {
    /// By Slack's id; nothing where none was told.
    known: Mutex<RecentKeys<String, Option<String>>>,
    /// The token may not ask.
    is_forbidden: AtomicBool,
}

impl Default for PeoplesNames {
    fn default() -> Self {
        Self {
            known: Mutex::new(RecentKeys::new(KNOWN_PEOPLE)),
            is_forbidden: AtomicBool::new(false),
        }
    }
}

impl PeoplesNames {
    fn lock(&self) -> MutexGuard<'_, RecentKeys<String, Option<String>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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
            None if self.names.is_forbidden.load(Ordering::Relaxed) => None,
            None => {
                let asked = timeout(LONGEST_WAIT, self.ask_name(&id)).await;
                let name = asked.unwrap_or_default();
                self.names.lock().note(id, name.clone());
                name
            }
        };
        sender.display = name.unwrap_or_else(|| sender.display.clone());
    }

    async fn ask_name(&self, id: &str) -> Option<String> {
        let answer = match self.wire.ask("users.info", &[("user", id)]).await {
            Ok(answer) => answer.value,
            Err(error) => {
                if error.is_refusal_with("missing_scope") {
                    info!(account = %self.account, "people are shown by their ids: the scope users:read is missing");
                    self.names.is_forbidden.store(true, Ordering::Relaxed);
                }
                debug!(account = %self.account, %error, "somebody's name is not known");
                return None;
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
        let name = names.find(|name| !name.trim().is_empty())?;
        Some(name.chars().take(NAME_CHARACTERS).collect())
    }
}
