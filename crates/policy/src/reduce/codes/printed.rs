//! What a one-liner that only prints a constant prints.

use super::super::literals::{Token, tokens};
use super::given::{Given, code_of, language};
use crate::effective::Effective;

pub(in super::super) fn printed(command: &Effective) -> Option<String> {
    let language = language(command.program())?;
    let Given::Code(code) = code_of(command, language)? else {
        return None;
    };
    let tokens = tokens(&code.s);
    let tokens = match tokens.as_slice() {
        [rest @ .., Token::Mark(';')] => rest,
        all => all,
    };
    match tokens {
        [Token::Name(name), Token::Text(text)]
        | [
            Token::Name(name),
            Token::Mark('('),
            Token::Text(text),
            Token::Mark(')'),
        ] if matches!(name.as_str(), "print" | "puts" | "echo" | "say") => Some(text.clone()),
        [
            Token::Name(begin),
            Token::Mark('{'),
            Token::Name(name),
            Token::Text(text),
            Token::Mark('}'),
        ] if begin == "BEGIN" && matches!(name.as_str(), "print" | "printf") => Some(text.clone()),
        _ => None,
    }
}
