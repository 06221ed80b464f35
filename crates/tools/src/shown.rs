//! Commands as people read them.

use std::fmt::Write as _;

use hermetic_types::{Command, CommandInput, CommandProgram};

/// The command as somebody would have to type it.
pub fn command(command: &Command) -> String {
    let text = match &command.program {
        CommandProgram::Script(text) | CommandProgram::Shell(text) => text.clone(),
        CommandProgram::Words(words) => words
            .iter()
            .map(|word| quoted(word))
            .collect::<Vec<_>>()
            .join(" "),
        CommandProgram::Inside { role, words } => {
            let words = words
                .iter()
                .map(|word| quoted(&String::from_utf8_lossy(word)));
            let all: Vec<_> = std::iter::once((*role).to_owned()).chain(words).collect();
            all.join(" ")
        }
    };
    // What is fed to it may be all there is to it: a script.
    let text = match &command.stdin {
        CommandInput::Bytes(bytes) => {
            format!("{text} <<'END'\n{}\nEND", String::from_utf8_lossy(bytes))
        }
        CommandInput::Empty | CommandInput::Open => text,
    };
    match &command.workdir {
        Some(workdir) => format!("cd {} && {text}", quoted(workdir)),
        None => text,
    }
}

/// Nothing in it can hide: what acts on a screen instead of showing is spelled out.
pub fn legible(text: &str) -> String {
    let mut legible = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || c == '\t' || !(c.is_control() || is_unseen(c)) {
            legible.push(c);
        } else {
            let _ = write!(legible, "\\u{{{:x}}}", u32::from(c));
        }
    }
    legible
}

/// Zero-width, directional, filling and tag characters.
pub(crate) fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_command_can_hide() {
        assert_eq!(
            legible("rm\u{202e}x\u{200b}\r\u{1b}[2K\ny"),
            "rm\\u{202e}x\\u{200b}\\u{d}\\u{1b}[2K\ny"
        );
    }

    #[test]
    fn a_script_that_is_fed_to_a_program_is_shown() {
        let mut fed = Command::words(["python3", "-"]);
        fed.stdin = CommandInput::Bytes(b"print(1)".to_vec());
        assert_eq!(command(&fed), "python3 - <<'END'\nprint(1)\nEND");
    }

    #[test]
    fn words_are_shown_as_somebody_would_type_them() {
        let mut words = Command::words(["python3", "-c", "print('x')"]);
        words.workdir = Some("/a b".to_owned());
        assert_eq!(
            command(&words),
            r"cd '/a b' && python3 -c 'print('\''x'\'')'"
        );
    }
}
