//! Loops, walked often enough to see what a later round does.

use std::rc::Rc;

use super::ScriptWalker;
use crate::finding::{HarmCategory, HarmFinding};
use crate::syntax::{NodeKind, Pipeline, ShellNode, ShellScript, ShellWord};
use crate::text::{ByteFlow, ExpandedText, TaintSet, TextShape};

/// A `for` over more known words than this is walked with a hole.
const MOST_ROUNDS: usize = 24;

/// In loops deeper than this one round stands for all.
const DEEPEST_LOOPS: usize = 2;

impl ScriptWalker<'_> {
    pub(super) fn for_loop(
        &mut self,
        name: &str,
        words: Option<&[ShellWord]>,
        body: &ShellScript,
        input: &ByteFlow,
    ) -> ByteFlow {
        let mut items: Vec<ExpandedText> = Vec::new();
        let mut first = true;
        self.in_all_readings(|walker| {
            for word in words.unwrap_or_default() {
                let fields = walker.fields(word);
                // More than are followed one by one are one hole, whatever else there is.
                if first {
                    items.extend(fields);
                } else if items.len() <= MOST_ROUNDS {
                    let new = fields.into_iter().filter(|item| !items.contains(item));
                    let new: Vec<ExpandedText> = new.collect();
                    items.extend(new);
                }
            }
            first = false;
        });
        for item in &mut items {
            if let Some(span) = long_range(&item.s) {
                *item = ExpandedText::shaped(&TextShape::Names, of_numbers(span));
            }
        }
        if words.is_none() {
            items = vec![ExpandedText::unknown(TaintSet::ARGUMENT)];
        } else if items.is_empty() || items.len() > MOST_ROUNDS {
            items = vec![summary(&items)];
        }
        self.leavable(|walker| walker.for_each(name, items, body, input))
    }

    fn for_each(
        &mut self,
        name: &str,
        items: Vec<ExpandedText>,
        body: &ShellScript,
        input: &ByteFlow,
    ) -> ByteFlow {
        let mut output = ByteFlow::known("");
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
    pub(super) fn repeat(
        &mut self,
        condition: &ShellScript,
        body: &ShellScript,
        input: &ByteFlow,
    ) -> ByteFlow {
        if starts_without_end(condition, body) {
            self.find(HarmFinding::floor(
                HarmCategory::ForkBomb,
                "starts things in the background without end (fork bomb)",
            ));
        } else if makes_without_end(condition, body) {
            self.find(HarmFinding::dangerous(
                HarmCategory::Process,
                "makes files without end and without a pause",
            ));
        }
        self.leavable(|walker| walker.rounds(condition, body, input))
    }

    fn rounds(
        &mut self,
        condition: &ShellScript,
        body: &ShellScript,
        input: &ByteFlow,
    ) -> ByteFlow {
        if let Some(lines) = lines_for(condition, input) {
            let mut output = ByteFlow::known("");
            for line in lines {
                let flow = self.round(condition, body, &line);
                output = output.then(flow, super::LONGEST_TEXT);
            }
            return output;
        }
        let mut output = ByteFlow::unknown(TaintSet::NONE);
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

    fn round(&mut self, condition: &ShellScript, body: &ShellScript, input: &ByteFlow) -> ByteFlow {
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

/// `while true; do cmd & done`: nothing in it waits, and nothing ends it.
fn starts_without_end(condition: &ShellScript, body: &ShellScript) -> bool {
    is_endless(condition)
        && !body.pipelines.is_empty()
        && body.pipelines.iter().all(leaves_something_behind)
}

/// `while true; do mkdir x; cd x; done`: each round leaves a little more, and there is no last one.
fn makes_without_end(condition: &ShellScript, body: &ShellScript) -> bool {
    const MAKES: &[&str] = &[
        "mkdir",
        "touch",
        "mktemp",
        "fallocate",
        "truncate",
        "mkfifo",
        "ln",
        "cp",
        "dd",
        "tee",
    ];
    const PASSES: &[&str] = &[
        "cd", "pushd", ":", "true", "echo", "printf", "cat", "let", "head",
    ];
    let mut makes = false;
    let only_that = body.pipelines.iter().all(|pipeline| {
        pipeline.stages.iter().all(|stage| {
            let NodeKind::Simple(simple) = &stage.kind else {
                return false;
            };
            let name = simple.words.first().and_then(ShellWord::as_plain);
            makes |= name.is_some_and(|name| MAKES.contains(&name));
            name.is_none_or(|name| MAKES.contains(&name) || PASSES.contains(&name))
        })
    });
    is_endless(condition) && only_that && makes
}

fn is_endless(condition: &ShellScript) -> bool {
    match condition.pipelines.as_slice() {
        [] => true,
        [only] => match only.stages.as_slice() {
            [
                ShellNode {
                    kind: NodeKind::Simple(simple),
                    ..
                },
            ] => {
                let word = simple.words.first().and_then(ShellWord::as_plain);
                simple.words.len() <= 1 && matches!(word, Some(":" | "true"))
            }
            _ => false,
        },
        _ => false,
    }
}

/// `cmd &`, and `(cmd &)`.
fn leaves_something_behind(pipeline: &Pipeline) -> bool {
    pipeline.background
        || match pipeline.stages.as_slice() {
            [
                ShellNode {
                    kind: NodeKind::Subshell(inner),
                    ..
                },
            ] => {
                !inner.pipelines.is_empty() && inner.pipelines.iter().all(|inner| inner.background)
            }
            _ => false,
        }
}

/// What each round of `while read` gets, if that is known.
fn lines_for(condition: &ShellScript, input: &ByteFlow) -> Option<Vec<ByteFlow>> {
    let text = input.known.as_deref()?;
    if !reads_lines(condition) || text.trim_end().lines().count() < 2 {
        return None;
    }
    let line = |text: &str| ByteFlow {
        known: Some(format!("{text}\n")),
        shared: false,
        ..input.clone()
    };
    let lines: Vec<ByteFlow> = text.lines().take(MOST_ROUNDS + 1).map(line).collect();
    if lines.len() > MOST_ROUNDS {
        return Some(vec![ByteFlow::unknown(input.taint)]);
    }
    Some(lines)
}

/// `while read …`.
pub(super) fn reads_lines(condition: &ShellScript) -> bool {
    condition.pipelines.iter().any(|pipeline| {
        matches!(pipeline.stages.as_slice(), [ShellNode { kind: NodeKind::Simple(simple), .. }]
            if simple.words.first().and_then(ShellWord::as_plain) == Some("read"))
    })
}

/// One text for more items than are followed one by one.
fn summary(items: &[ExpandedText]) -> ExpandedText {
    let mut taint = TaintSet::NONE;
    for item in items {
        taint = taint | item.taint;
    }
    let number =
        |item: &ExpandedText| !item.s.is_empty() && item.s.bytes().all(|b| b.is_ascii_digit());
    let name = |item: &ExpandedText| {
        !item.is_unbounded() && !item.s.contains('/') && !item.s.starts_with(['.', '-'])
    };
    if items.is_empty() {
        return ExpandedText::unknown(taint);
    }
    if items.iter().all(number) {
        taint = taint | of_numbers(items.len());
    }
    if items.iter().all(name) {
        return ExpandedText::shaped(&TextShape::Names, taint);
    }
    ExpandedText::unknown(taint)
}

/// So many numbers are the number of every process.
fn of_numbers(count: usize) -> TaintSet {
    const EVERY_NUMBER: usize = 200;
    if count >= EVERY_NUMBER {
        TaintSet::EVERY_PROCESS
    } else {
        TaintSet::NONE
    }
}

/// How many numbers `{1..65535}` stands for, where that is too many to write down.
fn long_range(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut ends = inner.split("..").map(str::parse::<usize>);
    let (from, to) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some(from.abs_diff(to))
}
