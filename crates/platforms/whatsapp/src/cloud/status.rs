//! What became of a message that Meta had taken.
//!
//! Taken is not delivered: that a message failed is told later, by a notification. A send therefore
//! waits a moment for the first word about its message, which also keeps messages in order (Meta
//! promises none for what is sent before the one ahead has left). What is told after that moment is
//! said to the person when they write again, and to the ledger. Each message carries a mark of ours that
//! names its chat and its delivery and comes back with its statuses, so that ours are known, also after a
//! restart.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_chat::SendKey;
use hermetic_types::ChatId;
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::refusal::{GraphRefusal, RawError};

/// What our marks begin with.
const MARK: &str = "hermetic:";

/// After so many messages about which nothing was told, nothing is waited for: the number's webhook is
/// not subscribed to statuses, or somebody in between drops them.
const SILENT_MESSAGES: u32 = 3;

#[derive(Debug, Deserialize)]
pub(crate) struct RawStatus {
    status: String,
    biz_opaque_callback_data: Option<String>,
    #[serde(default)]
    errors: Vec<RawError>,
}

/// The messages whose fate is not known yet.
#[derive(Debug, Default)]
pub(crate) struct DeliveryStatuses(Mutex<OpenStatuses>);

#[derive(Debug, Default)]
struct OpenStatuses {
    waiting: HashMap<String, oneshot::Sender<Result<(), GraphRefusal>>>,
    /// Messages in a row about which nothing was told in time.
    untold: u32,
    last: u64,
}

/// The wait for the first word about one message.
#[derive(Debug)]
pub(crate) struct FirstStatus<'a> {
    statuses: &'a DeliveryStatuses,
    mark: String,
    told: oneshot::Receiver<Result<(), GraphRefusal>>,
}

/// A message of ours that failed when nobody waited for it any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LateFailure {
    pub(crate) chat: ChatId,
    /// The delivery that it was a part of.
    pub(crate) key: Option<SendKey>,
    pub(crate) refusal: GraphRefusal,
}

impl DeliveryStatuses {
    /// Begun before the message is sent: its status may be faster than the answer.
    pub(crate) fn expect(&self, chat: &ChatId, key: Option<&SendKey>) -> FirstStatus<'_> {
        let (tell, told) = oneshot::channel();
        let mut open = self.lock();
        open.last += 1;
        // Without random numbers a mark may be one of an earlier process, whose messages are old.
        let random = getrandom::u64().unwrap_or(0);
        let key = key.map_or("", SendKey::as_str);
        let mark = format!("{MARK}{random:x}-{:x}-{key}:{chat}", open.last);
        open.waiting.insert(mark.clone(), tell);
        drop(open);
        FirstStatus {
            statuses: self,
            mark,
            told,
        }
    }

    /// Hands a status to whoever waits for it. A failure that nobody waits for is given back.
    pub(crate) fn hear(&self, status: &RawStatus) -> Option<LateFailure> {
        let mark = status.biz_opaque_callback_data.as_deref()?;
        // Other programs may send from the same number.
        let (name, chat) = mark.strip_prefix(MARK)?.split_once(':')?;
        let failed = status.failure();
        let waiting = {
            let mut open = self.lock();
            open.untold = 0;
            open.waiting.remove(mark)
        };
        if let Some(waiting) = waiting {
            let told = failed.clone().map_or(Ok(()), Err);
            if waiting.send(told).is_ok() {
                return None;
            }
        }
        let refusal = failed?;
        let chat = ChatId::new(chat).ok()?;
        let key = name.splitn(3, '-').nth(2).and_then(SendKey::read);
        Some(LateFailure { chat, key, refusal })
    }

    fn lock(&self) -> MutexGuard<'_, OpenStatuses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FirstStatus<'_> {
    /// What the message carries.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// Whether Meta delivers it, as far as it says so within `limit`.
    pub(crate) async fn wait(mut self, limit: Duration) -> Result<(), GraphRefusal> {
        if self.statuses.lock().untold >= SILENT_MESSAGES {
            return Ok(());
        }
        match timeout(limit, &mut self.told).await {
            Ok(told) => told.unwrap_or(Ok(())),
            Err(_) => {
                self.statuses.lock().untold += 1;
                Ok(())
            }
        }
    }
}

impl Drop for FirstStatus<'_> {
    fn drop(&mut self) {
        self.statuses.lock().waiting.remove(&self.mark);
    }
}

impl RawStatus {
    fn failure(&self) -> Option<GraphRefusal> {
        let error = || self.errors.first().cloned().unwrap_or_default();
        (self.status == "failed").then(|| GraphRefusal::told_later(error()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(mark: &str, status: &str) -> RawStatus {
        let status = json!({
            "id": "wamid.1", "status": status,
            "biz_opaque_callback_data": mark, "errors": [{ "code": 131_047 }],
        });
        serde_json::from_value(status).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_told_to_the_send_and_a_late_one_is_given_back() {
        let statuses = DeliveryStatuses::default();
        let chat = ChatId::new("US.1").unwrap();
        let key = SendKey::new(0x2a, 1);
        let one = statuses.expect(&chat, None);
        let two = statuses.expect(&chat, Some(&key));
        let mark = two.mark().to_owned();
        assert_eq!(statuses.hear(&status(one.mark(), "sent")), None);
        assert_eq!(statuses.hear(&status(&mark, "failed")), None);
        let limit = Duration::from_secs(5);
        assert_eq!(one.wait(limit).await, Ok(()));
        assert_eq!(two.wait(limit).await.unwrap_err().code, 131_047);
        let late = statuses.hear(&status(&mark, "failed")).unwrap();
        assert_eq!((late.chat.as_str(), late.refusal.code), ("US.1", 131_047));
        assert_eq!(late.key, Some(key));
        assert_eq!(statuses.hear(&status("somebody else's", "failed")), None);
        assert_eq!(statuses.hear(&status(&mark, "read")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_that_tells_nothing_is_not_waited_for() {
        let statuses = DeliveryStatuses::default();
        let begun = tokio::time::Instant::now();
        let limit = Duration::from_secs(5);
        let chat = ChatId::new("US.1").unwrap();
        for _ in 0..10 {
            assert_eq!(statuses.expect(&chat, None).wait(limit).await, Ok(()));
        }
        assert_eq!(begun.elapsed(), limit * SILENT_MESSAGES);
        assert!(statuses.lock().waiting.is_empty());
        statuses.hear(&status("hermetic:0-0:US.1", "delivered"));
        let _ = statuses.expect(&chat, None).wait(limit).await;
        assert_eq!(begun.elapsed(), limit * (SILENT_MESSAGES + 1));
    }
}
