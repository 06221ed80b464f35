//! What reads a request's bytes, for fuzzing.

use hermetic_chat::Event;
use jiff::Timestamp;

use crate::intake;

/// What the body of a request says, once its signature is known to fit.
pub fn read_request(body: &[u8], nonce: &str) -> Option<Event> {
    intake::hear_signed(body, nonce, Timestamp::UNIX_EPOCH)
}
