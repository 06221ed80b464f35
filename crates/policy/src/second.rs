//! A second reader: tree-sitter's grammar of bash.
//!
//! Two readers that were written apart rarely err alike. The second one only has a veto: where it
//! finds the text broken, or sees a command that ours did not, a person is asked. Plain commands,
//! made of words, quotes and the simple operators, need no second reader.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, Parser};

use crate::syntax::{AssignValue, Kind, Part, Script, Word};

/// Calls of the progress callback; the grammar makes one about every hundred operations.
const PATIENCE: usize = 400;

thread_local! {
    static PARSER: RefCell<Option<Parser>> = RefCell::new(parser());
}

fn parser() -> Option<Parser> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
    Some(parser)
}

/// Why the second reader does not see what the first one did.
pub(crate) fn disagrees(text: &str, script: &Script) -> Option<String> {
    if plain(text) || known_misses(text) {
        return None;
    }
    PARSER.with_borrow_mut(|parser| {
        let parser = parser.as_mut()?;
        parser.reset();
        let mut calls = 0;
        let mut progress = |_: &_| {
            calls += 1;
            if calls > PATIENCE {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let bytes = text.as_bytes();
        let options = ParseOptions::new().progress_callback(&mut progress);
        let Some(tree) = parser.parse_with_options(
            &mut |at, _| bytes.get(at..).unwrap_or_default(),
            None,
            Some(options),
        ) else {
            return Some("a second reader gave up on it".to_owned());
        };
        if tree.root_node().has_error() {
            return Some("a second reader finds it broken".to_owned());
        }
        let mut ours = HashSet::new();
        collect(script, &mut ours);
        unseen(&tree, text, &ours)
            .map(|name| format!("a second reader sees a command that the first did not: {name}"))
    })
}

/// Words, quotes without expansions, and `| && || ; &`.
fn plain(text: &str) -> bool {
    !text.bytes().any(|b| {
        matches!(
            b,
            b'$' | b'`' | b'(' | b'{' | b'<' | b'\n' | b'\\' | b'#' | b'*' | b'[' | b'!' | b'~'
        )
    })
}

/// Bash that the grammar is known not to read.
fn known_misses(text: &str) -> bool {
    text.contains("\\\n")
        || text.contains("coproc")
        || text.starts_with("time ")
        || text.contains("select ")
        || text.contains("<<-")
}

fn unseen(tree: &tree_sitter::Tree, text: &str, ours: &HashSet<String>) -> Option<String> {
    let mut cursor = tree.walk();
    let mut steps = 0;
    loop {
        steps += 1;
        if steps > 20_000 {
            return Some("…".to_owned());
        }
        let node = cursor.node();
        if node.kind() == "command_name"
            && let Some(name) = text.get(node.byte_range())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
            && !ours.contains(name)
        {
            return Some(name.to_owned());
        }
        if cursor.goto_first_child() || cursor.goto_next_sibling() {
            continue;
        }
        loop {
            if !cursor.goto_parent() {
                return None;
            }
            if cursor.goto_next_sibling() {
                break;
            }
        }
    }
}

/// The literal command names of our tree.
fn collect(script: &Script, names: &mut HashSet<String>) {
    for stage in script
        .pipelines
        .iter()
        .flat_map(|pipeline| &pipeline.stages)
    {
        match &stage.kind {
            Kind::Simple(simple) => {
                if let Some(name) = simple.words.first().and_then(Word::as_plain) {
                    names.insert(name.to_owned());
                }
                for assign in &simple.assigns {
                    match &assign.value {
                        AssignValue::Scalar(word) => collect_word(word, names),
                        AssignValue::Array(words) => {
                            words.iter().for_each(|word| collect_word(word, names))
                        }
                    }
                }
                simple
                    .words
                    .iter()
                    .for_each(|word| collect_word(word, names));
            }
            Kind::Subshell(script) => collect(script, names),
            Kind::Group(scripts) => scripts.iter().for_each(|script| collect(script, names)),
            Kind::For { words, body, .. } => {
                words
                    .iter()
                    .flatten()
                    .for_each(|word| collect_word(word, names));
                collect(body, names);
            }
            Kind::Case { subject, arms } => {
                collect_word(subject, names);
                for (patterns, body) in arms {
                    patterns.iter().for_each(|word| collect_word(word, names));
                    collect(body, names);
                }
            }
            Kind::Function { body, .. } => collect(body, names),
            Kind::Arithmetic(word) => collect_word(word, names),
            Kind::Test(words) => words.iter().for_each(|word| collect_word(word, names)),
        }
        for redirect in &stage.redirects {
            collect_word(&redirect.target, names);
            if let Some(body) = redirect.heredoc.as_ref().and_then(|body| body.get()) {
                collect_word(body, names);
            }
        }
    }
}

fn collect_word(word: &Word, names: &mut HashSet<String>) {
    for part in &word.0 {
        collect_part(part, names);
    }
}

fn collect_part(part: &Part, names: &mut HashSet<String>) {
    use crate::syntax::ParamOp;
    match part {
        Part::Command(script) | Part::Process { script, .. } => collect(script, names),
        Part::Double(parts) => parts.iter().for_each(|part| collect_part(part, names)),
        Part::Arithmetic(word) => collect_word(word, names),
        Part::Param(param) => match &param.op {
            ParamOp::Default(word)
            | ParamOp::Alternative(word)
            | ParamOp::TrimStart(word, _)
            | ParamOp::TrimEnd(word, _) => {
                collect_word(word, names);
            }
            ParamOp::Replace { pattern, with, .. } => {
                collect_word(pattern, names);
                collect_word(with, names);
            }
            _ => {}
        },
        Part::Plain(_) | Part::Literal(_) => {}
    }
}
