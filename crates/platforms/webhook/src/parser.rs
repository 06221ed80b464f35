//! What reads a request's bytes, for fuzzing.

use hermetic_chat::ChatEvent;
use hermetic_types::Timestamp;

use crate::intake;

/// What the body of a request says, once its signature is known to fit.
pub fn read_request(body: &[u8], nonce: &str) -> Option<ChatEvent> {
    intake::hear_signed(body, nonce, Timestamp::UNIX_EPOCH)
}
