//! The values a variable may have where it is used.
//!
//! The walker goes through every branch once, so the value it saw last is not the only one: an
//! assignment after `&&`, in an `if` or in a stage of a pipeline may not have happened. What it would
//! have replaced is kept beside it, and a command that uses the variable is walked once more for each
//! of the older values.

use std::collections::{BTreeMap, HashMap};

use super::Walker;
use crate::paths::{self, Place};
use crate::text::{Shape, Taint, Text};

/// Older values that are kept for one variable.
const MOST_OLDER: usize = 4;

/// Choices of values that one command is walked with.
const MOST_READINGS: usize = 32;

impl Walker<'_> {
    pub(super) fn set(&mut self, name: &str, value: Text) {
        let name = self.meant(name).to_owned();
        let value = if self.transformed.contains(&name) && !is_number(&value) {
            Text::unknown(value.taint)
        } else {
            value
        };
        if self.reading.is_some() {
            self.keep_older(&name, value);
            return;
        }
        if self.vars.get(&name) != Some(&value) {
            self.changes += 1;
        }
        match self.vars.get(&name) {
            Some(before) if self.branches > 0 && *before != value => {
                // A counter: any number may stand there, and no number is a path.
                if is_number(before) && is_number(&value) {
                    let number = Text::shaped(&Shape::Names, value.taint | self.counted());
                    self.vars.insert(name, number);
                    return;
                }
                let before = before.clone();
                self.vars.insert(name.clone(), value.clone());
                self.keep_older(&name, before);
            }
            _ if self.branches == 0 => {
                self.older.remove(&name);
            }
            _ => {}
        }
        if let Some(first) = self
            .arrays
            .get_mut(&name)
            .and_then(|items| items.first_mut())
        {
            *first = value.clone();
        }
        self.vars.insert(name, value);
    }

    pub(super) fn set_array(&mut self, name: &str, mut items: Vec<Text>, append: bool) {
        let name = self.meant(name).to_owned();
        self.changes += 1;
        let kept = self.arrays.entry(name.clone()).or_default();
        if append {
            kept.append(&mut items);
        } else if (self.branches > 0 || self.reading.is_some()) && !kept.is_empty() {
            // Either of the two may be there, so every item counts at every place.
            items.append(kept);
            items.truncate(super::MOST_WORDS);
            *kept = items;
            self.mixed.insert(name.clone());
        } else {
            *kept = items;
            self.mixed.remove(&name);
        }
        self.vars.remove(&name);
        self.older.remove(&name);
    }

    /// Makes a variable unknown that a builtin sets to something.
    pub(super) fn set_unknown_number(&mut self, name: &str) {
        self.set(name, Text::shaped(&Shape::Names, self.counted()));
    }

    /// A number that a loop counts up may come to be that of every process.
    fn counted(&self) -> Taint {
        if self.rounds > 0 {
            Taint::EVERY_PROCESS
        } else {
            Taint::NONE
        }
    }

    fn keep_older(&mut self, name: &str, value: Text) {
        if self.vars.get(name) == Some(&value) {
            return;
        }
        let older = self.older.entry(name.to_owned()).or_default();
        if older.len() < MOST_OLDER && !older.contains(&value) {
            older.push(value);
        }
    }

    /// An older value, if this reading is about one.
    pub(super) fn older_value(&self, name: &str) -> Option<&Text> {
        let older = self.older.get(name)?;
        self.met_older
            .borrow_mut()
            .insert(name.to_owned(), older.len());
        let at = self.reading.as_ref()?.get(name)?;
        older.get(at.checked_sub(1)?)
    }

    /// Walks something once for every choice of values that its variables may have.
    pub(super) fn in_all_readings<T>(&mut self, mut walk: impl FnMut(&mut Self) -> T) -> T {
        let mut outer = self.met_older.take();
        let last = walk(self);
        let met = self.met_older.take();
        if self.reading.is_none() && !met.is_empty() {
            let folder = self.cwd.clone();
            let choices: usize = met.values().map(|older| older + 1).product();
            if choices > MOST_READINGS {
                self.doubt("it has more branches than can be followed");
            }
            for choice in 1..choices.min(MOST_READINGS) {
                self.reading = Some(chosen(&met, choice));
                walk(self);
                self.cwd.clone_from(&folder);
            }
            self.reading = None;
        }
        outer.extend(met);
        self.met_older.replace(outer);
        last
    }

    /// Walks what may or may not run.
    pub(super) fn maybe<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.branches += 1;
        let result = walk(self);
        self.branches -= 1;
        result
    }

    /// The item that matters most, where any of them may be meant.
    pub(super) fn worst(&self, items: &[Text]) -> Option<Text> {
        items
            .iter()
            .find(|item| item.is_unbounded())
            .or_else(|| items.iter().find(|item| self.matters(&item.s)))
            .or_else(|| items.first())
            .cloned()
    }

    fn matters(&self, path: &str) -> bool {
        let cwd = self.workdir();
        paths::secret(path, cwd, self.context).is_some()
            || paths::protected(path, cwd, self.context).is_some()
            || matches!(
                paths::place(path, cwd, self.context),
                Place::Root | Place::System | Place::InsideSystem | Place::Home | Place::Disk
            )
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
        left.drain(1.min(left.len())..(by + 1).min(left.len()));
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

/// The choice of that number: which value each variable has, 0 for the last one.
fn chosen(met: &BTreeMap<String, usize>, choice: usize) -> HashMap<String, usize> {
    let mut rest = choice;
    let mut values = HashMap::new();
    for (name, older) in met {
        values.insert(name.clone(), rest % (older + 1));
        rest /= older + 1;
    }
    values
}

fn is_number(text: &Text) -> bool {
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
