//! Variables that one command or one function has for itself.

use std::rc::Rc;

use super::ScriptWalker;
use crate::syntax::{ShellWord, SimpleCommand};
use crate::text::ExpandedText;

/// A variable as it was before a command or a function that has it for itself.
pub(super) struct KeptVariable {
    name: String,
    value: Option<ExpandedText>,
    older: Option<Vec<ExpandedText>>,
    lost: bool,
    items: Option<Vec<ExpandedText>>,
    mixed: bool,
    /// It may have been the caller's all the time: `[ -e x ] && local f`, `declare -g f`.
    shared: bool,
}

/// What a function that is being called has for itself, as it was before.
pub(super) struct FunctionLocals {
    /// Inside how many branches it was called.
    branches: usize,
    kept: Vec<KeptVariable>,
}

impl FunctionLocals {
    pub(super) fn of(branches: usize) -> Self {
        Self {
            branches,
            kept: Vec::new(),
        }
    }

    pub(super) fn into_kept(self) -> Vec<KeptVariable> {
        self.kept
    }
}

impl ScriptWalker<'_> {
    /// The values that the variables of an assignment have before it.
    pub(super) fn as_they_are(&self, simple: &SimpleCommand) -> Vec<KeptVariable> {
        let names = simple.assigns.iter().map(|assign| &assign.name);
        names.map(|name| self.as_it_is(name)).collect()
    }

    fn as_it_is(&self, name: &str) -> KeptVariable {
        let name = self.meant(name);
        KeptVariable {
            name: name.to_owned(),
            value: self.vars.get(name).cloned(),
            older: self.older.get(name).cloned(),
            lost: self.lost.contains(name),
            items: self.arrays.get(name).cloned(),
            mixed: self.mixed.contains(name),
            shared: false,
        }
    }

    /// `local f=x`, `declare f`: what a function has for itself.
    pub(super) fn make_locals(&mut self, simple: &SimpleCommand) {
        let words: Vec<&str> = simple
            .words
            .iter()
            .filter_map(ShellWord::as_plain)
            .collect();
        let Some((first, rest)) = words.split_first() else {
            return;
        };
        if !is_local(first) {
            return;
        }
        let global = rest
            .iter()
            .any(|word| word.starts_with('-') && word.contains('g'));
        let given = simple.assigns.iter().map(|assign| assign.name.as_str());
        for name in given.chain(rest.iter().copied()) {
            self.make_local(name, global);
        }
    }

    /// Inside a function: the variable is the caller's again afterwards, unless it is `global`.
    pub(super) fn make_local(&mut self, name: &str, global: bool) {
        let mut kept = self.as_it_is(name);
        if global {
            let all = self.locals.iter_mut().flat_map(|locals| &mut locals.kept);
            all.filter(|variable| variable.name == kept.name)
                .for_each(|variable| variable.shared = true);
        } else if let Some(locals) = self.locals.last_mut() {
            kept.shared = self.branches > locals.branches;
            locals.kept.push(kept);
        }
    }

    /// Gives variables back the values they had before others had them.
    pub(super) fn put_back(&mut self, kept: Vec<KeptVariable>) {
        for variable in kept.into_iter().rev() {
            let inner = self.as_it_is(&variable.name);
            let shared = variable.shared;
            self.put_one_back(variable);
            if shared {
                self.or_as_it_was(inner);
            }
        }
    }

    fn put_one_back(&mut self, variable: KeptVariable) {
        let name = variable.name;
        match variable.value {
            Some(value) => Rc::make_mut(&mut self.vars).insert(name.clone(), value),
            None => Rc::make_mut(&mut self.vars).remove(&name),
        };
        match variable.items {
            Some(items) => Rc::make_mut(&mut self.arrays).insert(name.clone(), items),
            None => Rc::make_mut(&mut self.arrays).remove(&name),
        };
        match variable.older {
            Some(older) => Rc::make_mut(&mut self.older).insert(name.clone(), older),
            None => Rc::make_mut(&mut self.older).remove(&name),
        };
        if variable.lost {
            Rc::make_mut(&mut self.lost).insert(name.clone());
        } else {
            Rc::make_mut(&mut self.lost).remove(&name);
        }
        if variable.mixed {
            Rc::make_mut(&mut self.mixed).insert(name);
        } else {
            Rc::make_mut(&mut self.mixed).remove(&name);
        }
    }

    fn or_as_it_was(&mut self, variable: KeptVariable) {
        let name = variable.name;
        for value in variable.value.iter().chain(variable.older.iter().flatten()) {
            self.keep_older(&name, value);
        }
        if let Some(items) = variable.items {
            let mut all = self.items_of(&name);
            all.extend(items);
            Rc::make_mut(&mut self.arrays).insert(name.clone(), all);
            Rc::make_mut(&mut self.mixed).insert(name);
        }
    }
}

/// Builtins whose variables are a function's own.
pub(super) fn is_local(name: &str) -> bool {
    matches!(name, "local" | "declare" | "typeset")
}
