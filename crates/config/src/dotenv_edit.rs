//! Values written into the text of a `.env` file.

use std::fmt::Write as _;

use crate::dotenv;
use crate::source::SourceFile;

/// The text with these variables set and everything else as it was: comments, order, other names. A
/// variable that stands there keeps its line; where it stands twice the last one counts, so that one is
/// changed.
pub fn set_in_dotenv(text: &str, values: &[(&str, &str)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (known, _) = dotenv::parse(&SourceFile::new(".env", text));
    for (name, value) in values {
        let written = format!("{name}={}", quoted(value));
        match known.get(*name).map(|line| line.number - 1) {
            Some(place) => lines[place] = written,
            None => lines.push(written),
        }
    }
    let mut text = lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// What a variable says in the text of a `.env` file.
pub fn dotenv_value(text: &str, name: &str) -> Option<String> {
    let (known, _) = dotenv::parse(&SourceFile::new(".env", text));
    known.get(name).map(|line| line.value.clone())
}

/// As it is read again. Plain values stay plain, because other programs read the file too.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.,:/@+=%~".contains(c);
    if value.chars().all(plain) {
        return value.to_owned();
    }
    let mut text = String::from("\"");
    for c in value.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '"' | '\\' | '$' => {
                let _ = write!(text, "\\{c}");
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_read_as_it_was_given() {
        for value in [
            "123:abc_-",
            "",
            "two words",
            "a#b # c",
            "quote\" and ' and \\ and $HOME",
            "line\nbreak",
            "=",
            "ünï",
        ] {
            let text = set_in_dotenv("# mine\nA=1\n", &[("TOKEN", value)]);
            assert_eq!(
                dotenv_value(&text, "TOKEN").as_deref(),
                Some(value),
                "{text}"
            );
            assert!(text.starts_with("# mine\nA=1\n"), "{text}");
        }
    }

    #[test]
    fn a_name_that_stands_there_keeps_its_line_and_the_rest_is_not_touched() {
        let text = set_in_dotenv("export B=old\n# note\nC=3", &[("B", "new"), ("D", "4")]);
        assert_eq!(text, "B=new\n# note\nC=3\nD=4\n");
        assert_eq!(set_in_dotenv("", &[]), "");
    }
}
