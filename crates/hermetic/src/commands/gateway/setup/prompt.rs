//! Questions at the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::failure::CommandFailure;

/// Who answers: somebody at the terminal, or nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetupPrompt {
    Terminal,
    Nobody,
}

impl SetupPrompt {
    pub(crate) fn at_terminal() -> Result<Self, CommandFailure> {
        match io::stdin().is_terminal() && io::stderr().is_terminal() {
            true => Ok(Self::Terminal),
            false => Err(CommandFailure::new(
                "there is no terminal to ask at",
                "add --non-interactive and set the values in the environment or in .env",
            )),
        }
    }

    pub(crate) fn nobody() -> Self {
        Self::Nobody
    }

    pub(crate) fn is_somebody(self) -> bool {
        self == Self::Terminal
    }

    /// Whether a value that is there stays.
    pub(crate) fn keeps(self, name: &str) -> Result<bool, CommandFailure> {
        match self {
            Self::Nobody => Ok(true),
            Self::Terminal => {
                let typed = self.line(&format!("{name} is set already. Keep it? [Y/n]"))?;
                Ok(!matches!(typed.to_lowercase().as_str(), "n" | "no"))
            }
        }
    }

    pub(crate) fn confirms(self, question: &str) -> Result<bool, CommandFailure> {
        match self {
            Self::Nobody => Ok(false),
            Self::Terminal => {
                let typed = self.line(&format!("{question} [y/N]"))?;
                Ok(matches!(typed.to_lowercase().as_str(), "y" | "yes"))
            }
        }
    }

    pub(crate) fn value(
        self,
        name: &str,
        what: &str,
        is_secret: bool,
    ) -> Result<String, CommandFailure> {
        if self == Self::Nobody {
            return Err(CommandFailure::new(
                format!("{name} is not set: {what}"),
                format!("set {name} in the environment or in .env"),
            ));
        }
        show(&format!("{name}: {what}\n"))?;
        let hint = if is_secret { " (it is not shown)" } else { "" };
        loop {
            let label = format!("{name}{hint}");
            let typed = match is_secret {
                true => hidden(&label)?,
                false => self.line(&label)?,
            };
            if !typed.is_empty() {
                return Ok(typed);
            }
        }
    }

    /// What was typed, without blanks around it.
    pub(crate) fn line(self, question: &str) -> Result<String, CommandFailure> {
        if self == Self::Nobody {
            return Err(CommandFailure::new(
                format!("nobody is there to be asked: {question}"),
                "name it as an argument; --help lists them",
            ));
        }
        show(&format!("{question} › "))?;
        read_line()
    }
}

/// What is typed does not stand on the screen, and not in what scrolls away.
fn hidden(label: &str) -> Result<String, CommandFailure> {
    let typed = {
        // Before the question is on the screen: who pastes at once would be shown what they pasted.
        let _silence = EchoOff::begin()?;
        show(&format!("{label} › "))?;
        read_line()
    };
    show("\n")?;
    typed
}

fn read_line() -> Result<String, CommandFailure> {
    let mut line = String::new();
    let read = io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| unasked(&error))?;
    if read == 0 {
        return Err(CommandFailure::new(
            "the input ended",
            "nothing was written; start again",
        ));
    }
    Ok(line.trim().to_owned())
}

fn show(text: &str) -> Result<(), CommandFailure> {
    let mut shown = io::stderr().lock();
    let written = shown
        .write_all(text.as_bytes())
        .and_then(|()| shown.flush());
    written.map_err(|error| unasked(&error))
}

fn unasked(error: &io::Error) -> CommandFailure {
    CommandFailure::caused(error, "add --non-interactive, or try another terminal")
}

/// The terminal as it was, for when it may show again what is typed.
struct EchoOff(Termios);

impl EchoOff {
    fn begin() -> Result<Self, CommandFailure> {
        let was = tcgetattr(rustix::stdio::stdin()).map_err(|error| unasked(&error.into()))?;
        let mut silent = was.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &silent)
            .map_err(|error| unasked(&error.into()))?;
        Ok(Self(was))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.0);
    }
}
