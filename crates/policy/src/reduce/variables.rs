//! The values a variable may have where it is used.
//!
//! The walker goes through every branch once, so the value it saw last is not the only one: an
//! assignment after `&&`, in an `if` or in a stage of a pipeline may not have happened. What it would
//! have replaced is kept beside it (`branches.rs`), and a command that uses the variable is walked once
//! more for each of the older values.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::ScriptWalker;
use crate::paths::{self, PathLoss};
use crate::text::{ExpandedText, TaintSet, TextShape};

/// Older values that are kept for one variable.
const MOST_OLDER: usize = 4;

/// Choices of values that one command is walked with.
const MOST_READINGS: usize = 32;

impl ScriptWalker<'_> {
    pub(super) fn set(&mut self, name: &str, value: ExpandedText) {
        let name = self.meant(name).to_owned();
        let value = if self.transformed.contains(&name) && !is_number(&value) {
            ExpandedText::unknown(value.taint)
        } else {
            value
        };
        if self.reading.is_some() {
            self.keep_older(&name, &value);
            return;
        }
        if self.vars.get(&name) != Some(&value) {
            self.changes += 1;
        }
        // A counter: any number may stand there, and no number is a path.
        if self.branches > 0
            && let Some(before) = self.vars.get(&name)
            && *before != value
            && is_number(before)
            && is_number(&value)
        {
            let number = ExpandedText::shaped(&TextShape::Names, value.taint | self.counted());
            Rc::make_mut(&mut self.vars).insert(name, number);
            return;
        }
        self.forget_older(&name);
        if self.arrays.contains_key(&name)
            && let Some(items) = Rc::make_mut(&mut self.arrays).get_mut(&name)
            && let Some(first) = items.first_mut()
        {
            *first = value.clone();
        }
        Rc::make_mut(&mut self.vars).insert(name, value);
    }

    pub(super) fn set_array(&mut self, name: &str, mut items: Vec<ExpandedText>, append: bool) {
        let name = self.meant(name).to_owned();
        self.changes += 1;
        let before = self.items_of(&name);
        let uncertain = self.reading.is_some() && !before.is_empty();
        if append {
            items.splice(0..0, before);
            // Either of its values was the first item.
            let older = self.older.get(&name);
            items.extend(older.into_iter().flatten().cloned());
            if older.is_some() || self.reading.is_some() {
                Rc::make_mut(&mut self.mixed).insert(name.clone());
            }
        } else if uncertain {
            // Either of the two may be there, so every item counts at every place.
            items.extend(before);
            Rc::make_mut(&mut self.mixed).insert(name.clone());
        } else if self.mixed.contains(&name) {
            Rc::make_mut(&mut self.mixed).remove(&name);
        }
        self.bound_items(&mut items);
        Rc::make_mut(&mut self.arrays).insert(name.clone(), items);
        Rc::make_mut(&mut self.vars).remove(&name);
        if !uncertain {
            self.forget_older(&name);
        }
    }

    pub(super) fn bound_items(&mut self, items: &mut Vec<ExpandedText>) {
        if items.len() > super::MOST_WORDS {
            self.doubt("it has too many words to follow");
            items.truncate(super::MOST_WORDS);
        }
    }

    /// What a name is as an array: a plain variable is one of one item.
    pub(super) fn items_of(&self, name: &str) -> Vec<ExpandedText> {
        match (self.arrays.get(name), self.vars.get(name)) {
            (Some(items), _) => items.clone(),
            (None, Some(value)) => vec![value.clone()],
            (None, None) => Vec::new(),
        }
    }

    pub(super) fn forget_older(&mut self, name: &str) {
        // Only what is there is worth a copy of what a branch shares.
        if self.older.contains_key(name) {
            Rc::make_mut(&mut self.older).remove(name);
        }
        if self.lost.contains(name) {
            Rc::make_mut(&mut self.lost).remove(name);
        }
    }

    /// Makes a variable unknown that a builtin sets to something.
    pub(super) fn set_unknown_number(&mut self, name: &str) {
        self.set(
            name,
            ExpandedText::shaped(&TextShape::Names, self.counted()),
        );
    }

    /// A number that a loop counts up may come to be that of every process.
    fn counted(&self) -> TaintSet {
        if self.rounds > 0 {
            TaintSet::EVERY_PROCESS
        } else {
            TaintSet::NONE
        }
    }

    pub(super) fn keep_older(&mut self, name: &str, value: &ExpandedText) {
        let older = self.older.get(name);
        let known = older.is_some_and(|older| older.contains(value));
        if known || self.vars.get(name) == Some(value) {
            return;
        }
        if older.is_none_or(|older| older.len() < MOST_OLDER) {
            let older = Rc::make_mut(&mut self.older);
            older
                .entry(name.to_owned())
                .or_default()
                .push(value.clone());
        } else if !self.lost.contains(name) {
            Rc::make_mut(&mut self.lost).insert(name.to_owned());
        }
    }

    /// An older value, if this reading is about one.
    pub(super) fn older_value(&self, name: &str) -> Option<&ExpandedText> {
        if self.older.contains_key(name) {
            self.met_older.borrow_mut().insert(name.to_owned());
        }
        self.reading.as_ref()?.get(name)
    }

    /// Walks something once for every choice of values that its variables may have.
    pub(super) fn in_all_readings<T>(&mut self, mut walk: impl FnMut(&mut Self) -> T) -> T {
        let mut outer = self.met_older.take();
        // As they are now: the walk itself may change them.
        let mut choices = self.choices();
        self.spend_text(4 * choices.len());
        let last = walk(self);
        let met = self.met_older.take();
        choices.retain(|name, _| met.contains(name));
        if !choices.is_empty() {
            self.other_readings(&choices, walk);
        }
        outer.extend(met);
        self.met_older.replace(outer);
        last
    }

    fn other_readings<T>(&mut self, choices: &Choices, mut walk: impl FnMut(&mut Self) -> T) {
        let count = choices.values().fold(1, |count: usize, choice| {
            count.saturating_mul(choice.count())
        });
        if count > MOST_READINGS || choices.values().any(|choice| choice.lost) {
            self.doubt("it has more branches than can be followed");
        }
        let folder = self.cwd.clone();
        for number in 1..count.min(MOST_READINGS) {
            self.reading = Some(chosen(choices, number));
            walk(self);
            self.cwd.clone_from(&folder);
        }
        self.reading = None;
    }

    /// All values of the variables that have more than one, unless a reading has chosen already.
    fn choices(&self) -> Choices {
        if self.reading.is_some() {
            return Choices::new();
        }
        let choice = |(name, older): (&String, &Vec<ExpandedText>)| {
            let choice = VariableValues {
                current: self.vars.get(name).cloned(),
                older: older.clone(),
                lost: self.lost.contains(name),
            };
            (name.clone(), choice)
        };
        self.older.iter().map(choice).collect()
    }

    /// The item that matters most, where any of them may be meant.
    pub(super) fn worst(&self, items: &[ExpandedText]) -> Option<ExpandedText> {
        items
            .iter()
            .find(|item| item.is_unbounded())
            .or_else(|| items.iter().find(|item| self.matters(&item.s)))
            .or_else(|| items.first())
            .cloned()
    }

    pub(super) fn matters(&self, path: &str) -> bool {
        let cwd = self.workdir();
        paths::secret(path, cwd, self.context).is_some()
            || paths::protected(path, cwd, self.context).is_some()
            || matches!(
                paths::place(path, cwd, self.context),
                PathLoss::Root
                    | PathLoss::System
                    | PathLoss::InsideSystem
                    | PathLoss::Home
                    | PathLoss::Disk
            )
    }

    /// `set -- a b`: the arguments from now on; in a branch, whichever matters more of them and those
    /// before.
    pub(super) fn set_arguments(&mut self, mut words: Vec<ExpandedText>) {
        if self.branches > 0
            && let Some(before) = self.positional.take()
        {
            for (at, old) in before.into_iter().enumerate().skip(1) {
                match words.get(at).cloned() {
                    Some(new) => words[at] = self.worst(&[new, old]).unwrap_or_default(),
                    None => words.push(old),
                }
            }
        }
        self.positional = Some(words);
    }

    /// `shift`: the arguments that are left.
    pub(super) fn shift(&mut self, by: Option<usize>) {
        let Some(args) = self.positional.clone() else {
            return;
        };
        let Some(by) = by else {
            // Anything may be left.
            self.positional = None;
            return;
        };
        let mut left = args.clone();
        left.drain(1.min(left.len())..by.saturating_add(1).min(left.len()));
        if self.branches > 0 && self.rounds == 0 {
            for (at, arg) in left.iter_mut().enumerate().skip(1) {
                if let Some(worst) = self.worst(&[arg.clone(), args[at].clone()]) {
                    *arg = worst;
                }
            }
        }
        self.positional = Some(left);
    }

    /// What `declare -l`, `-u`, `-c` or `-i` will make of a value only running tells.
    pub(super) fn transform(&mut self, name: &str) {
        self.transformed.insert(name.to_owned());
        if let Some(value) = self.vars.get(name).cloned() {
            self.set(name, value);
        }
    }
}

