//! How much of us one conversation may use.

use std::time::Duration;

/// The bounds on time, bytes and connections that the proxy keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressLimits {
    /// Connections of one conversation at a time.
    pub connections: usize,
    /// Connections of all conversations together, each of them one or two open files. Nobody gets more
    /// than a quarter of what is left, however many conversations they have.
    pub everybody: usize,
    /// Bytes of one conversation, both ways together, for as long as it lives.
    pub budget: Option<u64>,
    /// The head of a request or a response.
    pub head_bytes: usize,
    /// From the first byte of a head, a greeting or a ClientHello to its last.
    pub head_time: Duration,
    /// Without a byte in either direction.
    pub idle: Duration,
    /// From a request sent to the first byte of its answer. Models think for minutes.
    pub first_byte: Duration,
    pub resolve: Duration,
    /// Names looked up at once: one that hangs holds a thread that all conversations share.
    pub lookups: usize,
    /// The same for all conversations of one person together.
    pub lookups_of_owner: usize,
    pub dial: Duration,
    /// How long a connection waits for a person.
    pub ask: Duration,
}

impl Default for EgressLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            everybody: usize::MAX,
            budget: None,
            head_bytes: 64 * 1024,
            head_time: Duration::from_secs(15),
            idle: Duration::from_secs(600),
            first_byte: Duration::from_secs(600),
            resolve: Duration::from_secs(10),
            lookups: 8,
            // Two conversations work at full speed. Sixteen people would have to ask for nothing but silent
            // names before a seventeenth waits.
            lookups_of_owner: 16,
            dial: Duration::from_secs(15),
            ask: Duration::from_secs(120),
        }
    }
}
