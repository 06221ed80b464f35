//! What a one-liner that only prints a constant prints.

use super::super::literals::{CodeToken, tokens};
use super::given::{InterpreterInput, code_of, language};
use crate::effective::ReducedCommand;

pub(in super::super) fn printed(command: &ReducedCommand) -> Option<String> {
    let language = language(command.program())?;
    let InterpreterInput::Code(code) = code_of(command, language)? else {
        return None;
    };
    let tokens = tokens(&code.s);
    let tokens = match tokens.as_slice() {
        [rest @ .., CodeToken::Mark(';')] => rest,
        all => all,
    };
    match tokens {
        [CodeToken::Name(name), CodeToken::Text(text)]
        | [
            CodeToken::Name(name),
            CodeToken::Mark('('),
            CodeToken::Text(text),
            CodeToken::Mark(')'),
        ] if matches!(name.as_str(), "print" | "puts" | "echo" | "say") => Some(text.clone()),
        [
            CodeToken::Name(begin),
            CodeToken::Mark('{'),
            CodeToken::Name(name),
            CodeToken::Text(text),
            CodeToken::Mark('}'),
        ] if begin == "BEGIN" && matches!(name.as_str(), "print" | "printf") => Some(text.clone()),
        _ => None,
    }
}
