//! A second reader: the parser of the brush shell.
//!
//! Two readers that were written apart rarely err alike. The second one only has a veto: where it
//! finds the text broken, or sees a command that ours did not, a person is asked. Plain commands,
//! made of words, quotes and the simple operators, need no second reader. It runs only on what our
//! own reader has accepted, which bounds how deep it can go.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::ast;
use brush_parser::{Parser, ParserOptions};

use crate::syntax::{AssignValue, NodeKind, ShellScript, ShellWord, WordPart};

/// Longer texts cost more time than a question does.
const LONGEST_SECOND_TEXT: usize = 8 * 1024;

/// Digits of a descriptor that surely fit.
const LONGEST_DESCRIPTOR: usize = 9;

/// Why the second reader does not see what the first one did.
pub(crate) fn disagrees(text: &str, script: &ShellScript) -> Option<String> {
    if plain(text) || known_misses(text) {
        return None;
    }
    if text.len() > LONGEST_SECOND_TEXT {
        return Some("it is too long for a second reader".to_owned());
    }
    if !here_documents_have_names(text) {
        return Some("a here-document in it has no plain name for its end".to_owned());
    }
    if has_huge_descriptor(text) {
        return Some("it names a descriptor that no process can have".to_owned());
    }
    let Some(program) = read(text) else {
        return Some("a second reader finds it broken".to_owned());
    };
    let mut ours = HashSet::new();
    collect(script, &mut ours);
    let mut theirs = Vec::new();
    for list in &program.complete_commands {
        see_list(list, &mut theirs);
    }
    theirs
        .into_iter()
        .find(|name| literal(name) && !ours.contains(*name))
        .map(|name| format!("a second reader sees a command that the first did not: {name}"))
}

/// A reader that panics has found it broken, too.
fn read(text: &str) -> Option<ast::Program> {
    let options = ParserOptions {
        enable_extended_globbing: false,
        ..ParserOptions::default()
    };
    let parse = || Parser::new(text.as_bytes(), &options).parse_program();
    catch_unwind(AssertUnwindSafe(parse)).ok()?.ok()
}

/// Words, quotes without expansions, and `| && || ; &`.
fn plain(text: &str) -> bool {
    !text
        .bytes()
        .any(|b| matches!(b, b'$' | b'`' | b'(' | b'{' | b'<' | b'\n' | b'\\' | b'#'))
}

/// Bash that the second reader is known not to read.
fn known_misses(text: &str) -> bool {
    text.contains("select ") || text.contains("=<(") || text.contains("}>") || text.contains("}<")
}

/// Whether every here-document ends at a plain word. With an empty one the second reader does not come to
/// an end at the end of the text, and takes memory for as long as it looks.
fn here_documents_have_names(text: &str) -> bool {
    // A line that is continued in the middle of an operator is the same operator.
    let text = text.replace("\\\n", "");
    let mut rest = text.as_str();
    while let Some(at) = rest.find("<<") {
        let after = rest[at..].trim_start_matches('<');
        // Three are a here-string, which has no end to look for.
        let is_document = rest[at..].len() - after.len() == 2;
        if is_document && !begins_with_name(after) {
            return false;
        }
        rest = after;
    }
    true
}

/// Whether a number before a redirection is too large for the second reader, which would panic.
fn has_huge_descriptor(text: &str) -> bool {
    let text = text.replace("\\\n", "");
    let mut digits = 0;
    for c in text.chars() {
        match c {
            '0'..='9' => digits += 1,
            '<' | '>' if digits > LONGEST_DESCRIPTOR => return true,
            _ => digits = 0,
        }
    }
    false
}

fn begins_with_name(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let text = text.trim_start_matches([' ', '\t']);
    let text = text.strip_prefix(['\'', '"', '\\']).unwrap_or(text);
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

fn literal(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
}

fn see_list<'p>(list: &'p ast::CompoundList, names: &mut Vec<&'p str>) {
    for ast::CompoundListItem(and_or, _) in &list.0 {
        see_pipeline(&and_or.first, names);
        for ast::AndOr::And(pipeline) | ast::AndOr::Or(pipeline) in &and_or.additional {
            see_pipeline(pipeline, names);
        }
    }
}

fn see_pipeline<'p>(pipeline: &'p ast::Pipeline, names: &mut Vec<&'p str>) {
    for command in &pipeline.seq {
        see_command(command, names);
    }
}

fn see_command<'p>(command: &'p ast::Command, names: &mut Vec<&'p str>) {
    match command {
        ast::Command::Simple(simple) => {
            names.extend(simple.word_or_name.as_ref().map(|word| word.value.as_str()));
        }
        ast::Command::Compound(compound, _) => see_compound(compound, names),
        ast::Command::Function(function) => see_compound(&function.body.0, names),
        ast::Command::ExtendedTest(..) => {}
    }
}

