//! May this command run? Pure decisions: no clock, no I/O, no memory between two calls.
//!
//! A command is read as shell ([`syntax`]), reduced to the commands that would really run
//! ([`reduce`]), and each of those is held against what is known about programs ([`programs`]).
//! [`Policy::judge`] puts the operator's rules on top and ends in a [`Verdict`]. What cannot be
//! understood is asked about.

#![forbid(unsafe_code)]

mod clean;
mod context;
mod effective;
mod explain;
mod finding;
mod fingerprint;
mod insight;
mod outline;
mod own_program;
mod paths;
mod policy;
mod programs;
mod reduce;
mod rules;
mod scan;
mod second;
mod syntax;
mod text;
mod verdict;

pub use context::JudgementContext;
pub use explain::{
    EffectiveCommand, LabelledLine, LineLabel, VerdictExplanation, explain, judge_line,
};
pub use finding::{HarmCategory, HarmFinding, HarmSeverity};
pub use fingerprint::CommandFingerprint;
pub use outline::{LastingCommand, ShellOutline};
pub use own_program::{CheckedSyntax, EgressProbe, OwnProgram, WorkspaceCopy};
pub use policy::Policy;
pub use rules::{PolicyMode, PolicyRules};
pub use verdict::{
    AnswerScope, ApprovalQuestion, Cleared, ClearedGrounds, CommandApproval, FingerprintMismatch,
    ModelReview, PolicyRefusal, RefusedBy, Verdict,
};
