//! Shell text as a tree.
//!
//! Our own reader, because judging needs what general parsers leave as raw text: every expansion
//! operand, heredoc and substitution as words and commands. It is small, linear and bounded in
//! depth; what it cannot read is a [`SyntaxDoubt`], and a doubt is asked about. A second, independent
//! reader checks it (`crate::second`).

mod compound;
mod heredoc;
mod list;
mod param;
mod tree;
mod word;

pub(crate) use tree::*;

use std::fmt;

/// Nesting beyond this is nobody's everyday command.
const MAX_DEPTH: usize = 48;

/// More commands than this are nobody's everyday script.
const MOST_COMMANDS: usize = 1500;

/// Why the text could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxDoubt(pub(crate) String);

impl fmt::Display for SyntaxDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) fn parse(text: &str) -> Result<ShellScript, SyntaxDoubt> {
    parse_at_depth(text, 0)
}

fn parse_at_depth(text: &str, depth: usize) -> Result<ShellScript, SyntaxDoubt> {
    let mut parser = ShellParser::new(text, depth);
    let script = parser.script(&[])?;
    if parser.at_end() {
        Ok(script)
    } else {
        Err(parser.doubt("a word or operator that does not belong there"))
    }
}

/// The text of a double-quoted string or an unquoted heredoc, as parts.
fn parse_expanding(text: &str, depth: usize) -> Result<ShellWord, SyntaxDoubt> {
    let mut parser = ShellParser::new(text, depth);
    parser.expanding_text(None).map(ShellWord)
}

pub(crate) struct ShellParser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    commands: usize,
    /// A `((` was followed to the end of the text in vain; trying again would be quadratic.
    no_arithmetic: bool,
    pending: Vec<heredoc::PendingHeredoc>,
}

impl<'t> ShellParser<'t> {
    fn new(text: &'t str, depth: usize) -> Self {
        Self {
            text,
            at: 0,
            depth,
            commands: 0,
            no_arithmetic: false,
            pending: Vec::new(),
        }
    }

    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SyntaxDoubt>,
    ) -> Result<T, SyntaxDoubt> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SyntaxDoubt("it is nested too deeply to follow".to_owned()));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// The next character; a line continuation is not one.
    fn peek(&mut self) -> Option<char> {
        while self.text[self.at..].starts_with("\\\n") {
            self.at += 2;
        }
        self.text[self.at..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Takes `token` if it comes next, also across line continuations.
    fn take(&mut self, token: &str) -> bool {
        let start = self.at;
        for expected in token.chars() {
            if self.bump() != Some(expected) {
                self.at = start;
                return false;
            }
        }
        true
    }

    fn looks_at(&mut self, token: &str) -> bool {
        let start = self.at;
        let found = self.take(token);
        self.at = start;
        found
    }

    fn at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    fn doubt(&self, what: &str) -> SyntaxDoubt {
        SyntaxDoubt(format!("{what} (at byte {})", self.at))
    }
}

#[cfg(test)]
#[path = "syntax_tests.rs"]
mod tests;
