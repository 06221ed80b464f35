//! The order in which rules speak.

use hermetic_types::{Boundary, Command, Stdin};

use crate::context::Context;
use crate::insight::Insight;
use crate::rules::{Mode, Rules};
use crate::verdict::{Cleared, Grounds, Lowerable, Question, Refusal, RefusedBy, Scope, Verdict};

/// The operator's rules, ready to judge by.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Rules,
}

impl Policy {
    pub fn new(rules: Rules) -> Self {
        Self { rules }
    }

    pub fn mode(&self) -> Mode {
        self.rules.mode
    }

    pub fn judge(&self, command: Command, context: &Context) -> Verdict {
        match context.boundary() {
            Boundary::Sealed => self.judge_sealed(command, context),
            Boundary::Judged => {
                let insight = Insight::into(&command, context);
                self.decide(command, &insight, context)
            }
        }
    }

    /// What a person types on this machine's own command line, for a backend that is no boundary.
    ///
    /// The operator's machine is the operator's, and the floor holds all the same: it is for typing
    /// errors as much as for agents. A keyboard behind standard input is not read beforehand, since
    /// whoever sits there sees what they type; a pipe is.
    pub fn judge_typed(&self, command: Command, context: &Context, keyboard: bool) -> Verdict {
        let mut seen = command.clone();
        if keyboard {
            seen.stdin = Stdin::Empty;
        }
        let insight = Insight::into(&seen, context);
        self.decide(command, &insight, context)
    }

    /// A sandbox can only lose itself: only what the operator forbade matters.
    fn judge_sealed(&self, command: Command, context: &Context) -> Verdict {
        if self.rules.deny.is_empty() {
            return Verdict::Run(Cleared::on(command, Grounds::Sealed));
        }
        let insight = Insight::into(&command, context);
        if let Some(glob) = self.rules.denied_by(&insight.commands) {
            return denied(glob);
        }
        if insight.doubts.is_empty() || self.approved(&insight, context) {
            return Verdict::Run(Cleared::on(command, Grounds::Sealed));
        }
        if self.rules.mode == Mode::Off {
            return Verdict::Run(Cleared::on(command, Grounds::AskingOff));
        }
        Verdict::Ask(question(command, &insight, Lowerable::Never))
    }

    pub(crate) fn decide(&self, command: Command, insight: &Insight, context: &Context) -> Verdict {
        let floor = insight.floor();
        if !floor.is_empty() {
            return Verdict::Refuse(Refusal {
                by: RefusedBy::Floor,
                reasons: floor.iter().map(|finding| finding.reason.clone()).collect(),
            });
        }
        if let Some(glob) = self.rules.denied_by(&insight.commands) {
            return denied(glob);
        }
        if insight.findings.is_empty() && insight.doubts.is_empty() {
            return Verdict::Run(Cleared::on(command, Grounds::Harmless));
        }
        if insight.doubts.is_empty() && self.rules.allow_all(&insight.commands) {
            return Verdict::Run(Cleared::on(command, Grounds::Allowlisted));
        }
        if self.approved(insight, context) {
            return Verdict::Run(Cleared::on(command, Grounds::Approved(Scope::Session)));
        }
        if self.rules.mode == Mode::Off {
            return Verdict::Run(Cleared::on(command, Grounds::AskingOff));
        }
        let lowerable = if self.rules.mode == Mode::Smart {
            Lowerable::ByModel
        } else {
            Lowerable::Never
        };
        Verdict::Ask(question(command, insight, lowerable))
    }

    fn approved(&self, insight: &Insight, context: &Context) -> bool {
        insight.is_foreseeable() && context.approved.contains(&insight.fingerprint)
    }
}

fn denied(glob: &str) -> Verdict {
    Verdict::Refuse(Refusal {
        by: RefusedBy::Deny {
            glob: glob.to_owned(),
        },
        reasons: vec![format!("the operator forbade it: {glob}")],
    })
}

fn question(command: Command, insight: &Insight, lowerable: Lowerable) -> Question {
    Question {
        command,
        fingerprint: insight.fingerprint.clone(),
        findings: insight.findings.clone(),
        doubts: insight.doubts.clone(),
        effective: insight
            .commands
            .iter()
            .map(|command| command.line())
            .collect(),
        lowerable,
        longest_yes: match insight.is_foreseeable() {
            true => Scope::Session,
            false => Scope::Once,
        },
    }
}
