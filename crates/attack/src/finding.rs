//! What became of an attempt.

/// So much of a line is believed to be one.
const LONGEST: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub attempt: String,
    pub state: State,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Held,
    Open,
    /// Nobody knows, which is no better than open.
    Untried,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Open => "open",
            Self::Untried => "untried",
        }
    }
}

impl Finding {
    pub fn new(attempt: &str, state: State, detail: impl Into<String>) -> Self {
        Self {
            attempt: attempt.to_owned(),
            state,
            detail: detail.into(),
        }
    }

    /// Of a line that a sandbox printed.
    pub fn read(line: &str) -> Option<Self> {
        let line: String = line.chars().take(LONGEST).collect();
        let mut parts = line.splitn(3, '\t');
        let (attempt, state, detail) = (parts.next()?, parts.next()?, parts.next()?);
        let state = [State::Held, State::Open, State::Untried]
            .into_iter()
            .find(|known| known.word() == state)?;
        Some(Self::new(&plain(attempt), state, plain(detail)))
    }

    pub fn line(&self) -> String {
        let (attempt, detail) = (plain(&self.attempt), plain(&self.detail));
        format!("{attempt}\t{}\t{detail}\n", self.state.word())
    }
}

fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_as_it_was() {
        let finding = Finding::new("a door", State::Open, "it was\topen\x1b[2J");
        let read = Finding::read(finding.line().trim_end()).unwrap();
        assert_eq!(read.state, State::Open);
        assert_eq!(read.detail, "it was open [2J");
    }

    #[test]
    fn what_is_no_finding_is_none() {
        for line in ["", "held", "a\tb", "a\tbroken\tx", "a\theld"] {
            assert_eq!(Finding::read(line), None, "{line:?}");
        }
    }
}
