//! Something about a background process that somebody wanted to be told.

use hermetic_redact::Redacted;
use hermetic_types::{ConversationKey, RunId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessNotice {
    pub conversation: ConversationKey,
    pub process: RunId,
    /// The same for the same event, also when it is told twice because of a restart.
    pub mark: String,
    /// As [`ToolWorkplace::origin`](crate::ToolWorkplace::origin) gave it when the process was started.
    pub origin: String,
    pub command: Redacted<String>,
    pub what: NoticeKind,
    /// The end of its output.
    pub output: Redacted<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// Without a code nobody knows how: its sandbox is gone.
    Ended { code: Option<i32> },
    /// One of its patterns was found.
    Matched {
        pattern: String,
        /// Hits that were not told because they came too fast.
        untold: u32,
    },
    /// Its patterns hit all the time. From now on only its end is told.
    WatchedEnough,
}

impl ProcessNotice {
    /// As the model knows it.
    pub fn session_id(&self) -> String {
        super::session_id(&self.process)
    }
}
