//! The wall clock, as a seam.
//!
//! Whatever decides by the time of day (a question that expires, a conversation that starts anew, a row
//! that is old) is handed a clock when it is built, so that a test can move it. Waiting is not part of
//! it: that is the runtime's own clock, which tests pause.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::Timestamp;

/// Tells what time it is.
///
/// An implementer promises nothing about order: a clock may be set back, and whoever compares two
/// moments has to live with that.
pub trait Clock: Send + Sync + fmt::Debug {
    fn now(&self) -> Timestamp;
}

/// One clock for all who need it.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    pub fn shared() -> SharedClock {
        Arc::new(Self)
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }
}
