//! A spot in a source, and how it is shown.

use std::fmt::Write as _;

use crate::source::SourceFile;

/// The part of a line that is shown when the whole would not fit.
const WIDEST: usize = 100;

#[derive(Clone, Debug)]
pub(crate) struct SourcePlace {
    pub(crate) source: SourceFile,
    /// Both counted from 1.
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) length: usize,
}

impl SourcePlace {
    /// The line with a caret below, as compilers do it.
    ///
    /// What follows a name that sounds like a credential is covered: errors end up in logs and
    /// bug reports.
    pub(crate) fn snippet(&self) -> String {
        let line: Vec<char> = covered(self.source.line(self.line)).chars().collect();
        let caret = (self.column - 1).min(line.len());
        let start = caret.saturating_sub(WIDEST / 2);
        let end = (start + WIDEST).min(line.len());
        let shown: String = line[start..end].iter().map(|c| visible(*c)).collect();
        let marks = self.length.clamp(1, (end - caret.min(end)).max(1));

        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let mut text = String::new();
        let _ = writeln!(text, " {gutter} |");
        let _ = writeln!(text, " {number} | {}", shown.trim_end());
        let _ = write!(
            text,
            " {gutter} | {}{}",
            " ".repeat(caret - start),
            "^".repeat(marks)
        );
        text
    }
}

/// A tab counts as one column and a control character must not reach a terminal.
fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

const CREDENTIAL_NAMES: [&str; 8] = [
    "token",
    "secret",
    "password",
    "passwd",
    "api_key",
    "apikey",
    "credential",
    "_key",
];

fn covered(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let value = CREDENTIAL_NAMES
        .iter()
        .filter_map(|name| lower.find(name))
        .filter_map(|at| lower[at..].find([':', '=']).map(|colon| at + colon + 1))
        .min();
    let Some(value) = value else {
        return without_logins(line);
    };
    let (name, secret) = line.split_at(value);
    without_logins(name) + &starred(secret)
}

/// `http://user:password@host`, as it may stand in any setting and in lists.
fn without_logins(line: &str) -> String {
    const SCHEME: &str = "://";
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(SCHEME) {
        let (before, address) = rest.split_at(at + SCHEME.len());
        text.push_str(before);
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | ',');
        let authority = &address[..address.find(ends).unwrap_or(address.len())];
        // The last one: a password may have one in it.
        let login = authority.rfind('@').unwrap_or_default();
        text.push_str(&starred(&address[..login]));
        rest = &address[login..];
    }
    text + rest
}

/// As long as before, so that a caret below it stays in its place.
fn starred(secret: &str) -> String {
    let star = |c: char| if c.is_whitespace() { c } else { '*' };
    secret.chars().map(star).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_below_what_it_means() {
        let place = SourcePlace {
            source: SourceFile::new("f", "a: 1\nbackend: docer\n"),
            line: 2,
            column: 10,
            length: 5,
        };
        assert_eq!(
            place.snippet(),
            "   |\n 2 | backend: docer\n   |          ^^^^^"
        );
    }

    #[test]
    fn a_credential_is_covered() {
        for line in [
            "  token: hunter2",
            "{api_key: hunter2}",
            "OPENAI_API_KEY=hunter2 x",
            "proxies: [http://one.test, 'https://me:hunter2@two.test/a@b']",
            "a: http://hunter2@one.test b: socks5://me:x@hunter2@two.test",
        ] {
            let shown = covered(line);
            assert!(!shown.contains("hunter2"), "{shown}");
            assert_eq!(shown.chars().count(), line.chars().count());
        }
    }

    #[test]
    fn a_very_long_line_is_cut_around_the_caret() {
        let place = SourcePlace {
            source: SourceFile::new("f", format!("{}X{}", "a".repeat(5000), "b".repeat(5000))),
            line: 1,
            column: 5001,
            length: 9000,
        };
        assert!(place.snippet().len() < 400);
        assert!(place.snippet().contains('X'));
    }
}
