//! Loops, walked often enough to see what a later round does.

use std::rc::Rc;

use super::Walker;
use crate::syntax::{Kind, Node, Script, Word};
use crate::text::{Flow, Shape, Taint, Text};

/// A `for` over more known words than this is walked with a hole.
const MOST_ROUNDS: usize = 24;

/// In loops deeper than this one round stands for all.
const DEEPEST_LOOPS: usize = 2;

impl Walker<'_> {
    pub(super) fn for_loop(
        &mut self,
        name: &str,
        words: Option<&[Word]>,
        body: &Script,
        input: &Flow,
    ) -> Flow {
        let mut items: Vec<Text> = Vec::new();
        let mut first = true;
        self.in_all_readings(|walker| {
            for word in words.unwrap_or_default() {
                let fields = walker.fields(word);
                // More than are followed one by one are one hole, whatever else there is.
                if first {
                    items.extend(fields);
                } else if items.len() <= MOST_ROUNDS {
                    let new = fields.into_iter().filter(|item| !items.contains(item));
                    let new: Vec<Text> = new.collect();
                    items.extend(new);
                }
            }
            first = false;
        });
        for item in &mut items {
            if let Some(span) = long_range(&item.s) {
                *item = Text::shaped(&Shape::Names, of_numbers(span));
            }
        }
        if words.is_none() {
            items = vec![Text::unknown(Taint::ARGUMENT)];
        } else if items.is_empty() || items.len() > MOST_ROUNDS {
            items = vec![summary(&items)];
        }
        self.leavable(|walker| walker.for_each(name, items, body, input))
    }

    fn for_each(&mut self, name: &str, items: Vec<Text>, body: &Script, input: &Flow) -> Flow {
        let mut output = Flow::known("");
        for item in items {
            // The items are walked one by one, so none of them is an older value of the next.
            self.forget_older(name);
            Rc::make_mut(&mut self.vars).insert(name.to_owned(), item);
            let jumps = self.jumps_so_far();
            let flow = self.maybe(|walker| walker.script(body, input));
            self.land(jumps);
            output = output.then(flow, super::LONGEST_TEXT);
        }
        output
    }

    /// `while`, `until` and `for (( … ))`.
    pub(super) fn repeat(&mut self, condition: &Script, body: &Script, input: &Flow) -> Flow {
        self.leavable(|walker| walker.rounds(condition, body, input))
    }

    fn rounds(&mut self, condition: &Script, body: &Script, input: &Flow) -> Flow {
        if let Some(lines) = lines_for(condition, input) {
            let mut output = Flow::known("");
            for line in lines {
                let flow = self.round(condition, body, &line);
                output = output.then(flow, super::LONGEST_TEXT);
            }
            return output;
        }
        let mut output = Flow::unknown(Taint::NONE);
        let most = if self.rounds < DEEPEST_LOOPS {
            MOST_ROUNDS
        } else {
            1
        };
        for round in 0..most {
            let (changes, arguments) = (self.changes, self.positional.clone());
            let flow = self.round(condition, body, input);
            output = if round == 0 {
                flow
            } else {
                output.then(flow, super::LONGEST_TEXT)
            };
            let shifted = self.positional != arguments;
            if !shifted && (round > 0 || self.changes == changes) {
                break;
            }
        }
        output.known = None;
        output
    }

    fn round(&mut self, condition: &Script, body: &Script, input: &Flow) -> Flow {
        let jumps = self.jumps_so_far();
        self.rounds += 1;
        let flow = self.maybe(|walker| {
            walker.script(condition, input);
            walker.script(body, input)
        });
        self.rounds -= 1;
        self.land(jumps);
        flow
    }
}

/// What each round of `while read` gets, if that is known.
fn lines_for(condition: &Script, input: &Flow) -> Option<Vec<Flow>> {
    let text = input.known.as_deref()?;
    if !reads_lines(condition) || text.trim_end().lines().count() < 2 {
        return None;
    }
    let line = |text: &str| Flow {
        known: Some(format!("{text}\n")),
        shared: false,
        ..input.clone()
    };
    let lines: Vec<Flow> = text.lines().take(MOST_ROUNDS + 1).map(line).collect();
    if lines.len() > MOST_ROUNDS {
        return Some(vec![Flow::unknown(input.taint)]);
    }
    Some(lines)
}

/// `while read …`.
pub(super) fn reads_lines(condition: &Script) -> bool {
    condition.pipelines.iter().any(|pipeline| {
        matches!(pipeline.stages.as_slice(), [Node { kind: Kind::Simple(simple), .. }]
            if simple.words.first().and_then(Word::as_plain) == Some("read"))
    })
}

/// One text for more items than are followed one by one.
fn summary(items: &[Text]) -> Text {
    let mut taint = Taint::NONE;
    for item in items {
        taint = taint | item.taint;
    }
    let number = |item: &Text| !item.s.is_empty() && item.s.bytes().all(|b| b.is_ascii_digit());
    let name = |item: &Text| {
        !item.is_unbounded() && !item.s.contains('/') && !item.s.starts_with(['.', '-'])
    };
    if items.is_empty() {
        return Text::unknown(taint);
    }
    if items.iter().all(number) {
        taint = taint | of_numbers(items.len());
    }
    if items.iter().all(name) {
        return Text::shaped(&Shape::Names, taint);
    }
    Text::unknown(taint)
}

/// So many numbers are the number of every process.
fn of_numbers(count: usize) -> Taint {
    const EVERY_NUMBER: usize = 200;
    if count >= EVERY_NUMBER {
        Taint::EVERY_PROCESS
    } else {
        Taint::NONE
    }
}

/// How many numbers `{1..65535}` stands for, where that is too many to write down.
fn long_range(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut ends = inner.split("..").map(str::parse::<usize>);
    let (from, to) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some(from.abs_diff(to))
}