fn see_compound<'p>(compound: &'p ast::CompoundCommand, names: &mut Vec<&'p str>) {
    use ast::CompoundCommand as C;
    match compound {
        C::Arithmetic(_) => {}
        C::ArithmeticForClause(clause) => see_list(&clause.body.list, names),
        C::BraceGroup(group) => see_list(&group.list, names),
        C::Subshell(subshell) => see_list(&subshell.list, names),
        C::ForClause(clause) => see_list(&clause.body.list, names),
        C::CaseClause(clause) => {
            for list in clause.cases.iter().filter_map(|case| case.cmd.as_ref()) {
                see_list(list, names);
            }
        }
        C::IfClause(clause) => {
            see_list(&clause.condition, names);
            see_list(&clause.then, names);
            for other in clause.elses.iter().flatten() {
                if let Some(condition) = &other.condition {
                    see_list(condition, names);
                }
                see_list(&other.body, names);
            }
        }
        C::WhileClause(clause) | C::UntilClause(clause) => {
            see_list(&clause.0, names);
            see_list(&clause.1.list, names);
        }
        C::Coprocess(coprocess) => see_command(&coprocess.body, names),
    }
}

/// The literal command names of our tree.
fn collect(script: &ShellScript, names: &mut HashSet<String>) {
    for stage in script
        .pipelines
        .iter()
        .flat_map(|pipeline| &pipeline.stages)
    {
        match &stage.kind {
            NodeKind::Simple(simple) => {
                if let Some(name) = simple.words.first().and_then(ShellWord::as_plain) {
                    names.insert(name.to_owned());
                }
                for assign in &simple.assigns {
                    match &assign.value {
                        AssignValue::Scalar(word) => collect_word(word, names),
                        AssignValue::Array(words) => {
                            words.iter().for_each(|word| collect_word(word, names));
                        }
                    }
                }
                simple
                    .words
                    .iter()
                    .for_each(|word| collect_word(word, names));
            }
            NodeKind::Subshell(script) => collect(script, names),
            NodeKind::Group(scripts) => scripts.iter().for_each(|script| collect(script, names)),
            NodeKind::Loop { condition, body } => {
                collect(condition, names);
                collect(body, names);
            }
            NodeKind::For { words, body, .. } => {
                words
                    .iter()
                    .flatten()
                    .for_each(|word| collect_word(word, names));
                collect(body, names);
            }
            NodeKind::Case { subject, arms } => {
                collect_word(subject, names);
                for (patterns, body) in arms {
                    patterns.iter().for_each(|word| collect_word(word, names));
                    collect(body, names);
                }
            }
            NodeKind::Function { body, .. } => collect(body, names),
            NodeKind::Arithmetic(word) => collect_word(word, names),
            NodeKind::Test(words) => words.iter().for_each(|word| collect_word(word, names)),
        }
        for redirect in &stage.redirects {
            collect_word(&redirect.target, names);
            if let Some(body) = redirect.heredoc.as_ref().and_then(|body| body.get()) {
                collect_word(body, names);
            }
        }
    }
}

fn collect_word(word: &ShellWord, names: &mut HashSet<String>) {
    for part in &word.0 {
        collect_part(part, names);
    }
}

fn collect_part(part: &WordPart, names: &mut HashSet<String>) {
    use crate::syntax::ParamOp;
    match part {
        WordPart::Command(script) | WordPart::Process { script, .. } => collect(script, names),
        WordPart::Double(parts) => parts.iter().for_each(|part| collect_part(part, names)),
        WordPart::Arithmetic(word) => collect_word(word, names),
        WordPart::Param(param) => match &param.op {
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
        WordPart::Plain(_) | WordPart::Literal(_) => {}
    }
}

#[cfg(test)]
mod odd_text_tests {
    use super::{has_huge_descriptor, here_documents_have_names};

    #[test]
    fn a_descriptor_that_no_process_has_is_not_read_a_second_time() {
        for text in ["7777777777<x", "echo 99999999999>x", "4294967296\\\n>x"] {
            assert!(has_huge_descriptor(text), "{text:?}");
        }
        for text in ["2>x", "999999999>x", "echo 7777777777 <x", "7777777777 x"] {
            assert!(!has_huge_descriptor(text), "{text:?}");
        }
    }

    #[test]
    fn an_end_without_a_name_is_not_read_a_second_time() {
        for text in [
            "cat <<''\n",
            "cat <<\"\"\nx\n",
            "cat <<- ''\n",
            "l<<\x0c<\r/d*ev/ \0. ",
            "cat <<",
            "cat <\\\n<''\n",
            "cat <<A <<''\n",
            "cat <<$x\n",
        ] {
            assert!(!here_documents_have_names(text), "{text:?}");
        }
        for text in [
            "cat <<EOF\nx\nEOF",
            "cat <<-'EOF'\nx\nEOF",
            "cat << \\EOF\nx\nEOF",
            "cat <<<word",
            "cat <<< ''",
            "echo $((1<<2))",
        ] {
            assert!(here_documents_have_names(text), "{text:?}");
        }
    }
}
