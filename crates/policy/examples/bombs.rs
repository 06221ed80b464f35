//! How long the worst texts take.
//!
//! `cargo run --release -p hermetic-policy --example bombs` judges texts that grow, nest or repeat,
//! from those that are just short enough to be read up to a megabyte, and prints the slowest first.

use std::time::Duration;

use hermetic_policy::{Context, judge_line};
use hermetic_types::BackendKind;
use rustix::time::{ClockId, clock_gettime};

/// What is repeated, with what stands before and after all of it.
const SHAPES: &[(&str, &str, &str)] = &[
    ("x=x;", "x=$x$x;", "$x"),
    ("", "x=$x$x$x;y=$x$y;", "eval $y"),
    ("", "$(", "ls"),
    ("", "`echo ", ""),
    ("echo ", "$((", "1"),
    ("echo ", "${a:-", "b"),
    ("echo ", "{a,b}", ""),
    ("echo ", "{1..9}", ""),
    ("echo ", "{", "}"),
    ("", "(", ")"),
    ("", "{ ", "}"),
    ("", "if true; then ", "fi"),
    ("", "for i in a b; do ", "done"),
    ("", "while :; do ", "done"),
    ("", "case x in a) ", "esac"),
    ("", "f() { f | f; };", "f"),
    ("", "f() { g; }; g() { f; };", "f"),
    ("", "alias a='b a';", "a"),
    ("", "eval \"", "ls"),
    ("", "bash -c '", "ls"),
    ("", "sudo ", "ls"),
    ("", "env ", "ls"),
    ("", "xargs ", "ls"),
    ("", "timeout 1 nice ", "rm -rf x"),
    ("", "find . -exec ", "ls"),
    ("cat ", "<<A\n", ""),
    ("cat ", "<<A <<B\nA\nB\n", ""),
    ("", "echo a | base64 -d | ", "sh"),
    ("", "a | ", "b"),
    ("", "a && ", "b"),
    ("", "ls;", ""),
    ("", "rm -rf a;", ""),
    ("rm ", "-rf ", "a"),
    ("", "\"$(", "ls"),
    ("", "\\", ""),
    ("", "'", ""),
    ("", "\"", ""),
    ("", "$'\\x72'", ""),
    ("", "a=(b c);", "${a[@]}"),
    ("", "a+=(b);", "${a[@]}"),
    ("", "a+=b;", "$a"),
    ("echo ", "*", ""),
    ("echo ", "?(a|b)", ""),
    ("python3 -c '", "eval(", "1"),
    ("python3 -c '", "a=\"b\"+", "1'"),
    ("python3 -c '", "os.system(\"ls\");", "'"),
    ("perl -e '", "system(\"", "ls'"),
    ("", "trap 'trap ", "ls"),
    ("", "read a <<< b;", "$a"),
    ("", "\u{ff52}\u{ff4d} ", "x"),
    ("", "\u{200b}", "rm"),
    ("echo ", "$RANDOM", ""),
    ("printf ", "%s", " x | sh"),
    ("echo ", "${x//a/b}", ""),
    ("x=aaaaaaaa;", "x=${x//a/aa};", "$x"),
    ("", "> /etc/x", ""),
    ("", "diff <(ls) ", ""),
    ("awk '", "BEGIN{system(\"ls\")}", "'"),
    ("ssh h '", "ssh h \"", "ls"),
    ("", "git -c a=b ", "log"),
];

const SIZES: &[usize] = &[2 << 10, 8 << 10, 16 << 10, 32 << 10, 128 << 10, 1 << 20];

#[expect(clippy::print_stdout, reason = "an example prints")]
fn main() {
    let context = Context::new(BackendKind::Local, "/home/user/project", "/home/user");
    let mut found = Vec::new();
    for (before, repeated, after) in SHAPES {
        for size in SIZES {
            let text = format!("{before}{}{after}", repeated.repeat(size / repeated.len()));
            let mut took = Duration::MAX;
            for _ in 0..7 {
                let start = spent();
                judge_line(&text, &context);
                took = took.min(spent().saturating_sub(start));
            }
            found.push((took, *size, *repeated));
        }
    }
    found.sort_by(|one, two| two.cmp(one));
    for (took, size, repeated) in found.iter().take(25) {
        println!("{took:>12.3?}  {size:>8} bytes of {repeated:?}");
    }
    let over = found
        .iter()
        .filter(|(took, ..)| took.as_millis() >= 10)
        .count();
    println!("{over} of {} take 10 ms or more", found.len());
}

/// Of the processor, so that it does not matter who else is on the machine.
fn spent() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
