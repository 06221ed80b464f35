//! What is known after a part of the text that may not have run.
//!
//! Inside such a part an assignment is an assignment. Where the part ends, both are possible: what it
//! left and what was there before. The same holds where a loop or a function may be left early.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::ScriptWalker;
use super::environment::conventional;
use crate::text::ExpandedText;

/// The folder among the variables with older values; no variable is called so.
const FOLDER: &str = ".";

/// Early ways out of one loop or function that are followed.
const MOST_JUMPS: usize = 128;

/// All that an assignment or a `cd` changes.
#[derive(Clone)]
pub(super) struct ShellState {
    vars: Rc<HashMap<String, ExpandedText>>,
    older: Rc<HashMap<String, Vec<ExpandedText>>>,
    lost: Rc<HashSet<String>>,
    arrays: Rc<HashMap<String, Vec<ExpandedText>>>,
    mixed: Rc<HashSet<String>>,
    cwd: Option<String>,
}

impl ShellState {
    /// What going through them costs, counted in text.
    fn cost_of_arrays(&self) -> usize {
        let items: usize = self.arrays.values().map(Vec::len).sum();
        4 * items
    }
}

/// `break`, `continue` or `return`, with what was known there.
pub(super) struct LoopJump {
    /// How many loops it leaves.
    loops: usize,
    state: ShellState,
}

