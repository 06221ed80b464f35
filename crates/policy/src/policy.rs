//! The order in which rules speak.

use hermetic_types::{Boundary, Command, CommandInput};

use crate::context::JudgementContext;
use crate::fingerprint::CommandFingerprint;
use crate::insight::CommandInsight;
use crate::rules::{PolicyMode, PolicyRules};
use crate::verdict::{
    AnswerScope, ApprovalQuestion, Cleared, ClearedGrounds, ModelReview, PolicyRefusal, RefusedBy,
    Verdict,
};

/// The operator's rules, ready to judge by.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: PolicyRules,
}

impl Policy {
    pub fn new(rules: PolicyRules) -> Self {
        Self { rules }
    }

    pub fn mode(&self) -> PolicyMode {
        self.rules.mode
    }

    pub fn judge(&self, command: Command, context: &JudgementContext) -> Verdict {
        match context.boundary() {
            Boundary::Sealed => self.judge_sealed(command, context),
            Boundary::Judged => {
                let insight = CommandInsight::into(&command, context);
                self.decide(command, &insight, context)
            }
        }
    }

    /// What a person types on this machine's own command line, for a backend that is no boundary.
    ///
    /// The operator's machine is the operator's, and the floor holds all the same: it is for typing
    /// errors as much as for agents. A keyboard behind standard input is not read beforehand, since
    /// whoever sits there sees what they type; a pipe is.
    pub fn judge_typed(
        &self,
        command: Command,
        context: &JudgementContext,
        keyboard: bool,
    ) -> Verdict {
        let mut seen = command.clone();
        if keyboard {
            seen.stdin = CommandInput::Empty;
        }
        let insight = CommandInsight::into(&seen, context);
        self.decide(command, &insight, context)
    }

    /// What the operator's configuration names: a server that is to be started, or a call of one of its
    /// tools. Who wrote that wants it, so nobody is asked; what the operator forbade, and the floor on a
    /// backend that is no boundary, hold all the same. For nothing that a chat or a model can choose the
    /// program of.
    pub fn judge_configured(&self, command: Command, context: &JudgementContext) -> Verdict {
        let is_sealed = context.boundary() == Boundary::Sealed;
        if is_sealed && self.rules.deny.is_empty() {
            return Verdict::Run(Cleared::on(command, ClearedGrounds::Configured));
        }
        let insight = CommandInsight::into(&command, context);
        let floor = if is_sealed {
            Vec::new()
        } else {
            insight.floor()
        };
        if !floor.is_empty() {
            return Verdict::Refuse(PolicyRefusal {
                by: RefusedBy::Floor,
                reasons: floor.iter().map(|finding| finding.reason.clone()).collect(),
            });
        }
        match self.rules.denied_by(&insight.commands) {
            Some(glob) => denied(glob),
            None => Verdict::Run(Cleared::on(command, ClearedGrounds::Configured)),
        }
    }

    /// What a configured server wants to be used for, otherwise than when it was first seen: a person has
    /// to look at it. No model may answer, and a yes holds for what was shown and no longer.
    pub fn judge_changed_server(
        &self,
        command: Command,
        reasons: Vec<String>,
        context: &JudgementContext,
    ) -> Verdict {
        if self.rules.mode == PolicyMode::Off {
            return Verdict::Run(Cleared::on(command, ClearedGrounds::AskingOff));
        }
        Verdict::Ask(ApprovalQuestion {
            fingerprint: CommandFingerprint::of(&command, context),
            effective: reasons.clone(),
            doubts: reasons,
            findings: Vec::new(),
            lowerable: ModelReview::Never,
            longest_yes: AnswerScope::Once,
            command,
        })
    }

    /// A sandbox can only lose itself: only what the operator forbade matters.
    fn judge_sealed(&self, command: Command, context: &JudgementContext) -> Verdict {
        if self.rules.deny.is_empty() {
            return Verdict::Run(Cleared::on(command, ClearedGrounds::Sealed));
        }
        let insight = CommandInsight::into(&command, context);
        if let Some(glob) = self.rules.denied_by(&insight.commands) {
            return denied(glob);
        }
        if insight.doubts.is_empty() || self.approved(&insight, context) {
            return Verdict::Run(Cleared::on(command, ClearedGrounds::Sealed));
        }
        if self.rules.mode == PolicyMode::Off {
            return Verdict::Run(Cleared::on(command, ClearedGrounds::AskingOff));
        }
        Verdict::Ask(question(command, &insight, ModelReview::Never))
    }

    pub(crate) fn decide(
        &self,
        command: Command,
        insight: &CommandInsight,
        context: &JudgementContext,
    ) -> Verdict {
        let floor = insight.floor();
        if !floor.is_empty() {
            return Verdict::Refuse(PolicyRefusal {
                by: RefusedBy::Floor,
                reasons: floor.iter().map(|finding| finding.reason.clone()).collect(),
            });
        }
        if let Some(glob) = self.rules.denied_by(&insight.commands) {
            return denied(glob);
        }
        if insight.findings.is_empty() && insight.doubts.is_empty() {
            return Verdict::Run(Cleared::on(command, ClearedGrounds::Harmless));
        }
        if insight.doubts.is_empty() && self.rules.allow_all(&insight.commands) {
            return Verdict::Run(Cleared::on(command, ClearedGrounds::Allowlisted));
        }
        if self.approved(insight, context) {
            return Verdict::Run(Cleared::on(
                command,
                ClearedGrounds::Approved(AnswerScope::Session),
            ));
        }
        if self.rules.mode == PolicyMode::Off {
            return Verdict::Run(Cleared::on(command, ClearedGrounds::AskingOff));
        }
        let lowerable = if self.rules.mode == PolicyMode::Smart {
            ModelReview::ByModel
        } else {
            ModelReview::Never
        };
        Verdict::Ask(question(command, insight, lowerable))
    }

    fn approved(&self, insight: &CommandInsight, context: &JudgementContext) -> bool {
        insight.is_foreseeable() && context.approved.contains(&insight.fingerprint)
    }
}

fn denied(glob: &str) -> Verdict {
    Verdict::Refuse(PolicyRefusal {
        by: RefusedBy::Deny {
            glob: glob.to_owned(),
        },
        reasons: vec![format!("the operator forbade it: {glob}")],
    })
}

fn question(
    command: Command,
    insight: &CommandInsight,
    lowerable: ModelReview,
) -> ApprovalQuestion {
    ApprovalQuestion {
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
            true => AnswerScope::Session,
            false => AnswerScope::Once,
        },
    }
}
