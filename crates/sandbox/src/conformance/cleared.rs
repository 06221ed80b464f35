//! Commands of the tests themselves.

use hermetic_policy::{Cleared, JudgementContext, Policy, PolicyRules, Verdict};
use hermetic_types::{BackendDescription, BackendKind, Command};

/// A command as the policy lets it into a sandbox. Whatever it does, it can only hurt the sandbox that the
/// test made for it.
pub fn cleared(command: Command) -> Cleared {
    let context = JudgementContext::new(
        BackendDescription::sealed(BackendKind::Native),
        "/workspace",
        "/root",
    );
    match Policy::new(PolicyRules::default()).judge(command, &context) {
        Verdict::Run(cleared) => cleared,
        Verdict::Ask(_) | Verdict::Refuse(_) => panic!("a sandbox without rules takes any command"),
    }
}
