//! Everything that is looked for, ready to look.

use std::fmt;

use hermetic_types::Secret;

use crate::filter::{Filter, Key, key};
use crate::forms::Forms;
use crate::needles::{Breaks, Needles};
use crate::redacted::Redacted;
use crate::rules::Triggers;
use crate::stream::StreamRedactor;
use crate::window::{Ahead, BEHIND, NeedMore};

/// Takes secrets out of text. Made once, shared by everybody.
pub struct Redactor {
    filter: Filter,
    triggers: Triggers,
    plain: Needles,
    wrapped: Needles,
    longest_form: usize,
    ignored: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Looks for what has the shape of a secret. Known values are taken out either way.
    pub shapes: bool,
    /// Known values shorter than this are ignored: taking out every `1234` would ruin the text and
    /// hide nothing.
    pub shortest_known: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            shapes: true,
            shortest_known: 6,
        }
    }
}

impl Redactor {
    /// Looks for `known` values as they are, reversed, in hexadecimal, percent-encoded, escaped as
    /// in JSON, and in base64 at any offset within something larger, across its line breaks.
    pub fn new(known: impl IntoIterator<Item = Secret>, settings: Settings) -> Self {
        let mut forms = Forms::default();
        let mut ignored = 0;
        // Three bytes is what the filter needs at the least.
        let shortest = settings.shortest_known.max(4);
        for secret in known {
            if secret.expose().len() < shortest {
                ignored += usize::from(!secret.is_empty());
            } else {
                forms.add(&secret);
            }
        }
        let triggers = if settings.shapes {
            Triggers::all()
        } else {
            Triggers::none()
        };
        let plain = Needles::new(forms.plain, Breaks::Matter);
        let wrapped = Needles::new(forms.wrapped, Breaks::Skip);
        let starts = plain.iter().chain(wrapped.iter()).filter_map(first_key);
        let filter = Filter::new(starts.chain(triggers.keys()));
        let longest_form = plain.iter().map(<[u8]>::len).max().unwrap_or(0);
        // A wrapped form grows by a line break for each of its characters at the worst.
        let longest_wrapped = wrapped.iter().map(|form| form.len() * 2).max().unwrap_or(0);
        Self {
            filter,
            triggers,
            plain,
            wrapped,
            longest_form: longest_form.max(longest_wrapped),
            ignored,
        }
    }

    pub fn redact(&self, text: impl AsRef<str>) -> Redacted<String> {
        let bytes = self.redact_bytes(text.as_ref().as_bytes()).into_inner();
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Redacted::new(text)
    }

    pub fn redact_bytes(&self, bytes: &[u8]) -> Redacted<Vec<u8>> {
        let mut stream = self.stream();
        let mut whole = stream.push(bytes).into_inner();
        whole.extend(stream.finish().into_inner());
        Redacted::new(whole)
    }

    /// For output that arrives in pieces.
    pub fn stream(&self) -> StreamRedactor<'_> {
        StreamRedactor::new(self)
    }

    /// How many known values were too short to look for.
    pub fn ignored(&self) -> usize {
        self.ignored
    }

    pub(crate) fn next_candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        self.filter.next(text, from)
    }

    /// What is to be masked because of what starts at `at`. Ranges are counted from there.
    pub(crate) fn look(&self, text: &[u8], at: usize, last: bool) -> Result<Marks, NeedMore> {
        let behind = &text[at.saturating_sub(BEHIND)..at];
        let rest = &text[at..];
        let mut marks = Marks::default();
        let exact = Ahead::capped(rest, last, self.longest_form + 4);
        marks.add(self.plain.longest(exact)?.map(|length| 0..length));
        if let Some(length) = self.wrapped.longest(exact)? {
            marks.add(Some(0..tail_of_encoding(exact, length)?));
        }
        if let Some(three) = rest.first_chunk() {
            let ahead = Ahead::new(rest, last);
            for rule in self.triggers.at(key(*three)) {
                marks.add(rule.look(behind, ahead)?);
            }
        }
        Ok(marks)
    }
}

/// Places found at one position; rarely more than one.
#[derive(Default)]
pub(crate) struct Marks(pub(crate) Vec<std::ops::Range<usize>>);

impl Marks {
    fn add(&mut self, mark: Option<std::ops::Range<usize>>) {
        self.0.extend(mark.filter(|range| !range.is_empty()));
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field(
                "forms",
                &(self.plain.iter().count() + self.wrapped.iter().count()),
            )
            .finish_non_exhaustive()
    }
}

fn first_key(form: &[u8]) -> Option<Key> {
    form.first_chunk().map(|three| key(*three))
}

/// The character that the value shares with what follows, and the padding.
fn tail_of_encoding(ahead: Ahead<'_>, from: usize) -> Result<usize, NeedMore> {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    let shared = ahead.short_run(from, 1, is_digit)?;
    ahead.short_run(shared, 2, |byte| byte == b'=')
}
