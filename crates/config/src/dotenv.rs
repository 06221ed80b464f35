//! `$HERMES_HOME/.env`: one `NAME=value` a line.
//!
//! Its lines are secrets more often than not, so no problem here shows one.

use std::collections::BTreeMap;

use crate::expand::is_name;
use crate::problem::ConfigProblem;
use crate::source::SourceFile;

#[derive(Clone, Debug)]
pub(crate) struct DotenvLine {
    pub(crate) number: usize,
    pub(crate) value: String,
}

/// The last line wins where a name stands twice, which is warned about.
pub(crate) fn parse(source: &SourceFile) -> (BTreeMap<String, DotenvLine>, Vec<ConfigProblem>) {
    let mut lines: BTreeMap<String, DotenvLine> = BTreeMap::new();
    let mut problems = Vec::new();
    for (number, text) in (1..).zip(source.text().lines()) {
        match parse_line(text) {
            Ok(None) => {}
            Ok(Some((name, value))) => {
                if let Some(first) = lines.get(name) {
                    problems.push(
                        ConfigProblem::warning(format!("{name} is set twice"))
                            .in_line(source.path(), number)
                            .help(format!("line {} is not used; remove it", first.number)),
                    );
                }
                lines.insert(name.to_owned(), DotenvLine { number, value });
            }
            Err(what) => problems.push(
                ConfigProblem::error(what)
                    .in_line(source.path(), number)
                    .help("every line is NAME=value, a comment starting with #, or empty"),
            ),
        }
    }
    (lines, problems)
}

fn parse_line(text: &str) -> Result<Option<(&str, String)>, &'static str> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let text = text.strip_prefix("export ").unwrap_or(text);
    let (name, value) = text.split_once('=').ok_or("this line has no `=`")?;
    let name = name.trim_end().trim_start();
    if !is_name(name) {
        return Err("what stands before `=` is not a variable name");
    }
    Ok(Some((name, unquoted(value.trim())?)))
}

fn unquoted(value: &str) -> Result<String, &'static str> {
    if value.contains('\0') {
        return Err("the value holds a NUL byte");
    }
    let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        // Only behind a blank: a `#` in the middle of a value belongs to it, as in a password.
        let end = value.find(" #").unwrap_or(value.len());
        return Ok(value[..end].trim_end().to_owned());
    };
    let mut text = String::new();
    let mut inside = value[1..].chars();
    while let Some(c) = inside.next() {
        match c {
            c if c == quote => {
                let after = inside.as_str().trim_start();
                return if after.is_empty() || after.starts_with('#') {
                    Ok(text)
                } else {
                    Err("something follows the closing quote")
                };
            }
            '\\' if quote == '"' => match inside.next() {
                Some('n') => text.push('\n'),
                Some(escaped @ ('"' | '\\' | '$')) => text.push(escaped),
                Some(other) => text.extend(['\\', other]),
                None => break,
            },
            c => text.push(c),
        }
    }
    Err("a quote is not closed on its line")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<String, &'static str> {
        parse_line(text).map(|line| line.map_or_else(String::new, |(_, value)| value))
    }

    #[test]
    fn values_are_read_as_shells_would() {
        for (text, value) in [
            ("A=b", "b"),
            ("export A=b", "b"),
            (" A = b ", "b"),
            ("A=b # comment", "b"),
            ("A=b#c", "b#c"),
            ("A=\"b c\" # x", "b c"),
            ("A='b\\n'", "b\\n"),
            ("A=\"b\\nc\"", "b\nc"),
            ("A=", ""),
            ("A=b=c", "b=c"),
        ] {
            assert_eq!(one(text).as_deref(), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_assignment_is_refused() {
        for text in ["A", "=b", "1A=b", "A B=c", "A=\"b", "A='b' c", "A=\"b\\"] {
            assert!(one(text).is_err(), "{text}");
        }
    }
}
