//! A judgement with its working shown.

use hermetic_types::{BackendKind, Boundary, Command};
use serde::{Deserialize, Serialize};

use crate::context::JudgementContext;
use crate::finding::HarmFinding;
use crate::fingerprint::CommandFingerprint;
use crate::insight::CommandInsight;
use crate::policy::Policy;
use crate::rules::PolicyRules;
use crate::verdict::{RefusedBy, Verdict};

/// Everything that led to a verdict, for people and for `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct VerdictExplanation {
    pub backend: BackendKind,
    /// `run`, `ask` or `refuse`.
    pub verdict: &'static str,
    /// What decided: `harmless`, `allowlist`, `floor`, `deny "…"`.
    pub rule: String,
    pub effective: Vec<EffectiveCommand>,
    pub findings: Vec<HarmFinding>,
    /// What could not be understood.
    pub doubts: Vec<String>,
    pub fingerprint: CommandFingerprint,
}

#[derive(Clone, Debug, Serialize)]
pub struct EffectiveCommand {
    pub line: String,
    /// How it was reached, outermost first.
    pub via: Vec<String>,
}

/// How the `local` backend would see a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineLabel {
    Safe,
    Dangerous,
    Hardline,
}

#[derive(Clone, Debug, Serialize)]
pub struct LabelledLine {
    pub verdict: LineLabel,
    pub why: String,
}

pub fn explain(
    policy: &Policy,
    command: &Command,
    context: &JudgementContext,
) -> VerdictExplanation {
    let insight = CommandInsight::into(command, context);
    let verdict = match context.boundary() {
        Boundary::Judged => policy.decide(command.clone(), &insight, context),
        Boundary::Sealed => policy.judge(command.clone(), context),
    };
    let (name, rule) = match &verdict {
        Verdict::Run(cleared) => ("run", format!("{:?}", cleared.grounds()).to_lowercase()),
        Verdict::Ask(_) => ("ask", "a person decides".to_owned()),
        Verdict::Refuse(refusal) => match refusal.by() {
            RefusedBy::Floor => ("refuse", "floor".to_owned()),
            RefusedBy::Deny { glob } => ("refuse", format!("deny {glob:?}")),
        },
    };
    VerdictExplanation {
        backend: context.backend,
        verdict: name,
        rule,
        effective: insight
            .commands
            .iter()
            .map(|command| EffectiveCommand {
                line: command.line(),
                via: command.via.clone(),
            })
            .collect(),
        findings: insight.findings,
        doubts: insight.doubts,
        fingerprint: insight.fingerprint,
    }
}

/// One line of shell, as the `local` backend judges it without any rules of an operator.
pub fn judge_line(line: &str, context: &JudgementContext) -> LabelledLine {
    let command = Command::script(line);
    let insight = CommandInsight::into(&command, context);
    let reasons: Vec<&str> = insight
        .findings
        .iter()
        .map(|finding| finding.reason.as_str())
        .chain(insight.doubts.iter().map(String::as_str))
        .collect();
    let why = reasons.join("; ");
    let verdict = match Policy::new(PolicyRules::default()).decide(command, &insight, context) {
        Verdict::Run(_) => LineLabel::Safe,
        Verdict::Ask(_) => LineLabel::Dangerous,
        Verdict::Refuse(_) => LineLabel::Hardline,
    };
    LabelledLine { verdict, why }
}
