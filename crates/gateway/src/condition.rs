//! How a running gateway is, for those who look on.

use std::sync::Arc;
use std::time::Duration;

use hermetic_chat::ChatState;
use hermetic_types::Platform;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::Gateway;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub stage: Stage,
    /// Conversations with something going on.
    pub active: usize,
    pub platforms: Vec<(Platform, ChatState)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The backend is tried out and what was left open is read.
    Starting,
    /// Messages are taken.
    Serving,
    /// No more messages are taken; turns come to their end.
    Draining,
}

/// Hears each change.
pub type Report = Box<dyn Fn(&Condition) + Send + Sync>;

/// Platforms do not say when they change, so they are looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Gateway {
    pub(crate) fn condition(&self) -> Condition {
        Condition {
            stage: *self.stage.borrow(),
            active: self.lanes.active(),
            platforms: self
                .chats
                .iter()
                .map(|chat| (chat.platform(), chat.state()))
                .collect(),
        }
    }

    /// Reports each change until `until`; a change of stage at once.
    pub(crate) async fn report(self: Arc<Self>, report: Report, until: CancellationToken) {
        let mut stage = self.stage.subscribe();
        let mut last = None;
        loop {
            let now = self.condition();
            if last.as_ref() != Some(&now) {
                report(&now);
                last = Some(now);
            }
            tokio::select! {
                // The last change comes together with the end, and is told before it.
                biased;
                _ = stage.changed() => {}
                () = until.cancelled() => return,
                () = sleep(LOOK_AGAIN) => {}
            }
        }
    }
}
