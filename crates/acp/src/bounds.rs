//! How much of an agent we put up with.

use std::time::Duration;

/// One message of an agent at most. Pictures come as text.
pub(crate) const LONGEST_LINE: usize = 8 << 20;
/// Values that one message may consist of: each takes a hundred bytes of memory for two on the wire.
pub(crate) const MOST_VALUES: usize = 200_000;
/// Lines in a row that are no messages. Some programs greet in plain words.
pub(crate) const MOST_GARBAGE_LINES: usize = 200;
/// Of its standard error, the end: it often says why.
pub(crate) const KEPT_ERROR_BYTES: usize = 2048;
/// Messages that wait to be written to it.
pub(crate) const UNWRITTEN: usize = 32;
/// Messages of it that wait to be looked at. The agent waits when there are more.
pub(crate) const UNREAD: usize = 64;
/// Of one piece of text; each of those that wait may be as long.
pub(crate) const LONGEST_PIECE: usize = 256 << 10;
/// Of a name, a title, an id.
pub(crate) const LONGEST_WORDS: usize = 400;
/// Of what a tool is called with.
pub(crate) const LONGEST_DETAIL: usize = 4000;
/// Of an answer; the rest is left out, and that is said.
pub(crate) const LONGEST_ANSWER: usize = 256 << 10;
/// Tool calls of one prompt that are followed and recorded. More are counted, and an agent that is stopped after
/// more is ended: nobody knows what of it still works.
pub(crate) const MOST_TOOL_CALLS: usize = 500;
/// Permissions that may be waited for at once. More are declined.
pub(crate) const MOST_PERMISSIONS_AT_ONCE: usize = 4;
/// Options of one permission that are looked at.
pub(crate) const MOST_OPTIONS: usize = 16;
/// Modes, or models, of which a person may choose.
pub(crate) const MOST_CHOICES: usize = 300;
/// Conversations of which it is remembered what their agents offer.
pub(crate) const MOST_REMEMBERED_OFFERS: usize = 2000;
/// Of a session that is loaded, in what an agent may write in one turn.
pub(crate) const LONGEST_REPLAY: usize = 16;
/// Follow-up prompts of one turn: what was said into it.
pub(crate) const MOST_PROMPTS: usize = 16;

/// What may differ from one installation, or one test, to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentBounds {
    /// For the start of the program and each step until a session is open.
    pub start: Duration,
    /// Without any sign of life while nobody is asked; then the agent is ended.
    pub silence: Duration,
    /// What it may take to end a turn after it was told to; then it is ended.
    pub grace: Duration,
    /// What it may write in one turn, or between two.
    pub bytes: usize,
    /// Messages of it in one turn.
    pub updates: usize,
    /// Permissions that it may ask for in one turn. More are declined.
    pub permissions: usize,
    /// How often it is looked whether a host was refused.
    pub refusal_check: Duration,
}

impl Default for AgentBounds {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(120),
            silence: Duration::from_secs(1800),
            grace: Duration::from_secs(5),
            bytes: 64 << 20,
            updates: 100_000,
            permissions: 50,
            refusal_check: Duration::from_millis(500),
        }
    }
}
