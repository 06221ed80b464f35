//! Commands with labels: `!` is refused always, `-` is asked about, `+` runs. `⏎` is a newline.

use hermetic_policy::{JudgementContext, LineLabel, judge_line};
use hermetic_types::{BackendDescription, BackendKind};

fn check(name: &str, text: &str) {
    let context = JudgementContext::new(
        BackendDescription::judged(BackendKind::Local),
        "/home/user/project",
        "/home/user",
    );
    let mut wrong = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (mark, command) = line.split_at(2);
        let command = command.replace('⏎', "\n");
        let found = judge_line(&command, &context);
        let right = match mark {
            "! " => found.verdict == LineLabel::Hardline,
            // Worse than thought is not wrong here.
            "- " => found.verdict != LineLabel::Safe,
            "+ " => found.verdict == LineLabel::Safe,
            _ => panic!("{name}: no label on {line:?}"),
        };
        if !right {
            wrong.push(format!(
                "{mark}{command:?} was {:?}: {}",
                found.verdict, found.why
            ));
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

macro_rules! cases {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            check(stringify!($name), include_str!(concat!("cases/", stringify!($name), ".txt")));
        }
    )*};
}

cases!(
    clouds,
    destruction,
    disks_power,
    everyday,
    injection,
    network,
    own_exec,
    second_look,
    secrets,
    stranger,
    system,
    unknown,
    values
);
