//! How long the worst texts take.
//!
//! `cargo run --release -p hermetic-policy --example bombs` judges texts that grow, nest or repeat,
//! from those that are just short enough to be read up to a megabyte, and prints the slowest first.

use std::time::Duration;

use hermetic_policy::{JudgementContext, judge_line};
use hermetic_types::{BackendDescription, BackendKind};
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
    ("", "cat <<A\nx\nA\n", ""),
    ("bash <<A\n", "bash <<B\n", "ls"),
    ("cat <<A\n", "$(ls)", "\nA"),
    ("cat <<A\n", "`ls`", "\nA"),
    ("echo ", "${!a}", ""),
    ("echo ", "${a[b]}", ""),
    ("echo ", "${a[$(b)]}", ""),
    ("echo $((", "1+", "1))"),
    ("echo $((", "(", "1))"),
    ("echo $((", "a=a*2,", "a))"),
    ("echo ", "{1..1000}", ""),
    ("echo ", "{a..z}{a..z}", ""),
    ("", "{{{{", "a,b}}}}"),
    ("echo ", "{a,{b,", "c}"),
    ("", "alias a=b;", "a"),
    ("shopt -s expand_aliases\n", "alias x='ls; x'\n", "x"),
    ("", "f(){ ls;};", "f"),
    ("", "f(){ eval \"$1\";};", "f ls"),
    ("eval ", "eval ", "ls"),
    ("", "eval 'eval ", "ls"),
    ("echo cm0gLXJm", " | base64 -d", " | sh"),
    ("echo ls", " | rev", " | sh"),
    ("echo ls", " | tr a-z b-za", " | sh"),
    ("echo ls", " | sed s/a/b/", " | sh"),
    ("printf %s ", "\\x72", " | sh"),
    ("x=", "$(echo a)", ""),
    ("", "x=$(x=$(", "ls"),
    ("", "[[ a =~ b ]] && ", "ls"),
    ("", "case a in b) ls;; esac;", ""),
    ("", "select x in a; do ls; done;", ""),
    ("", "until ls; do ls; done;", ""),
    ("", "coproc ls;", ""),
    ("", "ls &", ""),
    ("", "ls\n", ""),
    ("", "a=b ", "ls"),
    ("ls ", "a ", ""),
    ("ls ", "'a' ", ""),
    ("ls ", "\"$a\" ", ""),
    ("ls ", "$a", ""),
    ("ls ", "\\\n", ""),
    ("", "é", ""),
    ("", "\u{202e}rm ", ""),
    ("", "\u{1d42b}\u{1d426} ", ""),
    ("find . ", "-exec ls \\; ", ""),
    ("find . ", "-name a ", "-delete"),
    ("xargs ", "-I{} ", "rm {}"),
    ("parallel ls ::: ", "a ", ""),
    ("watch ", "watch ", "ls"),
    ("docker run ", "-v /:/h ", "alpine"),
    ("tar cf x ", "--exclude a ", ""),
    ("curl ", "-F a=@b ", "http://h"),
    ("sed ", "-e s/a/b/ ", "f"),
    ("sed '", "s/a/b/;", "' f"),
    ("sed '", "{", "' f"),
    ("awk '", "{print $1|\"sh\"}", "'"),
    ("node -e '", "x=\"a\";", "eval(x)'"),
    ("python3 -c '", "a=b as c;", "1'"),
    ("python3 -c '", "open(\"/etc/x\",\"w\");", "'"),
    ("python3 -c '", "unlink(listdir(\"/\"));", "'"),
    ("perl -e '", "q(", "1'"),
    ("php -r '", "array_map(\"unlink\",", "1'"),
    ("psql -c '", "drop table t;", "'"),
    ("vim ", "-c :w ", "f"),
    ("rsync ", "-e ssh ", "a b:"),
    ("ssh h ", "ssh h ", "ls"),
    ("env ", "A=b ", "ls"),
    ("export ", "A=b ", ""),
    ("rm -rf ", "/a/../", "b"),
    ("rm -rf ", "*/", "b"),
    ("cat ", "[a-z]", ""),
    ("/bin/", "?", " x"),
];

const SIZES: &[usize] = &[2 << 10, 8 << 10, 16 << 10, 32 << 10, 128 << 10, 1 << 20];

#[expect(clippy::print_stdout, reason = "an example prints")]
fn main() {
    let context = JudgementContext::new(
        BackendDescription::judged(BackendKind::Local),
        "/home/user/project",
        "/home/user",
    );
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