/// The values of one variable where a command begins.
struct VariableValues {
    current: Option<ExpandedText>,
    older: Vec<ExpandedText>,
    /// It had more than were kept.
    lost: bool,
}

impl VariableValues {
    fn count(&self) -> usize {
        self.older.len() + 1
    }

    /// 0 is the last one.
    fn value(&self, at: usize) -> Option<&ExpandedText> {
        match at.checked_sub(1) {
            None => self.current.as_ref(),
            Some(at) => self.older.get(at),
        }
    }
}

type Choices = BTreeMap<String, VariableValues>;

/// The choice of that number: which value each variable has.
fn chosen(choices: &Choices, number: usize) -> HashMap<String, ExpandedText> {
    let mut rest = number;
    let mut values = HashMap::new();
    for (name, choice) in choices {
        if let Some(value) = choice.value(rest % choice.count()) {
            values.insert(name.clone(), value.clone());
        }
        rest /= choice.count();
    }
    values
}

fn is_number(text: &ExpandedText) -> bool {
    !text.s.is_empty() && text.s.bytes().all(|b| b.is_ascii_digit())
        || text.s == crate::text::NAME.to_string()
}

/// The names that an arithmetic expression changes: `i++`, `n += 2`, `(x = 1)`.
pub(super) fn changed_by(expression: &str) -> Vec<&str> {
    let bytes = expression.as_bytes();
    let mut names = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !(bytes[at].is_ascii_alphabetic() || bytes[at] == b'_') {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
            at += 1;
        }
        let after = expression[at..].trim_start();
        let before = expression[..start].trim_end();
        let assigned = [
            "=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=",
        ]
        .iter()
        .any(|op| after.starts_with(op) && !after.starts_with("=="));
        let counted = ["++", "--"]
            .iter()
            .any(|op| after.starts_with(op) || before.ends_with(op));
        if assigned || counted {
            names.push(&expression[start..at]);
        }
    }
    names
}
