//! Everything that is looked for, ready to look.

use std::ops::Range;

use hermetic_types::Secret;

use crate::filter::{KnownStart, StartFilter};
use crate::forms::SecretForms;
use crate::learned::LearnedValues;
use crate::redactor::RedactorSettings;
use crate::rules::{self, RuleTriggers};
use crate::stream::SecretCandidate;
use crate::value_index::{LineBreaks, ValueIndex};
use crate::window::{AHEAD, BEHIND, NeedMore, StreamRest, TextAhead};

/// Finds known values and shapes of secrets.
pub(crate) struct SecretMatcher {
    filter: StartFilter,
    triggers: RuleTriggers,
    plain: ValueIndex,
    wrapped: ValueIndex,
    longest_form: usize,
    ignored: usize,
    /// Whether the shapes of secrets are looked for.
    shapes: bool,
}

impl SecretMatcher {
    pub(crate) fn new(known: impl IntoIterator<Item = Secret>, settings: RedactorSettings) -> Self {
        let mut forms = SecretForms::default();
        let mut ignored = 0;
        // The index is looked up by the first four bytes: it finds nothing that is shorter.
        let shortest = settings.shortest_known.max(4);
        for secret in known {
            if secret.expose().len() < shortest {
                ignored += usize::from(!secret.is_empty());
            } else {
                forms.add(&secret);
            }
        }
        let triggers = if settings.shapes {
            RuleTriggers::all()
        } else {
            RuleTriggers::none()
        };
        let plain = ValueIndex::new(forms.plain, LineBreaks::Matter);
        let wrapped = ValueIndex::new(forms.wrapped, LineBreaks::Skip);
        let starts = plain
            .iter()
            .chain(wrapped.iter())
            .filter_map(KnownStart::of);
        let filter = StartFilter::new(starts.chain(triggers.starts()));
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
            shapes: settings.shapes,
        }
    }

    pub(crate) fn ignored(&self) -> usize {
        self.ignored
    }

    /// How many forms of known values it holds.
    pub(crate) fn forms(&self) -> usize {
        self.plain.iter().count() + self.wrapped.iter().count()
    }

    pub(crate) fn looks_for_shapes(&self) -> bool {
        self.shapes
    }

    pub(crate) fn filter(&self) -> &StartFilter {
        &self.filter
    }

    /// What is to be masked because of what starts with `rest`. Ranges are counted from there.
    pub(crate) fn look(
        &self,
        behind: &[u8],
        rest: StreamRest<'_>,
        candidate: SecretCandidate,
        learned: &LearnedValues,
    ) -> Result<PlaceMarks, NeedMore> {
        let behind = &behind[behind.len().saturating_sub(BEHIND)..];
        let ahead = TextAhead::new(rest, AHEAD);
        let mut marks = PlaceMarks::default();
        if candidate.may_start {
            // And what may stand behind an encoding: a character that is shared with what follows,
            // and padding.
            let exact = TextAhead::new(rest, self.longest_form + 4);
            marks.add(self.plain.longest(exact)?.map(|length| 0..length));
            if let Some(length) = self.wrapped.longest(exact)? {
                marks.add(Some(0..tail_of_encoding(exact, length)?));
            }
            marks.add(learned.longest(rest)?.map(|length| 0..length));
            marks.known = marks.places.len();
            let rules = self.triggers.at(rest.bytes);
            for rule in rules.filter(|_| !candidate.is_covered) {
                for found in rule.look(behind, ahead)? {
                    marks.add(Some(found));
                }
            }
        }
        if candidate.starts_run && !candidate.is_covered {
            for found in rules::long_run(behind, ahead)? {
                marks.add(Some(found));
            }
        }
        Ok(marks)
    }
}

/// The ranges found at one position; rarely more than one.
#[derive(Default)]
pub(crate) struct PlaceMarks {
    pub(crate) places: Vec<Range<usize>>,
    /// How many of them, the first ones, are of values that were known before.
    pub(crate) known: usize,
}

impl PlaceMarks {
    fn add(&mut self, mark: Option<Range<usize>>) {
        self.places.extend(mark.filter(|range| !range.is_empty()));
    }
}

/// The character that the value shares with what follows, and the padding.
fn tail_of_encoding(ahead: TextAhead<'_>, from: usize) -> Result<usize, NeedMore> {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    let shared = ahead.short_run(from, 1, is_digit)?;
    ahead.short_run(shared, 2, |byte| byte == b'=')
}
