//! What somebody typed.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TypedLine {
    Nothing,
    Says(String),
    Sh(String),
    Py(String),
    /// `/reset` is another name for it.
    New,
    /// Destroys the sandbox; what was typed after it.
    Destroy(String),
    Help,
    Leave,
}

pub(super) const HELP: &str = "\
/sh <command>  run a shell command in this conversation's sandbox, without the model
/py <code>     run Python there
/new           forget what was said; files stay (/reset is the same)
/destroy       destroy the sandbox with its files; asks first
/quit          leave; Ctrl-D does the same
";

impl TypedLine {
    pub(super) fn read(line: &str) -> Self {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match name {
            "" => Self::Nothing,
            "/sh" if !rest.is_empty() => Self::Sh(rest.to_owned()),
            "/py" if !rest.is_empty() => Self::Py(rest.to_owned()),
            "/new" | "/reset" => Self::New,
            "/destroy" => Self::Destroy(rest.to_lowercase()),
            "/help" | "/sh" | "/py" => Self::Help,
            "/quit" | "/exit" => Self::Leave,
            _ => Self::Says(line.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_looks_like_a_command_is_said() {
        assert_eq!(
            TypedLine::read(" /sh  ls -l \n"),
            TypedLine::Sh("ls -l".to_owned())
        );
        assert_eq!(TypedLine::read("/sh"), TypedLine::Help);
        assert_eq!(TypedLine::read("  "), TypedLine::Nothing);
        assert_eq!(TypedLine::read("/exit"), TypedLine::Leave);
        assert_eq!(TypedLine::read("/reset"), TypedLine::New);
        let confirmed = TypedLine::Destroy("yes".to_owned());
        assert_eq!(TypedLine::read("/destroy YES"), confirmed);
        let path = "/etc/passwd, what is it?";
        assert_eq!(TypedLine::read(path), TypedLine::Says(path.to_owned()));
    }
}
