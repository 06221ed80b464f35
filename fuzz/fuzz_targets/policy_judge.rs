//! Any text gets an answer, on a judged and on a sealed backend.

#![no_main]

use hermetic_policy::{Context, Mode, Policy, Rules, explain, judge_line};
use hermetic_types::{BackendKind, Command, BackendDescription};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let context = Context::new(BackendDescription::judged(BackendKind::Local), "/home/user/project", "/home/user");
    judge_line(&text, &context);
    let policy = Policy::new(Rules {
        deny: vec!["curl *".to_owned()],
        allow: vec!["git *".to_owned()],
        mode: Mode::Smart,
    });
    explain(&policy, &Command::script(text.as_ref()), &context);
    let sealed = Context::new(BackendDescription::sealed(BackendKind::Native), "/workspace", "/root");
    policy.judge(Command::shell(text.as_ref()), &sealed);
});
