//! Shell commands inside AppleScript: `osascript -e 'do shell script "…"'`.

use super::WrappedCommand;
use crate::effective::ReducedCommand;
use crate::text::ExpandedText;

const DO_SHELL_SCRIPT: &str = "do shell script";

pub(super) fn shell_texts(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let typed = command.input.known.as_deref();
    let words = command.args().iter().map(|arg| arg.s.as_str());
    words
        .chain(typed)
        .flat_map(|script| script.split(DO_SHELL_SCRIPT).skip(1))
        .filter_map(string)
        .map(|text| WrappedCommand::Script(ExpandedText::known(text)))
        .collect()
}

/// The string that the text begins with. One that is put together at run time is judged as far as it is
/// written out.
fn string(text: &str) -> Option<String> {
    let mut chars = text.trim_start().strip_prefix('"')?.chars();
    let mut string = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some(string),
            '\\' => string.extend(chars.next()),
            c => string.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_ends_at_its_quote() {
        assert_eq!(
            string(r#" "a \"b\" c" with x"#).as_deref(),
            Some("a \"b\" c")
        );
        assert_eq!(string(r#" "no end"#), None);
        assert_eq!(string(" variable"), None);
    }
}
