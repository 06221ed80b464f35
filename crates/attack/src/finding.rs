//! What became of an attempt.

/// So much of a line is believed to be one.
const LONGEST_FINDING_LINE: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttackFinding {
    pub attempt: String,
    pub state: AttemptState,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptState {
    Held,
    Open,
    /// Nobody knows, which is no better than open.
    Untried,
}

impl AttemptState {
    pub fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Open => "open",
            Self::Untried => "untried",
        }
    }
}

impl AttackFinding {
    pub fn new(attempt: &str, state: AttemptState, detail: impl Into<String>) -> Self {
        Self {
            attempt: attempt.to_owned(),
            state,
            detail: detail.into(),
        }
    }

    /// Of a line that a sandbox printed.
    pub fn read(line: &str) -> Option<Self> {
        let line: String = line.chars().take(LONGEST_FINDING_LINE).collect();
        let mut parts = line.splitn(3, '\t');
        let (attempt, state, detail) = (parts.next()?, parts.next()?, parts.next()?);
        let state = [
            AttemptState::Held,
            AttemptState::Open,
            AttemptState::Untried,
        ]
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
        let finding = AttackFinding::new("a door", AttemptState::Open, "it was\topen\x1b[2J");
        let read = AttackFinding::read(finding.line().trim_end()).unwrap();
        assert_eq!(read.state, AttemptState::Open);
        assert_eq!(read.detail, "it was open [2J");
    }

    #[test]
    fn what_is_no_finding_is_none() {
        for line in ["", "held", "a\tb", "a\tbroken\tx", "a\theld"] {
            assert_eq!(AttackFinding::read(line), None, "{line:?}");
        }
    }
}
