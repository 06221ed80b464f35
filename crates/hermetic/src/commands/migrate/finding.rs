//! What is said about one thing of a Hermes home.

use std::fmt::Write as _;

use serde::Serialize;

use crate::output::{BOLD, DIM, printable};

/// How somebody who comes from Hermes fares with one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MigrationVerdict {
    /// To be done before a gateway of ours can run.
    First,
    /// As before, with nothing to do.
    Works,
    /// Taken over into our home by `--apply`.
    Copied,
    Different,
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct MigrationFinding {
    pub(super) verdict: MigrationVerdict,
    /// In one or two words.
    pub(super) subject: String,
    pub(super) what: String,
    pub(super) remedy: Option<String>,
}

impl MigrationFinding {
    pub(super) fn new(verdict: MigrationVerdict, subject: &str, what: impl Into<String>) -> Self {
        Self {
            verdict,
            subject: subject.to_owned(),
            what: what.into(),
            remedy: None,
        }
    }

    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl MigrationVerdict {
    const IN_ORDER: [Self; 5] = [
        Self::First,
        Self::Works,
        Self::Copied,
        Self::Different,
        Self::Lost,
    ];

    fn heading(self, is_applied: bool) -> &'static str {
        match (self, is_applied) {
            (Self::First, _) => "To be done first",
            (Self::Works, _) => "Works as before",
            (Self::Copied, false) => "Copied by `hermetic migrate --apply`",
            (Self::Copied, true) => "Copied",
            (Self::Different, _) => "Different here",
            (Self::Lost, _) => "Not here",
        }
    }
}

/// All of them, by verdict.
pub(super) fn as_text(findings: &[MigrationFinding], is_applied: bool) -> String {
    let width = findings.iter().map(|one| one.subject.chars().count());
    let width = width.max().unwrap_or(0);
    let mut text = String::new();
    for verdict in MigrationVerdict::IN_ORDER {
        let mut of_this = findings
            .iter()
            .filter(|one| one.verdict == verdict)
            .peekable();
        if of_this.peek().is_none() {
            continue;
        }
        let _ = writeln!(text, "\n{BOLD}{}{BOLD:#}", verdict.heading(is_applied));
        for one in of_this {
            // Names in it are those of files and people.
            let (subject, what) = (printable(&one.subject), printable(&one.what));
            let _ = writeln!(text, "  {subject:width$}  {what}");
            if let Some(remedy) = &one.remedy {
                let _ = writeln!(text, "  {:width$}  {DIM}= {}{DIM:#}", "", printable(remedy));
            }
        }
    }
    text
}
