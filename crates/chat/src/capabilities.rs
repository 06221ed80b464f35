//! What a platform can do, told by its adapter.
//!
//! Whoever works with a chat asks here and never which platform it is.

use std::time::Duration;

use crate::OutgoingText;
use crate::split::split;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How long one message may be.
    pub text: TextLimit,
    /// Whether a message of ours can be changed later.
    pub edits: bool,
    /// Whether we are told when people change or delete a message of theirs.
    pub reports_changes: ReportedChanges,
    /// `None`: a choice has to be typed.
    pub buttons: Option<ButtonLimits>,
    /// The largest file in bytes that people can send us; `None` if none comes.
    pub files_in: Option<u64>,
    /// The largest file in bytes that we can send; `None` if none leaves.
    pub files_out: Option<u64>,
    /// Whether a chat has threads or topics.
    pub threads: bool,
    /// How long "is typing" stays after one call; `None` if it cannot be shown.
    pub typing: Option<Duration>,
    pub redelivery: Redelivery,
    pub missed: MissedMessages,
    /// For how long a second send with the same [`SendKey`](crate::SendKey) makes no second message;
    /// `None` if keys are ignored.
    pub send_keys: Option<Duration>,
    /// Whether ids of messages are numbers that grow within a chat, so that they tell what was said
    /// before what.
    pub ordered_messages: bool,
    pub replies: ReplyRule,
    pub unasked: UnaskedMessages,
}

/// The length of a message, in the unit that the platform counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimit {
    pub length: usize,
    pub unit: TextUnit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextUnit {
    Utf16,
    Characters,
    /// Of UTF-8.
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ButtonLimits {
    /// Under one message.
    pub most: usize,
    /// Bytes of data that come back with a press.
    pub data_bytes: usize,
    pub shown: ChoiceShape,
}

/// What people answer a question with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceShape {
    Buttons,
    /// Emoji under the question, each of which it explains.
    Reactions,
}

/// Whether an event comes again by itself while its receipt is not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redelivery {
    /// Until it is signed, also after we were away.
    Always,
    /// Only while we are connected. What happened meanwhile has to be swept from the history.
    WhileConnected,
    /// Never: the adapter sweeps, or it is lost.
    Never,
}

/// What becomes of messages that people write while the gateway is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissedMessages {
    /// The platform hands them over later.
    Repeated,
    /// The adapter reads them from the history.
    Read,
    /// A program beside the gateway keeps them, under this condition.
    Kept(&'static str),
    Lost,
}

/// When a message may be sent that answers nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaskedMessages {
    AnyTime,
    /// So long after the person wrote last; later only in words that the platform has approved before.
    After(Duration),
    Never,
}

/// What we are told of messages that people change or take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedChanges {
    pub edits: bool,
    pub deletions: bool,
}

impl ReportedChanges {
    pub const NONE: Self = Self {
        edits: false,
        deletions: false,
    };
    pub const ALL: Self = Self {
        edits: true,
        deletions: true,
    };
}

/// What may be said in return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyRule {
    /// Anything at any time.
    Free,
    /// Each message waits for an answer of its own, and for one only.
    OneForEach,
}

impl Capabilities {
    /// The messages a text becomes. Sending one of them makes exactly one message.
    pub fn parts(&self, text: &OutgoingText) -> Vec<OutgoingText> {
        text.split(self.text)
    }

    /// How often "is typing" has to be shown for it to stay. Somewhat sooner than it ends, because the
    /// call takes its time.
    pub fn typing_every(&self) -> Option<Duration> {
        self.typing.map(|lasts| lasts.mul_f64(0.8))
    }
}

impl TextLimit {
    pub const fn utf16(length: usize) -> Self {
        Self {
            length,
            unit: TextUnit::Utf16,
        }
    }

    pub const fn characters(length: usize) -> Self {
        Self {
            length,
            unit: TextUnit::Characters,
        }
    }

    pub const fn bytes(length: usize) -> Self {
        Self {
            length,
            unit: TextUnit::Bytes,
        }
    }

    pub fn fits(&self, text: &str) -> bool {
        self.unit.count(text) <= self.length
    }

    /// The texts that a long one becomes, numbered if there are several.
    pub fn split(&self, text: &str) -> Vec<String> {
        split(text, *self)
    }
}

impl TextUnit {
    pub fn count(self, text: &str) -> usize {
        match self {
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
            Self::Characters => text.chars().count(),
            Self::Bytes => text.len(),
        }
    }

    pub fn of(self, c: char) -> usize {
        match self {
            Self::Utf16 => c.len_utf16(),
            Self::Characters => 1,
            Self::Bytes => c.len_utf8(),
        }
    }

    /// As in "at most 4096 characters".
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf16 | Self::Characters => "characters",
            Self::Bytes => "bytes",
        }
    }
}
