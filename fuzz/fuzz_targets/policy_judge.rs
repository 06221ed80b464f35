//! Any text gets an answer, on a judged and on a sealed backend.

#![no_main]

use hermetic_policy::{JudgementContext, PolicyMode, Policy, PolicyRules, explain, judge_line};
use hermetic_types::{BackendDescription, BackendKind, Command};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let context = JudgementContext::new(
        BackendDescription::judged(BackendKind::Local),
        "/home/user/project",
        "/home/user",
    );
    judge_line(&text, &context);
    let policy = Policy::new(PolicyRules {
        deny: vec!["curl *".to_owned()],
        allow: vec!["git *".to_owned()],
        mode: PolicyMode::Smart,
    });
    explain(&policy, &Command::script(text.as_ref()), &context);
    let sealed = JudgementContext::new(
        BackendDescription::sealed(BackendKind::Native),
        "/workspace",
        "/root",
    );
    policy.judge(Command::shell(text.as_ref()), &sealed);
});