impl ScriptWalker<'_> {
    /// Walks what may or may not run.
    pub(super) fn maybe<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let folder = self.cwd.clone();
        let result = self.maybe_next(walk);
        self.keep_folder(folder.as_deref());
        result
    }

    /// The same for what follows `&&`: whoever comes after it in the same list stands where it went.
    pub(super) fn maybe_next<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.state();
        self.branches += 1;
        let result = walk(self);
        self.branches -= 1;
        self.join(&before);
        result
    }

    pub(super) fn state(&self) -> ShellState {
        ShellState {
            vars: Rc::clone(&self.vars),
            older: Rc::clone(&self.older),
            lost: Rc::clone(&self.lost),
            arrays: Rc::clone(&self.arrays),
            mixed: Rc::clone(&self.mixed),
            cwd: self.cwd.clone(),
        }
    }

    /// Walks what another process does: its variables, functions and folder are its own.
    pub(super) fn apart<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let kept = self.state();
        let functions = (self.functions.clone(), self.uncertain.clone());
        let result = walk(self);
        (self.functions, self.uncertain) = functions;
        self.return_to(kept);
        result
    }

    pub(super) fn return_to(&mut self, state: ShellState) {
        self.vars = state.vars;
        self.older = state.older;
        self.lost = state.lost;
        self.arrays = state.arrays;
        self.mixed = state.mixed;
        self.cwd = state.cwd;
    }

    /// From here on the variables may also be as they were in another state.
    fn join(&mut self, other: &ShellState) {
        if !Rc::ptr_eq(&self.arrays, &other.arrays) {
            self.spend_text(other.cost_of_arrays());
            self.join_arrays(other);
        }
        if !Rc::ptr_eq(&self.vars, &other.vars) {
            self.spend_text(4 * (other.vars.len() + other.older.len()));
            self.join_values(other);
            self.join_new(other);
        }
        if !Rc::ptr_eq(&self.older, &other.older) {
            self.join_older(other);
        }
        if !Rc::ptr_eq(&self.mixed, &other.mixed) {
            Rc::make_mut(&mut self.mixed).extend(other.mixed.iter().cloned());
        }
        if !Rc::ptr_eq(&self.lost, &other.lost) {
            Rc::make_mut(&mut self.lost).extend(other.lost.iter().cloned());
        }
    }

    fn join_values(&mut self, other: &ShellState) {
        for (name, value) in other.vars.iter() {
            self.keep_older(name, value);
        }
    }

    fn join_older(&mut self, other: &ShellState) {
        for (name, older) in other.older.iter() {
            for value in older {
                self.keep_older(name, value);
            }
        }
    }

    /// What was no variable of the text may have been an array, or one that every shell has.
    fn join_new(&mut self, other: &ShellState) {
        let new = self
            .vars
            .keys()
            .filter(|name| !other.vars.contains_key(*name));
        let values: Vec<(String, ExpandedText)> = new
            .filter_map(|name| {
                let items = other.arrays.get(name);
                let value = match items {
                    Some(items) => items.first().cloned(),
                    None => conventional(name, self.context),
                };
                Some((name.clone(), value?))
            })
            .collect();
        for (name, value) in values {
            self.keep_older(&name, &value);
        }
    }

    /// Either of two arrays may be there, so every item counts at every place.
    fn join_arrays(&mut self, other: &ShellState) {
        let was = |name: &String| match (other.arrays.get(name), other.vars.get(name)) {
            (Some(items), _) => items.clone(),
            (None, value) => value.cloned().into_iter().collect(),
        };
        let names: HashSet<&String> = self.arrays.keys().chain(other.arrays.keys()).collect();
        let mut joined = Vec::new();
        for name in names {
            if self.arrays.get(name) == other.arrays.get(name) {
                continue;
            }
            let (mut items, before) = (self.items_of(name), was(name));
            // What was only added to keeps its places.
            if items.starts_with(&before) {
                continue;
            }
            for item in before {
                if !items.contains(&item) {
                    items.push(item);
                }
            }
            joined.push((name.clone(), items));
        }
        for (name, mut items) in joined {
            self.bound_items(&mut items);
            Rc::make_mut(&mut self.mixed).insert(name.clone());
            Rc::make_mut(&mut self.arrays).insert(name, items);
        }
    }

    /// The shell may still stand in another folder. Only where that matters: a project's folders are
    /// much alike.
    pub(super) fn keep_folder(&mut self, folder: Option<&str>) {
        if folder == self.cwd.as_deref() {
            return;
        }
        let folder = folder.unwrap_or(&self.context.workspace);
        if self.matters(folder) {
            self.keep_older(FOLDER, &ExpandedText::known(folder));
        }
    }

    /// Goes to the folder that this reading is about.
    pub(super) fn stand_in_older_folder(&mut self) {
        if let Some(folder) = self.older_value(FOLDER) {
            self.cwd = Some(folder.s.clone());
        }
    }

    pub(super) fn stand_in(&mut self, folder: String) {
        if self.reading.is_some() {
            if self.matters(&folder) {
                self.keep_older(FOLDER, &ExpandedText::known(&folder));
            }
        } else {
            self.forget_older(FOLDER);
        }
        self.cwd = Some(folder);
    }

    /// Remembers what is known where a loop or a function may be left.
    pub(super) fn jump(&mut self, loops: usize) {
        if self.branches == 0 && self.calls.is_empty() {
            return;
        }
        if self.jumps.len() < MOST_JUMPS {
            let state = self.state();
            self.jumps.push(LoopJump { loops, state });
        } else {
            self.doubt("it has more branches than can be followed");
        }
    }

    /// Walks a loop or the body of a function, which may be left before its end.
    pub(super) fn leavable<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::take(&mut self.jumps);
        let result = walk(self);
        self.land(0);
        let inner = std::mem::replace(&mut self.jumps, outer);
        let further = inner.into_iter().filter(|jump| jump.loops > 1);
        self.jumps.extend(further.map(|jump| LoopJump {
            loops: jump.loops - 1,
            ..jump
        }));
        result
    }

    /// Where the jump of the next `break` will be kept.
    pub(super) fn jumps_so_far(&self) -> usize {
        self.jumps.len()
    }

    /// Whoever jumped since then is here.
    pub(super) fn land(&mut self, from: usize) {
        let jumps = std::mem::take(&mut self.jumps);
        for jump in jumps.iter().skip(from) {
            self.join(&jump.state);
            self.keep_folder(jump.state.cwd.as_deref());
        }
        self.jumps = jumps;
    }
}
