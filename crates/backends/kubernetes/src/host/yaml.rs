//! A kubeconfig's YAML as plain values.
//!
//! Every scalar is a text: nothing in a kubeconfig that is read here is a number, and `yes` is a name
//! somebody may have.

use std::collections::HashMap;

use granit_parser::{Event, Parser};
use serde_json::{Map, Value};
use thiserror::Error;

/// Copies that aliases make count as well.
const MOST_NODES: usize = 100_000;

#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum YamlError {
    #[error("not valid YAML: {0}")]
    Broken(String),
    #[error("more than one document, or one of a shape that no kubeconfig has")]
    Shape,
}

/// The one document; null where there is none.
pub(super) fn parse(text: &str) -> Result<Value, YamlError> {
    let mut tree = ValueTree::default();
    let options = granit_parser::options! { emit_unresolved_aliases: true };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, _) = event.map_err(|error| YamlError::Broken(error.info().to_owned()))?;
        tree.take(event)?;
    }
    Ok(tree.root.unwrap_or(Value::Null))
}

#[derive(Default)]
struct ValueTree {
    open: Vec<(usize, OpenValue)>,
    anchors: HashMap<usize, (Value, usize)>,
    root: Option<Value>,
    nodes: usize,
}

enum OpenValue {
    List(Vec<Value>),
    Map(Map<String, Value>, Option<String>),
}

impl ValueTree {
    fn take(&mut self, event: Event<'_>) -> Result<(), YamlError> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == granit_parser::ScalarStyle::Plain;
                let value = match text.as_ref() {
                    "" | "~" | "null" if plain => Value::Null,
                    text => Value::String(text.to_owned()),
                };
                self.finish(value, anchor, 1)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open.push((anchor, OpenValue::List(Vec::new())));
                Ok(())
            }
            Event::MappingStart(_, anchor, _) => {
                self.open.push((anchor, OpenValue::Map(Map::new(), None)));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (anchor, open) = self.open.pop().ok_or(YamlError::Shape)?;
                let value = match open {
                    OpenValue::List(items) => Value::Array(items),
                    OpenValue::Map(entries, _) => Value::Object(entries),
                };
                self.finish(value, anchor, 1)
            }
            Event::Alias(id) => {
                let (value, weight) = self.anchors.get(&id).cloned().ok_or(YamlError::Shape)?;
                self.finish(value, 0, weight)
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, value: Value, anchor: usize, weight: usize) -> Result<(), YamlError> {
        self.nodes += weight;
        if self.nodes > MOST_NODES {
            return Err(YamlError::Shape);
        }
        if anchor != 0 {
            self.anchors.insert(anchor, (value.clone(), heft(&value)));
        }
        match self.open.last_mut() {
            None if self.root.is_none() => self.root = Some(value),
            None => return Err(YamlError::Shape),
            Some((_, OpenValue::List(items))) => items.push(value),
            Some((_, OpenValue::Map(entries, key))) => match (key.take(), value) {
                (Some(name), value) => drop(entries.insert(name, value)),
                (None, Value::String(name)) => *key = Some(name),
                (None, _) => return Err(YamlError::Shape),
            },
        }
        Ok(())
    }
}

fn heft(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(heft).sum::<usize>(),
        Value::Object(entries) => 1 + entries.values().map(heft).sum::<usize>(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_becomes_values_and_its_scalars_stay_text() {
        let text = "a: &x {b: 1, c: yes}\nd: *x\ne:\n- one\n- 'null'\n- ~\nf: |\n  two\n  lines\n";
        let one = json!({"b": "1", "c": "yes"});
        let wanted = json!({"a": one, "d": one, "e": ["one", "null", null], "f": "two\nlines\n"});
        assert_eq!(parse(text), Ok(wanted));
        assert_eq!(parse("{\"json\": [\"too\"]}"), Ok(json!({"json": ["too"]})));
        assert_eq!(parse("# nothing\n"), Ok(Value::Null));
    }

    #[test]
    fn what_is_no_document_is_an_error() {
        for text in ["a: [", "a\n---\nb\n", "{[a]: b}", "a: b: c"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn aliases_do_not_multiply_without_end() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..9 {
            let before = vec![format!("*a{}", n - 1); 10].join(", ");
            text += &format!("a{n}: &a{n} [{before}]\n");
        }
        assert_eq!(parse(&text), Err(YamlError::Shape));
    }
}
