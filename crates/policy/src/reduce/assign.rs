//! Variables and arrays that the text sets.

use std::rc::Rc;

use super::ScriptWalker;
use crate::syntax::{AssignValue, ShellAssignment};
use crate::text::ExpandedText;

impl ScriptWalker<'_> {
    pub(super) fn assign(&mut self, assign: &ShellAssignment) -> ExpandedText {
        if let Some(word) = &assign.inside {
            self.text(word);
        }
        match &assign.value {
            AssignValue::Array(words) => {
                let mut items = Vec::new();
                for word in words {
                    items.append(&mut self.fields(word));
                }
                self.set_array(&assign.name, items, assign.append);
                ExpandedText::default()
            }
            AssignValue::Scalar(word) => {
                let mut value = self.text(word);
                if let Some(index) = &assign.index {
                    self.assign_item(&assign.name, index, value.clone());
                    return value;
                }
                if assign.append
                    && let Some(before) = self.variable(&assign.name)
                {
                    let mut joined = before;
                    joined.push(&value);
                    value = joined;
                }
                self.set(&assign.name, value.clone());
                value
            }
        }
    }

    fn assign_item(&mut self, name: &str, index: &str, value: ExpandedText) {
        const MOST_ITEMS: usize = 256;
        let name = self.meant(name).to_owned();
        self.changes += 1;
        Rc::make_mut(&mut self.vars).insert(format!("{name}[{index}]"), value.clone());
        let Some(at) = index.parse().ok().filter(|at| *at < MOST_ITEMS) else {
            return;
        };
        let mut items = self.items_of(&name);
        if self.reading.is_some() {
            items.push(value);
            Rc::make_mut(&mut self.mixed).insert(name.clone());
        } else {
            if items.len() <= at {
                items.resize(at + 1, ExpandedText::default());
            }
            items[at] = value.clone();
            // `$a` is its first item.
            if at == 0 && self.vars.contains_key(&name) {
                self.forget_older(&name);
                Rc::make_mut(&mut self.vars).insert(name.clone(), value);
            }
        }
        Rc::make_mut(&mut self.arrays).insert(name, items);
    }
}
