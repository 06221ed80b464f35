//! What reads the bytes of signal-cli's daemon, for fuzzing.

use hermetic_types::ChatPlace;
use serde_json::Value;

use crate::envelope::SignalAddress;
use crate::hear::{self, HeardEnvelope, SignalAct, SignalListener};
use crate::lines::{BoundedLine, LineBuffer};
use crate::{HeardGroups, SignalHearing};

/// The longest line that is read.
const LONGEST: usize = 1 << 16;

/// Words that somebody said, and where.
#[derive(Debug)]
pub struct ReadWords {
    pub place: ChatPlace,
    pub text: String,
    pub attachments: usize,
}

/// The words in an event of the daemon's to this number.
pub fn read_event(event: &Value, number: &str) -> Option<ReadWords> {
    let us = SignalAddress::new(None, Some(number.to_owned()))?;
    let hearing = SignalHearing {
        require_mention: false,
        groups: HeardGroups::All,
    };
    let listener = SignalListener {
        us: &us,
        hearing: &hearing,
    };
    match hear::hear(event, listener) {
        HeardEnvelope::Said(said) => match said.act {
            SignalAct::Words {
                text, attachments, ..
            } => Some(ReadWords {
                place: said.place,
                text,
                attachments: attachments.len(),
            }),
            SignalAct::Reaction { .. } | SignalAct::Deletion { .. } => None,
        },
        HeardEnvelope::Nothing(_)
        | HeardEnvelope::Unreadable { .. }
        | HeardEnvelope::Malformed(_) => None,
    }
}

/// The lines of a stream that comes in pieces.
pub fn read_lines(pieces: &[&[u8]]) -> usize {
    let mut buffer = LineBuffer::new(LONGEST);
    let mut lines = 0;
    for piece in pieces {
        buffer.push(piece);
        while let Some(line) = buffer.next_line() {
            lines += usize::from(matches!(line, BoundedLine::Whole(_)));
        }
    }
    lines
}
