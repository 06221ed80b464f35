//! Variables and arrays that the text sets.

use super::Walker;
use crate::syntax::{Assign, AssignValue};
use crate::text::Text;

impl Walker<'_> {
    pub(super) fn assign(&mut self, assign: &Assign) -> Text {
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
                Text::default()
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

    fn assign_item(&mut self, name: &str, index: &str, value: Text) {
        self.vars.insert(format!("{name}[{index}]"), value.clone());
        if let Ok(at) = index.parse::<usize>()
            && at < 256
        {
            let items = self.arrays.entry(name.to_owned()).or_default();
            if items.len() <= at {
                items.resize(at + 1, Text::default());
            }
            items[at] = value;
        }
    }
}
